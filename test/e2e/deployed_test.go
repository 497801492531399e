// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// account is the name of the service accounts under kubernetes/, in either cluster.
const account = "machine-controller-manager"

// afterCrash allows for a lease that expires, for the time in which a new process asks for no server because
// its predecessor may have (--stackit-settle, 30 s), and for the manager's retry after 3 minutes.
const afterCrash = 4*time.Minute + upTimeout

var _ = Describe("The Deployment under kubernetes/", long, func() {
	It("in one cluster, as GitOps applies it, leaves all else alone, uses its rights, "+
		"and makes and removes machines with and without a key", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithoutManager(),
			localenv.WithoutSidecar()))
		user := serviceAccount{c.env.Namespace(), account}
		email, err := c.env.Cloud().NewFederatedServiceAccount(iaasmock.DefaultProjectID, c.identityProvider(ctx, user))
		Expect(err).NotTo(HaveOccurred())
		objects := build(overlay())
		expectClosed(objects)
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		user.awaitRights(ctx, c.target, targetRights)
		c.expectPolicies(ctx, user)
		c.audited = len(c.requests())
		planted := c.plantKubeconfig(ctx)
		pod := c.startPod(ctx, c.deploymentIn(ctx, objects), "only")

		secret := c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		machines := c.newDeployment("workers", "small", 2)
		Expect(c.Create(ctx, machines)).To(Succeed())
		identity := secretIn(c.env.Namespace(), "identity", corev1.SecretTypeOpaque)
		identity.Data = maps.Clone(secret.Data)
		delete(identity.Data, "serviceAccountKey")
		identity.Data["serviceAccountEmail"] = []byte(email)
		token, err := user.token(ctx, c, authenticationv1.TokenRequestSpec{Audiences: []string{audience}})
		Expect(err).NotTo(HaveOccurred())
		identity.Data["token"] = []byte(token)
		Expect(c.Create(ctx, identity)).To(Succeed())
		class := c.createClass(ctx, "keyless", specWith(nil))
		change(ctx, c, class, func() { class.SecretRef.Name = identity.Name })
		keyless := c.createMachine(ctx, "keyless", "keyless")
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(3))
		servers := slices.DeleteFunc(c.env.Cloud().Servers(), func(s iaasmock.Server) bool { return s.Name == keyless.Name })
		evicted, killed := c.createPodOn(ctx, servers[0].Name), c.createPodOn(ctx, servers[1].Name)
		attachment := c.attachVolumeTo(ctx, servers[1].Name)
		c.forceDeletionOf(ctx, servers[1].Name)

		Expect(c.Delete(ctx, machines)).To(Succeed())
		Expect(c.Delete(ctx, keyless)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		for _, object := range []client.Object{evicted, killed, attachment} {
			Expect(apierrors.IsNotFound(c.target.Get(ctx, client.ObjectKeyFromObject(object), object))).
				To(BeTrue(), "%T %s is left", object, object.GetName())
		}
		c.expectLed(pod)
		Expect(planted).NotTo(BeAnExistingFile(), "a program ran in the Pod")
		c.expectAllowed()
		c.expectRightsUsed(objects)
	})

	It("without a target cluster makes and removes machines, and no Nodes", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithJoinDuration(time.Hour)))
		objects := renderFolder("control", "default", "without-target")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		pod := c.startPod(ctx, c.deploymentIn(ctx, objects), "only")
		Expect(pod.Spec.Volumes).To(BeEmpty())

		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		machine := c.createMachine(ctx, "alone", "small")
		Eventually(ctx, c.machine(machine.Name)).WithTimeout(afterCrash).WithPolling(poll).Should(And(
			havePhase(v1alpha1.MachineAvailable), HaveField("Status.Addresses", Not(BeEmpty()))))
		Expect(c.Delete(ctx, machine)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectLed(pod)
		c.expectAllowed()
	})

	It("with two replicas serves two clusters, "+
		"and the second takes over when the leader ends in the middle of creations", func(ctx SpecContext) {
		const count = 3
		c := newCluster(startEnvironment(ctx, localenv.WithTargetCluster(), localenv.WithoutManager(),
			localenv.WithoutSidecar(),
			localenv.WithCloudOptions(iaasmock.WithBootDuration(20*time.Second), iaasmock.WithListLag(3*time.Second))))
		verify := watchDoubles(ctx, c.env.Cloud())
		for _, object := range render("kubernetes/target") {
			Expect(c.target.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		c.createTargetKubeconfig(ctx)
		planted := c.plantKubeconfig(ctx)
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
			mounted, err := filepath.Glob(c.env.PodPath(pods[name], "/var/run/target/[a-z]*"))
			Expect(err).NotTo(HaveOccurred())
			Expect(mounted).To(HaveEach(Or(HaveSuffix("/kubeconfig"), HaveSuffix("/token"))))
		}
		Eventually(ctx, c.leader).WithTimeout(upTimeout).WithPolling(poll).ShouldNot(BeEmpty())
		leader, err := c.leader(ctx)
		Expect(err).NotTo(HaveOccurred())

		// One answer never comes, one request is under way for long, one server boots: all at once, for 20 s at
		// least. The server of the slow request still shows before the second leader may create another one.
		c.env.Cloud().
			Inject(iaasmock.Fault{Operation: "CreateServer", Server: "machine-000-x", Count: 1, AnswerDelay: time.Hour})
		c.env.Cloud().
			Inject(iaasmock.Fault{Operation: "CreateServer", Server: "machine-001-x", Count: 1, Delay: 20 * time.Second})
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		// The manager takes the ID of a bootstrap token from the 3 characters before the last 2.
		for i := range count {
			c.createMachine(ctx, fmt.Sprintf("machine-%03d-x", i), "small")
		}
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout).WithPolling(poll / 10).Should(ConsistOf(
			HaveField("Name", "machine-000-x"),
			And(HaveField("Name", "machine-002-x"), HaveField("Status", iaasmock.StatusCreating))))
		c.env.StopPod(leader)
		delete(pods, leader)

		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(count))
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
		Expect(apierrors.IsNotFound(c.target.Get(ctx, client.ObjectKeyFromObject(evicted), evicted))).
			To(BeTrue(), "the Pod was not evicted")
		verify()
		for _, pod := range pods {
			c.expectLed(pod)
		}
		Expect(planted).NotTo(BeAnExistingFile(), "a program ran in a Pod")
		c.expectAllowed()
	})
})

// audience is what the federated identity provider asks for.
const audience = "sts.accounts.stackit.cloud"

// identityProvider trusts the tokens that the control cluster's API server issues for a
// service account.
func (c *cluster) identityProvider(ctx context.Context, user serviceAccount) iaasmock.FederatedIdentityProvider {
	GinkgoHelper()
	var discovery struct{ Issuer string }
	Expect(json.Unmarshal(c.readRaw(ctx, "/.well-known/openid-configuration"), &discovery)).To(Succeed())
	return iaasmock.FederatedIdentityProvider{
		Issuer: discovery.Issuer,
		Assertions: map[string]string{
			"aud": audience,
			"sub": "system:serviceaccount:" + user.namespace + ":" + user.name,
		},
		JWKS: c.readRaw(ctx, "/openid/v1/jwks"),
	}
}

// readRaw returns what the control cluster's API server answers for a path.
func (c *cluster) readRaw(ctx context.Context, path string) []byte {
	GinkgoHelper()
	body, err := exec.CommandContext(ctx, built("bin/kubectl"), "get", "--raw", path,
		"--kubeconfig", c.env.KubeconfigPath()).Output()
	Expect(err).NotTo(HaveOccurred())
	return body
}
