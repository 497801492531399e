// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	bootDuration   = 2 * time.Second
	deleteDuration = time.Second

	// upTimeout and downTimeout are ten times what the manager's own fixed steps take: a machine
	// is up about 10 s, and gone about 30 s, after its server could be.
	upTimeout   = 2 * time.Minute
	downTimeout = 5 * time.Minute
	poll        = 250 * time.Millisecond
)

// Specs that take minutes begin first, so that no process is left with a long one at the end.
const (
	longest = SpecPriority(2)
	long    = SpecPriority(1)
)

func TestE2E(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane: make test-e2e")
	}
	if err := localenv.Check(); err != nil {
		t.Fatal(err)
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

// startEnvironment starts a local environment for one spec, or for all of an ordered container.
func startEnvironment(ctx context.Context, options ...localenv.Option) *localenv.Env {
	GinkgoHelper()
	started, err := localenv.Start(ctx, append([]localenv.Option{
		localenv.WithProgress(func(line string) { GinkgoWriter.Println(line) }),
		localenv.WithCloudMiddleware(func(cloud http.Handler) http.Handler { return conformance.Watch(GinkgoT(), cloud) }),
		localenv.WithCloudOptions(iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration)),
	}, options...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		err := started.Err()
		started.Stop()
		Expect(err).NotTo(HaveOccurred(), "a part of the environment ended by itself")
	})
	return started
}

// root is the folder of the repository.
func root() string {
	GinkgoHelper()
	path, err := localenv.Root()
	Expect(err).NotTo(HaveOccurred())
	return path
}

// controllerLogs returns what the controllers have logged.
func controllerLogs(env *localenv.Env) map[localenv.Part]string {
	GinkgoHelper()
	logs := map[localenv.Part]string{}
	for _, part := range env.Controllers() {
		log, err := env.Logs(part)
		Expect(err).NotTo(HaveOccurred())
		logs[part] = log
	}
	return logs
}

// showLogs hands on the ends of what the controllers have logged.
func (c *cluster) showLogs() {
	GinkgoHelper()
	for part, logs := range controllerLogs(c.env) {
		const tail = 20000
		AddReportEntry(string(part), logs[max(0, len(logs)-tail):], ReportEntryVisibilityFailureOrVerbose)
	}
}

// cluster is a namespace's view of an environment, with what specs do there.
type cluster struct {
	env *localenv.Env
	// Client is for the control cluster, target for that of the Nodes; mostly one.
	client.Client
	target client.Client
	// audited are the first requests, which requests leaves out.
	audited int
	// attachments are the NICs and volumes of the cloud before the spec.
	attachments map[string]string
}

// newCluster returns the environment for one spec. When the spec ends, its
// Machines are deleted, and the cloud must not hold anything of ours.
func newCluster(env *localenv.Env) *cluster {
	GinkgoHelper()
	c := &cluster{env: env, Client: env.Client(), target: env.TargetClient(), attachments: attachments(env.Cloud())}
	DeferCleanup(func() { // after the next one, whose failures need the logs as well
		if CurrentSpecReport().Failed() {
			c.showLogs()
		}
	})
	DeferCleanup(c.deleteEverything, NodeTimeout(4*downTimeout))
	return c
}

func (c *cluster) deleteEverything(ctx SpecContext) {
	c.expectNoSecrets(ctx)

	inNamespace := client.InNamespace(c.env.Namespace())
	for _, object := range []client.Object{&v1alpha1.MachineDeployment{}, &v1alpha1.MachineSet{}, &v1alpha1.Machine{}} {
		Expect(c.DeleteAllOf(ctx, object, inNamespace)).To(Succeed())
	}
	Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty(), "Machines are left")
	c.expectNothingLeft(ctx)
	// The machine controller's finalizers go class by class, then Secret by Secret.
	c.deleteAndAwait(ctx, &v1alpha1.MachineClass{}, &v1alpha1.MachineClassList{})
	c.deleteAndAwait(ctx, &corev1.Secret{}, &corev1.SecretList{})
}

func (c *cluster) deleteAndAwait(ctx SpecContext, object client.Object, list client.ObjectList) {
	inNamespace := client.InNamespace(c.env.Namespace())
	Expect(c.DeleteAllOf(ctx, object, inNamespace)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (int, error) {
		err := c.List(ctx, list, inNamespace)
		return meta.LenList(list), err
	}).WithTimeout(downTimeout).WithPolling(poll).Should(BeZero(), "%T are left", object)
}

// attachments returns the IDs of all NICs and volumes, each with the ID of the
// server it is attached to, empty if there is none.
func attachments(cloud *iaasmock.Cloud) map[string]string {
	held := map[string]string{}
	for _, nic := range cloud.NICs() {
		held["NIC "+nic.ID] = nic.ServerID
	}
	for _, volume := range cloud.Volumes() {
		held["volume "+volume.ID] = volume.ServerID
	}
	return held
}

// expectNothingLeft looks for servers, and for NICs and volumes that were not
// there before, are not there any more, or are still attached.
func (c *cluster) expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty(), "servers are left")
	Expect(c.attachments).To(HaveEach(BeEmpty()), "attached before the spec")
	Expect(attachments(c.env.Cloud())).To(Equal(c.attachments), "NICs and volumes are left, lost or attached")
	var nodes corev1.NodeList
	Expect(c.target.List(ctx, &nodes)).To(Succeed())
	Expect(nodes.Items).To(BeEmpty(), "Nodes are left")
}
