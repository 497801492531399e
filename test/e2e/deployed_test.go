// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// account is the name of the service accounts under kubernetes/, in either cluster.
const account = "machine-controller-manager"

var _ = Describe("The Deployment under kubernetes/", long, func() {
	It("makes and removes machines in one cluster, in a namespace of its own, and uses its rights", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithoutManager(), localenv.WithoutSidecar()))
		objects := renderIn("machines")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		controlUser := serviceAccount{c.env.Namespace(), account}
		controlUser.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		controlUser.awaitRights(ctx, c.target, targetRights)
		pod := c.startPod(ctx, c.deploymentIn(ctx, objects), "only")

		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		machines := c.createDeployment(ctx, "workers", "small", 2)
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(2))
		servers := c.env.Cloud().Servers()
		evicted, killed := c.createPodOn(ctx, servers[0].Name), c.createPodOn(ctx, servers[1].Name)
		attachment := c.attachVolumeTo(ctx, servers[1].Name)
		c.forceDeletionOf(ctx, servers[1].Name)

		Expect(c.Delete(ctx, machines)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		for _, object := range []client.Object{evicted, killed, attachment} {
			Expect(apierrors.IsNotFound(c.target.Get(ctx, client.ObjectKeyFromObject(object), object))).To(BeTrue(), "%T %s is left", object, object.GetName())
		}
		c.expectLed(pod)
		c.expectAllowed()
		c.expectRightsUsed(objects)
	})

	It("is the last to go for want of room, may be drained, and takes nothing from other Services", func() {
		objects := render("kubernetes/control")
		deployment := only[appsv1.Deployment](objects, "Deployment")
		template := deployment.Spec.Template
		Expect(template.Spec.PriorityClassName).To(Equal("system-cluster-critical"))
		Expect(template.Spec.EnableServiceLinks).To(HaveValue(BeFalse()))
		budget := only[policyv1.PodDisruptionBudget](objects, "PodDisruptionBudget")
		Expect(budget.Namespace).To(Equal(deployment.Namespace))
		Expect(selects(budget.Spec.Selector, template.Labels)).To(BeTrue(), "the budget is about other pods")
		allowed := func(replicas int) int {
			unavailable, err := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, replicas, true)
			Expect(err).NotTo(HaveOccurred())
			return unavailable
		}
		Expect(allowed(1)).To(Equal(1), "a node with a single replica must drain")
		Expect(allowed(2)).To(Equal(1), "of two replicas one stays")
	})

	It("with two replicas serves two clusters, and the second takes over when the leader ends in the middle of creations", func(ctx SpecContext) {
		const count = 3
		c := newCluster(startEnvironment(ctx, localenv.WithTargetCluster(), localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithCloudOptions(iaasmock.WithBootDuration(8*time.Second), iaasmock.WithListLag(3*time.Second))))
		verify := watchDoubles(ctx, c.env.Cloud())
		for _, object := range render("kubernetes/target") {
			Expect(c.target.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		c.createTargetKubeconfig(ctx)
		objects := render("kubernetes/control")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		serviceAccount{metav1.NamespaceSystem, account}.awaitRights(ctx, c.target, targetRights)
		deployment := c.deploymentIn(ctx, objects)
		change(ctx, c, deployment, func() { deployment.Spec.Replicas = ptr.To[int32](2) })
		pods := map[string]*corev1.Pod{}
		for _, name := range []string{"first", "second"} {
			pods[name] = c.startPod(ctx, deployment, name)
			Expect(pods[name].Spec.TerminationGracePeriodSeconds).To(HaveValue(BeEquivalentTo(5)))
		}
		Eventually(ctx, c.leader).WithTimeout(upTimeout).WithPolling(poll).ShouldNot(BeEmpty())
		leader, err := c.leader(ctx)
		Expect(err).NotTo(HaveOccurred())

		// One answer never comes, one request is under way for long, one server boots.
		c.env.Cloud().Inject(iaasmock.Fault{Operation: "CreateServer", Server: "machine-000-x", Count: 1, AnswerDelay: time.Hour})
		c.env.Cloud().Inject(iaasmock.Fault{Operation: "CreateServer", Server: "machine-001-x", Count: 1, Delay: 10 * time.Second})
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		c.createMachines(ctx, count, "small")
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout).WithPolling(poll / 10).Should(ConsistOf(
			HaveField("Name", "machine-000-x"), And(HaveField("Name", "machine-002-x"), HaveField("Status", iaasmock.StatusCreating))))
		c.env.StopPod(leader)
		delete(pods, leader)

		Eventually(ctx, c.running).WithTimeout(afterCrash + 30*time.Second).WithPolling(poll).Should(HaveLen(count))
		Expect(c.leader(ctx)).To(BeKeyOf(pods))
		Expect(c.env.Cloud().History().ServersCreated).To(Equal(count), "servers ever created")
		var inControl, inTarget corev1.NodeList
		Expect(c.List(ctx, &inControl)).To(Succeed())
		Expect(inControl.Items).To(BeEmpty(), "Nodes in the control cluster")
		Expect(c.target.List(ctx, &inTarget)).To(Succeed())
		Expect(inTarget.Items).To(HaveLen(count))
		evicted := c.createPodOn(ctx, "machine-001-x")

		Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		Expect(apierrors.IsNotFound(c.target.Get(ctx, client.ObjectKeyFromObject(evicted), evicted))).To(BeTrue(), "the Pod was not evicted")
		verify()
		for _, pod := range pods {
			c.expectLed(pod)
		}
		c.expectAllowed()
	})
})
