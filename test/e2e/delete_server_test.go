// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// apiAhead is how far the API's clock is ahead of what it says of its servers: they are old to who goes
// by the Date of its answers.
const apiAhead = 2 * time.Hour

var _ = Describe("mcm-stackit delete server", Ordered, ContinueOnFailure, longest, func() {
	var (
		// other has a control cluster and a target of its own, and env's cloud.
		env, other *localenv.Env
		c, d       *cluster
		command    *command
	)

	BeforeAll(func(ctx SpecContext) {
		old := func(cloud http.Handler) http.Handler {
			watched := conformance.Watch(GinkgoT(), cloud)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(apiAhead).UTC().Format(http.TimeFormat))
				watched.ServeHTTP(w, r)
			})
		}
		// Nodes are those that the specs make.
		quiet := []localenv.Option{
			localenv.WithoutManager(), localenv.WithoutSidecar(), localenv.WithJoinDuration(time.Hour),
		}
		env = startEnvironment(ctx, append(quiet, localenv.WithTargetCluster(), localenv.WithCloudMiddleware(old))...)
		other = startEnvironment(ctx, quiet...)
		command = newCommand(env)
	}, NodeTimeout(5*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		c, d = newQuietCluster(ctx, env), newQuietCluster(ctx, other)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
	})

	// server makes one of the cluster, which runs.
	server := func(ctx context.Context, name string) string {
		id := c.makeServer(ctx, name, machineLabels(name, "worker", clusterName))
		Expect(env.Cloud().SetServerStatus(id, "ACTIVE", "")).To(Succeed())
		return id
	}
	// machine makes a server's Machine in a control cluster.
	machine := func(ctx context.Context, in *cluster, name, id string) *v1alpha1.Machine {
		made := in.createMachine(ctx, name, "worker")
		change(ctx, in, made, func() { made.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, id) })
		return made
	}
	args := func(words ...string) []string {
		return append([]string{"delete", "server", "--target-kubeconfig=" + env.TargetKubeconfigPath()}, words...)
	}
	// expectRefused deletes nothing without a question, and says why.
	expectRefused := func(ctx context.Context, says string, words ...string) {
		GinkgoHelper()
		before := c.serverIDs()
		result := command.run(ctx, append(words, "--yes")...)
		Expect(result.Code).To(Equal(report.ExitWrong), result.Stderr)
		Expect(result.Stdout).To(ContainSubstring(says))
		Expect(c.serverIDs()).To(ConsistOf(before))
	}
	// elsewhere runs the command from the other control cluster, which has the class and the Secret, too.
	elsewhere := func(ctx context.Context) {
		GinkgoHelper()
		secret := d.createSecret(ctx, nil)
		change(ctx, d, secret, func() { secret.Data["serviceAccountKey"] = env.ServiceAccountKey() })
		d.createClass(ctx, "worker", specWith(nil))
		before := command.env
		DeferCleanup(func() { command.env = before })
		command.env = append(before[:len(before):len(before)], "KUBECONFIG="+other.KubeconfigPath())
	}

	It("deletes the orphans that are named, and nothing else", func(ctx SpecContext) {
		lost, owned, node := server(ctx, "lost-1"), server(ctx, "owned-1"), server(ctx, "joined-1")
		machine(ctx, c, "owned-1", owned)
		c.createNode(ctx, "joined-1", node, corev1.ConditionTrue)
		going := server(ctx, "lost-2")
		Expect(c.api().DeleteServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, going).Execute()).To(Succeed())
		missing := "20000000-0000-4000-8000-000000000009"

		result := command.run(ctx, args("--yes", "server/"+lost, owned, node, going, missing, lost)...)
		Expect(result.Code).To(Equal(report.ExitUnknown), result.Stderr)
		Expect(strings.Split(strings.TrimSpace(result.Stdout), "\n")).To(ConsistOf(
			"server/"+lost+" gone",
			HavePrefix("server/"+owned+" refused: Machine "+env.Namespace()+"/owned-1 names it; both go with: kubectl"),
			HavePrefix("server/"+node+" refused: Node joined-1 of the target cluster is this server, and Ready"),
			Or(Equal("server/"+going+" gone"), HavePrefix("server/"+going+" not found in project")),
			"server/"+missing+" not found: not found in project "+iaasmock.DefaultProjectID+" in eu01"))
		Expect(result.Stderr).To(ContainSubstring("has 1 Machine in " + env.Namespace()))
		Expect(c.serverIDs()).To(ConsistOf(owned, node))

		By("what list prints")
		orphan := server(ctx, "lost-3")
		listed := command.run(ctx, "list", "servers", "--orphans", "-o", "name", "-n", env.Namespace())
		Expect(strings.Fields(listed.Stdout)).To(ContainElement(HaveSuffix(orphan)))
		Expect(command.run(ctx, args("--yes", "server/"+orphan)...)).To(HaveField("Code", report.ExitFine))
		Expect(c.serverIDs()).To(ConsistOf(owned, node))
	}, SpecTimeout(3*time.Minute))

	It("deletes no live server after a restore: Ready Nodes, no Machines", func(ctx SpecContext) {
		var ids []string
		for i := range 3 {
			ids = append(ids, server(ctx, fmt.Sprintf("live-%d", i)))
			c.createNode(ctx, fmt.Sprintf("live-%d", i), ids[i], corev1.ConditionTrue)
		}
		expectRefused(ctx, "restore its Machine", args(ids...)...)

		By("without Nodes it asks, and says that there are no Machines")
		session := command.onTerminal(ctx, append([]string{"delete", "server", "--without-nodes"}, ids...)...)
		session.answer("has 0 Machines", "")
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("Nothing was deleted."))

		By("a Node that broke a moment ago")
		c.breakNode(ctx, "live-0", time.Now().Add(apiAhead-time.Minute))
		expectRefused(ctx, "Node live-0 of the target cluster is this server, and has not", args(ids[0])...)
		By("and long ago")
		c.breakNode(ctx, "live-0", time.Now().Add(-time.Minute))
		Expect(command.run(ctx, args("--yes", ids[0])...)).To(HaveField("Code", report.ExitFine))
		Expect(c.serverIDs()).To(ConsistOf(ids[1:]))
	}, SpecTimeout(3*time.Minute))

	It("deletes no live server from a stale control cluster", func(ctx SpecContext) {
		live, stale := server(ctx, "live-1"), "20000000-0000-4000-8000-000000000001"
		machine(ctx, c, "live-1", live)
		c.createNode(ctx, "live-1", live, corev1.ConditionTrue)
		elsewhere(ctx)
		machine(ctx, d, "stale-1", stale)
		expectRefused(ctx, "and Ready", args(live)...)

		By("whose Node has the name alone")
		Expect(c.target.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "live-1"}})).To(Succeed())
		c.createNode(ctx, "live-1", "", corev1.ConditionTrue)
		expectRefused(ctx, "and Ready", args(live)...)

		By("one that is in the making")
		young := server(ctx, "live-2")
		expectRefused(ctx, "somebody may be making it", args("--older-than=2h5m", young)...)
	}, SpecTimeout(3*time.Minute))

	It("deletes no live server of another cluster with the same label", func(ctx SpecContext) {
		live := server(ctx, "live-1")
		machine(ctx, c, "live-1", live)
		c.createNode(ctx, "live-1", live, corev1.ConditionTrue)
		elsewhere(ctx)
		d.createNode(ctx, "own-1", "20000000-0000-4000-8000-000000000001", corev1.ConditionTrue)
		wrong := []string{"delete", "server", live, "--target-kubeconfig=" + other.TargetKubeconfigPath()}
		expectRefused(ctx, "0 of 1 Nodes are servers of "+clusterLabel+"="+clusterName, wrong...)
		expectRefused(ctx, "and Ready", args(live)...)

		By("asking, it says that the target may be the wrong one")
		session := command.onTerminal(ctx, wrong...)
		session.answer("0 of 1 Node are servers of "+clusterLabel+"="+clusterName+": is this the right cluster", "no")
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(c.serverIDs()).To(ConsistOf(live))
	}, SpecTimeout(3*time.Minute))

	It("asks, and for the number of more than ten", func(ctx SpecContext) {
		var ids []string
		for i := range 11 {
			ids = append(ids, server(ctx, fmt.Sprintf("lost-%d", i)))
		}
		c.createNode(ctx, "other", ids[0], corev1.ConditionFalse)
		c.breakNode(ctx, "other", time.Now().Add(-time.Minute))
		expectRefused(ctx, "the number of more than 10 must be typed", args(ids...)...)
		for _, wrong := range []string{"yes", "10", ""} {
			session := command.onTerminal(ctx, args(ids...)...)
			session.answer("Delete 11 servers\\? Type 11: ", wrong)
			Expect(session.wait()).To(Equal(report.ExitWrong))
			Expect(c.serverIDs()).To(HaveLen(11))
		}
		session := command.onTerminal(ctx, args(ids[:1]...)...)
		session.answer("Delete 1 server\\? Type yes: ", "yes")
		Expect(session.wait()).To(BeZero())
		session = command.onTerminal(ctx, args(ids...)...) // the first is not found
		session.answer("Delete 10 servers\\? Type yes: ", "yes")
		Expect(session.wait()).To(Equal(report.ExitUnknown))
		Expect(c.serverIDs()).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("refuses a server whose Machine or Node appears while it asks", func(ctx SpecContext) {
		for _, appears := range []func(id string){
			func(string) { c.createMachine(ctx, "lost-1", "worker") },
			func(id string) { c.createNode(ctx, "lost-2", id, corev1.ConditionTrue) },
		} {
			id := server(ctx, "lost-1")
			session := command.onTerminal(ctx, args(id)...)
			Eventually(session.output).WithTimeout(time.Minute).Should(gbytes.Say("Delete 1 server\\? Type yes"))
			appears(id)
			<-time.After(6 * time.Second) // Machines and Nodes are read again
			session.write("yes")
			Expect(session.wait()).To(Equal(report.ExitWrong))
			Expect(session.output).To(gbytes.Say("refused: (Machine .* names it|Node lost-2 .* Ready)"))
			Expect(c.serverIDs()).To(ContainElement(id))
			Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(env.Namespace()))).To(Succeed())
		}
	}, SpecTimeout(3*time.Minute))

	It("refuses all where the Machines of all namespaces cannot be read", func(ctx SpecContext) {
		id := server(ctx, "lost-1")
		c.allowNamespace(ctx, "narrow")
		Eventually(ctx, func(ctx context.Context) ran { // the API server learns of roles in a moment
			return command.run(ctx, args("--yes", "--as=narrow", id)...)
		}).WithTimeout(upTimeout).WithPolling(poll).Should(And(HaveField("Code", report.ExitUnknown),
			HaveField("Stderr", ContainSubstring("only who can read the Machines of all namespaces knows"))))
		By("and one in another namespace keeps its server")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}
		Expect(c.Create(ctx, namespace)).To(Succeed())
		made := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "lost-1"}}
		Expect(c.Create(ctx, made)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, made)).To(Succeed()) })
		expectRefused(ctx, "Machine "+namespace.Name+"/lost-1 names it", args(id)...)
	}, SpecTimeout(3*time.Minute))
})

// createNode makes a Node of a server, which is Ready or not.
func (c *cluster) createNode(ctx context.Context, name, serverID string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if serverID != "" {
		node.Spec.ProviderID = "stackit://" + serverID
	}
	Expect(c.target.Create(ctx, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	Expect(c.target.Status().Update(ctx, node)).To(Succeed())
}

// breakNode makes a Node one that has not been Ready since then.
func (c *cluster) breakNode(ctx context.Context, name string, since time.Time) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(c.target.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(since),
	}}
	Expect(c.target.Status().Update(ctx, node)).To(Succeed())
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
	t.write(line)
}

func (t *terminal) write(line string) {
	GinkgoHelper()
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
