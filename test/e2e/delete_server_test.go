// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// apiAhead is how far the API's clock is ahead of what it says of its servers: they are old to who goes
// by the Date of its answers.
const apiAhead = 2 * time.Hour

var _ = Describe("mcm-stackit delete server", longest, func() {
	It("deletes the orphans that are named, once the cluster's name is typed, and nothing else", func(ctx SpecContext) {
		old := func(cloud http.Handler) http.Handler {
			watched := conformance.Watch(GinkgoT(), cloud)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(apiAhead).UTC().Format(http.TimeFormat))
				watched.ServeHTTP(w, r)
			})
		}
		// Nodes are those that the spec makes.
		env := startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithJoinDuration(time.Hour), localenv.WithTargetCluster(), localenv.WithCloudMiddleware(old))
		c, command := newQuietCluster(ctx, env), newCommand(env)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		// server makes one of the cluster, which runs.
		server := func(name string) string {
			id := c.makeServer(ctx, name, machineLabels(name, "worker", clusterName))
			Expect(env.Cloud().SetServerStatus(id, "ACTIVE", "")).To(Succeed())
			return id
		}
		args := func(words ...string) []string {
			return append([]string{"delete", "server", "--target-kubeconfig=" + env.TargetKubeconfigPath()}, words...)
		}
		lost, owned, node := server("lost-1"), server("owned-1"), server("joined-1")
		machine := c.createMachine(ctx, "owned-1", "worker")
		change(ctx, c, machine, func() { machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, owned) })
		joined := c.createReadyNode(ctx, "joined-1", node)
		going := server("lost-2")
		Expect(c.api().DeleteServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, going).Execute()).To(Succeed())
		missing := "20000000-0000-4000-8000-000000000009"

		By("saying what would go")
		refusals := []any{
			HavePrefix("server/" + owned + " refused: Machine " + env.Namespace() +
				"/owned-1 names it; delete both with: kubectl"),
			HavePrefix("server/" + node +
				" refused: Node joined-1 of the target cluster runs on this server: restore its Machine, or"),
			"server/" + missing + " not found: no server with this ID found in project " + iaasmock.DefaultProjectID +
				" in eu01: check ID, namespace and context"}
		result := command.run(ctx, args("--dry-run", "server/"+lost, owned, node, missing, lost)...)
		Expect(result.Code).To(Equal(report.ExitUnknown), result.Stderr)
		Expect(strings.Split(strings.TrimSpace(result.Stdout), "\n")).To(ConsistOf(refusals...))
		Expect(result.Stderr).To(And(ContainSubstring(lost+"   lost-1"),
			ContainSubstring("has 1 Machine with servers of this cluster in "+env.Namespace())))
		Expect(c.serverIDs()).To(ContainElements(lost, owned, node))

		By("asking for the cluster's name")
		question := "Delete 1 server of cluster " + clusterName + "\\? Type the cluster's name: "
		for _, wrong := range []string{"yes", "1", ""} {
			session := command.onTerminal(ctx, args(lost)...)
			session.answer(question, wrong)
			Expect(session.wait()).To(Equal(report.ExitWrong))
			Expect(session.output).To(gbytes.Say("Nothing was deleted."))
			Expect(c.serverIDs()).To(ContainElement(lost))
		}
		listed := command.run(ctx, "list", "servers", "--orphans", "-o", "name", "-n", env.Namespace())
		Expect(strings.Fields(listed.Stdout)).To(ContainElement(HaveSuffix(lost)))
		session := command.onTerminal(ctx, args(append(strings.Fields(listed.Stdout), owned, missing)...)...)
		session.answer("Type the cluster's name: ", clusterName)
		Expect(session.wait()).To(Equal(report.ExitUnknown))
		Expect(session.output).To(gbytes.Say("server/" + lost + " gone"))
		Eventually(c.serverIDs).WithTimeout(time.Minute).Should(ConsistOf(owned, node))

		By("refusing all where no Node is a server of the cluster")
		Expect(c.target.Delete(ctx, joined)).To(Succeed())
		c.createReadyNode(ctx, "another-1", missing)
		late := server("lost-3")
		result = command.run(ctx, args("--dry-run", late, node)...)
		Expect(result.Code).To(Equal(report.ExitWrong), result.Stderr)
		Expect(strings.Count(result.Stdout, " refused: none of the 1 Nodes of the target cluster runs on a server of "+
			clusterLabel+"="+clusterName)).
			To(Equal(2), result.Stdout)
	}, SpecTimeout(8*time.Minute))
})

// createReadyNode makes a Node of a server.
func (c *cluster) createReadyNode(ctx context.Context, name, serverID string) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = "stackit://" + serverID
	Expect(c.target.Create(ctx, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	Expect(c.target.Status().Update(ctx, node)).To(Succeed())
	return node
}

func (c *cluster) serverIDs() []string {
	var ids []string
	for _, server := range c.env.Cloud().Servers() {
		ids = append(ids, server.ID)
	}
	return ids
}

// terminal is a run of the command on a pseudo-terminal.
type terminal struct {
	process *exec.Cmd
	file    *os.File
	output  *gbytes.Buffer
}

func (c *command) onTerminal(ctx context.Context, args ...string) *terminal {
	GinkgoHelper()
	process := exec.CommandContext(ctx, c.path, args...)
	process.Env = c.env
	file, err := pty.Start(process)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = file.Close() })
	return &terminal{process: process, file: file, output: gbytes.BufferReader(file)}
}

// answer waits for a question, and types a line.
func (t *terminal) answer(question, line string) {
	GinkgoHelper()
	Eventually(t.output).WithTimeout(time.Minute).Should(gbytes.Say(question))
	_, err := t.file.WriteString(line + "\n")
	Expect(err).NotTo(HaveOccurred())
}

// wait returns the exit code, once all that was printed is read.
func (t *terminal) wait() int {
	GinkgoHelper()
	_ = t.process.Wait()
	Eventually(t.output.Closed).WithTimeout(time.Minute).Should(BeTrue())
	return t.process.ProcessState.ExitCode()
}
