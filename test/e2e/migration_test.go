// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// migratedAnnotation marks the Machines from OpenStack.
const migratedAnnotation = "stackit.cloud/migrated-machine"

// refusedTimeout is for a Machine that was refused something: the manager comes back after 3
// minutes, or when its spec changes.
const refusedTimeout = 4*time.Minute + upTimeout

// migrationPage runs the commands of kubernetes/migration.md as they are written, in one folder.
type migrationPage struct {
	blocks []string
	folder string
	env    []string
}

// newMigrationPage fills in what the page leaves to the reader.
func newMigrationPage(c *cluster) *migrationPage {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root(), "kubernetes", "migration.md"))
	Expect(err).NotTo(HaveOccurred())
	text := strings.NewReplacer("<namespace of the Machines>", c.env.Namespace(), "<projectId>", iaasmock.DefaultProjectID,
		"<Deployment of the manager and OpenStack's sidecar>", `"${OLD-openstack}"`, "<OpenStack's region>", "RegionOne",
		"<region of the servers>", iaasmock.DefaultRegion).Replace(string(content))
	p := &migrationPage{folder: GinkgoT().TempDir()}
	for _, match := range regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		p.blocks = append(p.blocks, match[1])
	}
	// The first patch of os-second fails.
	wrapper := "#!/bin/sh\ncase $* in *'patch machine os-second '*) " +
		"test -e failed || { : >failed; echo Conflict >&2; exit 1; } ;; esac\n" +
		"exec " + built("bin/kubectl") + ` "$@"` + "\n"
	Expect(os.WriteFile(filepath.Join(p.folder, "kubectl"), []byte(wrapper), 0o700)).To(Succeed())
	p.env = append(os.Environ(), "KUBECONFIG="+c.env.KubeconfigPath(), "PATH="+p.folder+":"+os.Getenv("PATH"))
	return p
}

// run runs the one block that has the text, after the variables that all of them use, and returns
// what it prints.
func (p *migrationPage) run(ctx context.Context, text string, variables ...string) string {
	GinkgoHelper()
	var found []string
	for _, block := range p.blocks {
		if strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	Expect(found).To(HaveLen(1), "blocks with %s", text)
	shell := exec.CommandContext(ctx, "sh", "-c", p.blocks[0]+found[0])
	shell.Dir, shell.Env = p.folder, append(p.env, variables...)
	output, err := shell.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return string(output)
}

// stop runs the block that stops a Deployment, whose Pod lives for some seconds.
func (p *migrationPage) stop(ctx SpecContext, c *cluster, deployment *appsv1.Deployment) {
	GinkgoHelper()
	pod := podOf(deployment, deployment.Name+"-0")
	pod.Labels, pod.Spec = deployment.Spec.Template.Labels,
		corev1.PodSpec{Containers: []corev1.Container{{Name: "idle", Image: "idle"}}}
	Expect(c.Create(ctx, pod)).To(Succeed())
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		Eventually(ctx, func(ctx context.Context) (int32, error) {
			stored := &appsv1.Deployment{}
			err := c.Get(ctx, client.ObjectKeyFromObject(deployment), stored)
			return ptr.Deref(stored.Spec.Replicas, 1), err
		}).WithTimeout(upTimeout).WithPolling(poll).Should(BeZero())
		Consistently(ended).WithTimeout(3*time.Second).ShouldNot(BeClosed(), "it does not wait for the Pod")
		Expect(c.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	}()
	printed := p.run(ctx, "--replicas=0", "OLD="+deployment.Name)
	close(ended)
	Expect(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod))).
		To(BeTrue(), "it did not wait for the Pod: %s", printed)
	Expect(printed).To(ContainSubstring("No resources found"))
}

// A PATCH of this cloud replaces labels, which is harder than to merge them.
var _ = Describe("The page kubernetes/migration.md", long, func() {
	It("moves Machines from OpenStack and back, under the admission policies", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithoutManager(),
			localenv.WithoutSidecar(), localenv.WithCloudOptions(iaasmock.WithReplacedLabels(),
				iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration))))
		objects := renderIn("machines")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		user := serviceAccount{c.env.Namespace(), account}
		user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		user.awaitRights(ctx, c.target, targetRights)
		before, class, servers := c.openStackWorld(ctx)
		page := newMigrationPage(c)

		By("stopping the old programs and saving the IDs")
		page.stop(ctx, c, before)
		page.run(ctx, "provider-ids.new")
		saved, err := os.ReadFile(filepath.Join(page.folder, "provider-ids.txt"))
		Expect(err).NotTo(HaveOccurred())

		By("applying Secret and class")
		c.createSecret(ctx, nil)
		wasClass := class.DeepCopy()
		change(ctx, c, class, func() {
			class.Provider, class.ProviderSpec, class.SecretRef.Name = "stackit", rawSpec(specWith(nil)), secretName
		})

		By("rewriting the IDs, with a patch that fails")
		Expect(page.run(ctx, `providerID\":\"stackit://`)).To(ContainSubstring("Stopped at os-second"))
		Expect(c.providerIDs(ctx)).
			To(Equal(map[string]string{"os-first": "stackit://" + iaasmock.DefaultProjectID + "/" + servers["os-first"],
				"os-second": "openstack:///RegionOne/" + servers["os-second"], "os-third": ""}))
		page.run(ctx, "provider-ids.new")
		Expect(os.ReadFile(filepath.Join(page.folder, "provider-ids.txt"))).
			To(Equal(saved), "a second run overwrites what was saved")
		Expect(page.run(ctx, `providerID\":\"stackit://`)).NotTo(ContainSubstring("Stopped"))

		By("starting the sidecar")
		deployment := c.deploymentIn(ctx, objects)
		pod := c.startPod(ctx, deployment, "only")
		for name, id := range servers {
			Eventually(ctx, c.machine(name)).WithTimeout(refusedTimeout).WithPolling(poll).
				Should(And(havePhase(v1alpha1.MachineRunning), HaveField("Spec.ProviderID", HaveSuffix("/"+id))))
		}
		awaitRefusal(ctx, "providerSpec.region must stay", func(ctx context.Context) error {
			changed := class.DeepCopy()
			Expect(c.Get(ctx, client.ObjectKeyFromObject(class), changed)).To(Succeed())
			changed.ProviderSpec = rawSpec(specWith(providerSpec{"region": "eu02"}))
			return c.Update(ctx, changed, client.DryRunAll)
		})
		ours := c.createMachine(ctx, "ours-1", class.Name)
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(4))
		c.expectLed(pod)
		c.expectAllowed()

		By("deleting one with all that it had at OpenStack, and one of ours")
		first, err := c.machine("os-first")(ctx)
		Expect(err).NotTo(HaveOccurred())
		server, exists := c.env.Cloud().Server(servers["os-first"])
		Expect(exists).To(BeTrue())
		Expect(c.Delete(ctx, first)).To(Succeed())
		Expect(c.Delete(ctx, ours)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(2))
		delete(servers, "os-first")
		Expect(c.env.Cloud().NICs()).NotTo(ContainElement(HaveField("Name", "os-first")))
		Expect(server.VolumeIDs).To(HaveLen(1)) // stays, as the page says
		Expect(c.api().DeleteVolume(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, server.VolumeIDs[0]).
			Execute()).To(Succeed())

		By("going back")
		page.stop(ctx, c, deployment)
		c.env.StopPod(pod.Name)
		Expect(page.run(ctx, "provider-ids.now")).NotTo(ContainSubstring("Stopped"))
		Expect(c.providerIDs(ctx)).To(Equal(map[string]string{
			"os-second": "openstack:///RegionOne/" + servers["os-second"],
			"os-third":  "openstack:///RegionOne/" + servers["os-third"]}))
		Expect(c.machines(ctx)).To(HaveEach(HaveField("Annotations", Not(HaveKey(migratedAnnotation)))))
		change(ctx, c, class, func() {
			class.Provider, class.ProviderSpec, class.SecretRef = wasClass.Provider, wasClass.ProviderSpec, wasClass.SecretRef
		})
		Expect(c.serverIDs()).To(ConsistOf(servers["os-second"], servers["os-third"]))
	}, NodeTimeout(4*refusedTimeout))
})

// openStackWorld makes what Gardener's OpenStack provider leaves: Machines, one of which has no ID
// yet, their servers, and the manager's Deployment, Secret and MachineClass.
func (c *cluster) openStackWorld(ctx SpecContext) (*appsv1.Deployment, *v1alpha1.MachineClass, map[string]string) {
	GinkgoHelper()
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name}
	}
	labels := map[string]string{"app": "kubernetes", "role": "machine-controller-manager"}
	deployment := &appsv1.Deployment{ObjectMeta: named("openstack"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "idle", Image: "idle"}}}},
	}}
	Expect(c.Create(ctx, deployment)).To(Succeed())
	secret := secretIn(c.env.Namespace(), "openstack", corev1.SecretTypeOpaque)
	secret.Finalizers = []string{secretFinalizer}
	Expect(c.Create(ctx, secret)).To(Succeed())
	class := &v1alpha1.MachineClass{ObjectMeta: named("worker"), Provider: "openstack",
		ProviderSpec: rawSpec(providerSpec{"region": "RegionOne"}),
		SecretRef:    &corev1.SecretReference{Namespace: c.env.Namespace(), Name: secret.Name}}
	class.Finalizers = []string{classFinalizer}
	Expect(c.Create(ctx, class)).To(Succeed())
	servers := map[string]string{}
	for _, name := range []string{"os-first", "os-second", "os-third"} {
		servers[name] = c.fromOpenStack(ctx, name)
		c.createMachine(ctx, name, class.Name)
		if name != "os-third" {
			c.changeMachine(ctx, name, func(machine *v1alpha1.Machine) {
				machine.Spec.ProviderID = "openstack:///RegionOne/" + servers[name]
			})
		}
	}
	// Nobody of OpenStack's is there to delete them.
	DeferCleanup(func(ctx SpecContext) {
		for name, id := range servers {
			machine := &v1alpha1.Machine{ObjectMeta: named(name)}
			change(ctx, c, machine, func() { machine.Finalizers = nil })
			Expect(c.Delete(ctx, machine)).To(Succeed())
			c.deleteByHand(ctx, id)
			Expect(client.IgnoreNotFound(c.target.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))).
				To(Succeed())
		}
		change(ctx, c, class, func() { class.Finalizers = nil })
		for _, name := range []string{"openstack", secretName} {
			stored := &corev1.Secret{ObjectMeta: named(name)}
			change(ctx, c, stored, func() { stored.Finalizers = nil })
		}
	})
	return deployment, class, servers
}

// providerIDs returns the ProviderIDs of the Machines by their names.
func (c *cluster) providerIDs(ctx context.Context) (map[string]string, error) {
	machines, err := c.machines(ctx)
	ids := map[string]string{}
	for i := range machines {
		ids[machines[i].Name] = machines[i].Spec.ProviderID
	}
	return ids, err
}

// fromOpenStack makes a server as Gardener's OpenStack provider does: with a NIC and a volume
// that are resources of their own, and with tags instead of labels.
func (c *cluster) fromOpenStack(ctx context.Context, name string) (serverID string) {
	GinkgoHelper()
	const project, region = iaasmock.DefaultProjectID, iaasmock.DefaultRegion
	size := int64(20)
	nic, err := c.api().CreateNic(ctx, project, region, iaasmock.DefaultNetworkID).
		CreateNicPayload(iaas.CreateNicPayload{Name: &name}).Execute()
	Expect(err).NotTo(HaveOccurred())
	volume, err := c.api().CreateVolume(ctx, project, region).
		CreateVolumePayload(iaas.CreateVolumePayload{
			Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone,
			Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
		}).Execute()
	Expect(err).NotTo(HaveOccurred())
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{nic.GetId()}},
	})
	payload.Metadata = map[string]any{"kubernetes.io-cluster-" + clusterName: "1", "kubernetes.io-role-node": "1"}
	payload.BootVolume = &iaas.BootVolume{Source: iaas.NewBootVolumeSource(volume.GetId(), "volume")}
	server, err := c.api().CreateServer(ctx, project, region).CreateServerPayload(*payload).Execute()
	Expect(err).NotTo(HaveOccurred())
	return server.GetId()
}

// deleteByHand deletes a server with its NIC and volume, by hand.
func (c *cluster) deleteByHand(ctx context.Context, serverID string) {
	GinkgoHelper()
	const project, region = iaasmock.DefaultProjectID, iaasmock.DefaultRegion
	server, exists := c.env.Cloud().Server(serverID)
	Expect(exists).To(BeTrue(), "server %s is gone", serverID)
	Expect(c.env.Cloud().RemoveServer(serverID)).To(Succeed())
	for _, id := range server.NICIDs {
		Expect(c.api().DeleteNic(ctx, project, region, iaasmock.DefaultNetworkID, id).Execute()).To(Succeed())
	}
	for _, id := range server.VolumeIDs {
		Expect(c.api().DeleteVolume(ctx, project, region, id).Execute()).To(Succeed())
	}
}
