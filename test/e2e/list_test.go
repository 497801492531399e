// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// As in Gardener: the Machines are in the seed, to which the operator is logged in, and the Nodes
// are in another cluster.
var _ = Describe("mcm-stackit list and describe, in a seed", Ordered, long, func() {
	var (
		c       *cluster
		command *command
		names   []string
	)
	const cluster = clusterLabel + "=" + clusterName

	// list runs list until its output matches.
	list := func(ctx context.Context, match OmegaMatcher) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) ran { return command.run(ctx, "list", "--all") }).
			WithTimeout(downTimeout).WithPolling(poll).Should(match)
	}
	says := func(code int, stdout ...OmegaMatcher) OmegaMatcher {
		return And(HaveField("Code", code), HaveField("Stdout", And(stdout...)))
	}

	BeforeAll(func(ctx SpecContext) {
		env := startEnvironment(ctx, localenv.WithTargetCluster(), localenv.WithSidecarArgs("--leader-elect=true"),
			localenv.WithCloudOptions(iaasmock.WithBootDuration(0)))
		c, command = newCluster(env), newCommand(env)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		deployment := c.newDeployment("worker", "worker", 2)
		// A Machine whose Node is gone is to be looked at before it is replaced.
		deployment.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
			MachineHealthTimeout: &metav1.Duration{Duration: time.Hour}}
		Expect(c.Create(ctx, deployment)).To(Succeed())
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(2))
		machines, err := c.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		names = []string{machines[0].Name, machines[1].Name}
		var nodes corev1.NodeList
		Expect(c.List(ctx, &nodes)).To(Succeed())
		Expect(nodes.Items).To(BeEmpty(), "the seed has no Nodes")
	})

	It("says that a healthy cluster is healthy", func(ctx SpecContext) {
		got := command.run(ctx, "list")
		Expect(got).To(And(HaveField("Code", 0), HaveField("Stderr", BeEmpty())))
		Expect(got.Stdout).To(And(
			MatchRegexp(`(?m)^2 Machines ready +worker +Running +- +ACTIVE +yes +- +-$`),
			HaveSuffix(cluster+": 2 Machines, 2 ready, 2 servers, 0 orphans\n")))
		Expect(command.run(ctx, "list", "--all").Stdout).To(
			MatchRegexp(`(?m)^%s +worker +Running +[-0-9a-f]{36} +ACTIVE +yes +\d+s +-$`, names[0]))
		Expect(command.run(ctx, "describe", "server", names[0])).To(says(0,
			MatchRegexp(`(?m)^Machine: +%s$`, names[0]), MatchRegexp(`(?m)^Addresses: +10\.\d+\.\d+\.\d+`)))

		got = command.run(ctx, "describe", "machine", names[0])
		Expect(got).To(And(HaveField("Code", 0), HaveField("Stderr", BeEmpty())))
		Expect(got.Stdout).To(And(
			MatchRegexp(`(?m)^Ready: +yes$`), MatchRegexp(`(?m)^Owner: +MachineSet worker-`),
			MatchRegexp(`(?m)^Server: +[-0-9a-f]{36}\nMachine: .*\nState: +ACTIVE$`), Not(ContainSubstring("remedy"))))
		Expect(command.run(ctx, "describe", "machine", "nobody")).To(And(HaveField("Code", 2),
			HaveField("Stderr", "there is no Machine "+c.env.Namespace()+"/nobody: check the namespace (-n)\n")))

		Expect(command.run(ctx, "list", "servers", "--cluster", clusterLabel+"=typo")).
			To(says(2, HaveSuffix("cluster "+clusterLabel+"=typo unknown: no MachineClass here and no server has this label\n")))

		silent := &canaries{env: c.env}
		for _, args := range [][]string{{"list", "-o", "json"}, {"list", "servers", "-o", "wide"},
			{"describe", "machine", names[0]}} {
			got = command.run(ctx, append([]string{"-v=9"}, args...)...)
			silent.expectNone(strings.Join(args, " "), got.Stdout+got.Stderr)
		}
	})

	It("says that readiness is old where the manager does not run, and what needs somebody", func(ctx SpecContext) {
		c.env.KillSidecar()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
		Expect(c.target.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).
			To(Succeed())
		Expect(client.IgnoreNotFound(c.target.Delete(ctx, node))).To(Succeed())
		lost := c.createMachine(ctx, "lost", "worker")
		c.changeMachine(ctx, "lost", func(machine *v1alpha1.Machine) {
			machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed")
		})
		list(ctx, says(0, MatchRegexp(`(?m)^%s +worker +Running +[-0-9a-f]{36} +ACTIVE +was yes `, names[0]),
			MatchRegexp(`READY is the state of \d+s ago: lease machine-controller of namespace `),
			ContainSubstring(": 3 Machines, 2 were ready, "), MatchRegexp(`(?m)^lost .* no server$`),
			ContainSubstring("  remedy: delete the Machine: its MachineSet, if it has one, creates another\n")))
		Expect(command.run(ctx, "list", "-A", "-o", "name")).To(HaveField("Stdout", ContainSubstring("machine/lost\n")))
		Expect(c.Delete(ctx, lost)).To(Succeed())

		By("letting the manager see that the Node of a Running Machine is gone")
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		list(ctx, says(0, MatchRegexp(`(?m)^%s +worker +Unknown +[-0-9a-f]{36} +ACTIVE +no `, names[0]),
			HaveSuffix("1 ready, 2 servers, 0 orphans\n")))
	})
})
