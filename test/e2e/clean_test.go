// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("mcm-stackit clean", Ordered, ContinueOnFailure, func() {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("mcm-stackit-clean-%d.yaml", os.Getpid()))
	const thisCluster = "--cluster=" + clusterLabel + "=" + clusterName
	var (
		env     *localenv.Env
		c       *cluster
		command *command
	)

	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(os.RemoveAll, file)
		// Nodes are those that the specs make.
		env = startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(), localenv.WithJoinDuration(time.Hour))
		command = newCommand(env)
	}, NodeTimeout(5*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		c = newQuietCluster(ctx, env)
		c.createSecret(ctx, nil)
	})

	orphan := func(ctx context.Context) string {
		id := c.makeServer(ctx, "orphan-1", machineLabels("orphan-1", "worker", clusterName))
		Eventually(func() string {
			server, _ := env.Cloud().Server(id)
			return server.Status
		}).WithContext(ctx).WithTimeout(upTimeout).Should(Equal("ACTIVE"))
		return id
	}
	// now is clean of servers of any age, beside the target cluster.
	now := func(args ...string) []string {
		return append([]string{"clean", thisCluster, "--older-than=0s", "--target-kubeconfig=" + env.TargetKubeconfigPath()}, args...)
	}

	It("deletes orphans of the cluster, and nothing else", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		proof := c.prove(ctx, "worker")
		gone := []string{orphan(ctx), c.makeServer(ctx, "orphan-2", machineLabels("orphan-2", "worker", clusterName))}
		Expect(env.Cloud().SetServerStatus(gone[1], "DELETING", "")).To(Succeed())
		c.createMachine(ctx, "by-label", "worker")
		byID := c.createMachine(ctx, "by-provider-id", "worker")
		other := machineLabels("orphan-1", "worker", "shoot--test--other")
		twice := maps.Clone(other)
		twice["example.org/cluster"], twice[clusterLabel] = "other", clusterName
		stay := []string{
			c.makeServer(ctx, "by-label", machineLabels("by-label", "worker", clusterName)),
			c.makeServer(ctx, "by-label", machineLabels("by-label", "worker", clusterName)), // the manager's to judge
			c.makeServer(ctx, "another", machineLabels("another", "worker", clusterName)),
			c.makeServer(ctx, "orphan-1", other),
			c.makeServer(ctx, "orphan-1", twice),
			c.makeServer(ctx, "orphan-1", nil),
			c.makeServer(ctx, "orphan-1", map[string]string{clusterLabel: clusterName}),
		}
		change(ctx, c, byID, func() { byID.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, stay[2]) })

		By("showing them")
		stay = append(stay, proof)
		shown := command.run(ctx, now("--dry-run", "-o=json")...)
		Expect(shown.Code).To(BeZero(), shown.Stderr)
		var plan struct{ Orphans []clean.Orphan }
		Expect(json.Unmarshal([]byte(shown.Stdout), &plan)).To(Succeed())
		Expect(plan.Orphans).To(ConsistOf(HaveField("ID", gone[0]), HaveField("ID", gone[1])))
		Expect(c.serverIDs()).To(ConsistOf(append(stay, gone...)))

		By("deleting them")
		deleted := command.run(ctx, now("--yes")...)
		Expect(deleted.Code).To(BeZero(), deleted.Stderr)
		Expect(deleted.Stdout).To(And(ContainSubstring(gone[0]+" (orphan-1) deleted"), ContainSubstring(gone[1]+" (orphan-2) deleted")))
		Expect(deleted.Stderr).To(And(
			ContainSubstring("Servers that belong to Machines and stay: 4."),
			ContainSubstring("\n  kubectl -n "+env.Namespace()+" delete machine by-provider-id\n"),
			ContainSubstring("it carries the label of another cluster, too: example.org/cluster=other,"+clusterLabel+"="+clusterName)))
		Expect(c.serverIDs()).To(ConsistOf(stay))
	}, SpecTimeout(3*time.Minute))

	DescribeTable("never touches a server that a Machine names by its ProviderID", func(ctx SpecContext, providerID string) {
		c.createClass(ctx, "worker", specWith(nil))
		id := orphan(ctx)
		machine := c.createMachine(ctx, "another-name", "worker")
		change(ctx, c, machine, func() { machine.Spec.ProviderID = fmt.Sprintf(providerID, id) })
		Expect(command.run(ctx, now("--yes")...).Code).To(BeZero())
		Expect(c.serverIDs()).To(ConsistOf(id))
	},
		Entry("this project's", "stackit://"+iaasmock.DefaultProjectID+"/%s"),
		Entry("another project's", "stackit://99999999-0000-4000-8000-000000000001/%s"),
		Entry("without a project", "stackit://%s"),
		Entry("OpenStack's", "openstack:///%s"),
		Entry("OpenStack's with a region", "openstack://eu01/%s"),
		Entry("Gardener's for OpenStack", "openstack:///eu01/%s"),
		Entry("the bare ID", "%s"),
		Entry("a form that nobody takes", "stackit:///%s/"),
	)

	It("says which server of a Machine is the second", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		first, second := orphan(ctx), orphan(ctx)
		machine := c.createMachine(ctx, "orphan-1", "worker")
		change(ctx, c, machine, func() { machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, first) })
		result := command.run(ctx, now("--yes", second)...)
		Expect(result.Code).To(Equal(report.ExitWrong))
		Expect(result.Stderr).To(And(ContainSubstring("it is a second server of Machine "+env.Namespace()+"/orphan-1, whose server is "+first),
			Not(ContainSubstring("delete machine"))))
		Expect(c.serverIDs()).To(ConsistOf(first, second))
	})

	It("sees Machines of all namespaces, whichever are named", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}
		Expect(c.Create(ctx, elsewhere)).To(Succeed())
		machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.Name, Name: "orphan-1"}}
		Expect(c.Create(ctx, machine)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, machine)).To(Succeed()) })
		id := orphan(ctx)
		Expect(command.run(ctx, now("--yes", "--namespaces="+env.Namespace())...).Code).To(BeZero())
		Expect(c.serverIDs()).To(ConsistOf(id))

		By("for somebody who may see one namespace alone")
		c.allowNamespace(ctx, "narrow")
		var result ran
		args := []string{"clean", thisCluster, "--older-than=0s", "--yes", "--as=narrow"}
		Eventually(ctx, func(ctx context.Context) string { // the API server learns of roles in a moment
			result = command.run(ctx, append(args, "--namespaces="+env.Namespace())...)
			return result.Stderr
		}).WithTimeout(upTimeout).WithPolling(poll).Should(ContainSubstring("only the Machines of " + env.Namespace() + " can be read"))
		Expect(result.Code).To(Equal(report.ExitWrong))
		result = command.run(ctx, args...)
		Expect(result.Code).To(Equal(report.ExitUnknown))
		Expect(result.Stderr).To(ContainSubstring("name the namespaces that have this cluster's with --namespaces"))
		Expect(c.serverIDs()).To(ConsistOf(id))
	}, SpecTimeout(3*time.Minute))

	It("does what the examples of its help say", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(providerSpec{"labels": map[string]any{clusterLabel: "shoot--demo--laptop"}}))
		lines := regexp.MustCompile(`(?m)^  mcm-stackit (clean --cluster kubernetes.*)$`).FindAllStringSubmatch(command.run(ctx, "clean", "--help").Stdout, -1)
		Expect(lines).NotTo(BeEmpty())
		for _, line := range lines {
			line := strings.ReplaceAll(line[1], "target.kubeconfig", env.TargetKubeconfigPath())
			Expect(command.run(ctx, strings.Fields(line)...)).To(HaveField("Code", 0), line)
		}
	})

	It("leaves alone what is young, or not asked for", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		c.createMachine(ctx, "owned", "worker")
		proof := c.prove(ctx, "worker")
		young, named := orphan(ctx), c.makeServer(ctx, "orphan-2", machineLabels("orphan-2", "worker", clusterName))
		owned := c.makeServer(ctx, "owned", machineLabels("owned", "worker", clusterName))

		result := command.run(ctx, "clean", thisCluster, "--yes")
		Expect(result.Code).To(BeZero(), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring("Server " + young + " orphan-1 is left alone: it is younger than 10m0s."))
		Expect(c.serverIDs()).To(ConsistOf(young, named, owned, proof))

		result = command.run(ctx, now("--yes", named, owned)...)
		Expect(result.Code).To(Equal(report.ExitWrong), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring("kubectl -n " + env.Namespace() + " delete machine owned"))
		Expect(c.serverIDs()).To(ConsistOf(young, owned, proof))
	}, SpecTimeout(3*time.Minute))

	DescribeTable("never deletes without a terminal what may be in use", func(ctx SpecContext, prepare func(context.Context, string), args []string, says string) {
		live := orphan(ctx)
		prepare(ctx, live)
		before := c.serverIDs()
		result := command.run(ctx, append(now("--yes"), args...)...)
		Expect(result.Code).To(Equal(report.ExitWrong), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring(says))
		Expect(c.serverIDs()).To(ConsistOf(before))
	},
		Entry("two control clusters with one class: from the one without Machines", func(ctx context.Context, _ string) {
			c.createClass(ctx, "worker", specWith(nil))
		}, nil, "no Machine of this control cluster names a server with "),
		Entry("servers with Ready Nodes", func(ctx context.Context, live string) {
			c.createClass(ctx, "worker", specWith(nil))
			c.prove(ctx, "worker")
			c.createNode(ctx, "live", live)
		}, nil, "Node live of the target cluster is this server"),
		Entry("no class, with credentials", func(context.Context, string) {}, []string{"--secret=" + secretName},
			"no Machine of this control cluster names a server with "),
		Entry("a file with a Secret of the project by the name of the class's", func(ctx context.Context, _ string) {
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "elsewhere", func(data map[string][]byte) { data["projectId"] = []byte(iaasmock.SecondProjectID) })
			c.writeSecret(file, "elsewhere")
		}, []string{"--filename=" + file}, "no Machine of this control cluster names a server with "),
		Entry("no target cluster is named", func(ctx context.Context, _ string) {
			c.createClass(ctx, "worker", specWith(nil))
			c.prove(ctx, "worker")
		}, []string{"--target-kubeconfig=none"}, "no target cluster was looked at"),
		Entry("more than half of the servers", func(ctx context.Context, _ string) {
			c.createClass(ctx, "worker", specWith(nil))
			c.prove(ctx, "worker")
			orphan(ctx)
		}, nil, "more than half of the cluster's servers: 2 of 3"),
		Entry("a pool that wants more Machines", func(ctx context.Context, _ string) {
			c.createClass(ctx, "worker", specWith(nil))
			c.prove(ctx, "worker")
			c.createDeployment(ctx, "worker", "worker", 1)
		}, nil, "wants 1 Machine and has 0"),
	)

	DescribeTable("deletes nothing where it cannot be told what is an orphan", func(ctx SpecContext, prepare func(context.Context), args []string, code int, says string) {
		prepare(ctx)
		c.prove(ctx, "worker")
		orphan(ctx)
		before := c.serverIDs()
		result := command.run(ctx, append(now("--yes"), args...)...)
		Expect(result.Code).To(Equal(code), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring(says))
		Expect(c.serverIDs()).To(ConsistOf(before))
	},
		Entry("the wrong control cluster: none of its classes carries the label", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(providerSpec{"labels": map[string]any{clusterLabel: "shoot--test--other"}}))
		}, nil, report.ExitUnknown, "no MachineClass carries the label"),
		Entry("a class of that name in another namespace, with a Secret of another project", func(ctx context.Context) {
			c.createClass(ctx, "other", specWith(nil))
			elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}
			Expect(c.Create(ctx, elsewhere)).To(Succeed())
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "elsewhere", func(data map[string][]byte) { data["projectId"] = []byte(iaasmock.SecondProjectID) })
			var class v1alpha1.MachineClass
			Expect(c.Get(ctx, client.ObjectKey{Namespace: env.Namespace(), Name: "worker"}, &class)).To(Succeed())
			Expect(c.Delete(ctx, &class)).To(Succeed())
			class.ObjectMeta = metav1.ObjectMeta{Namespace: elsewhere.Name, Name: "worker"}
			Expect(c.Create(ctx, &class)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, &class)).To(Succeed()) })
		}, nil, report.ExitUnknown, string(provider.ReasonNoPermission)),
		Entry("a control cluster that does not answer", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
		}, []string{"--server=https://127.0.0.1:1"}, report.ExitUnknown, "listing Machines"),
		Entry("a class that cannot be read", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.createClass(ctx, "broken", specWith(providerSpec{"labels": "none"}))
		}, nil, report.ExitUnknown, "broken: its providerSpec.labels cannot be read"),
		Entry("a class whose Secret is gone", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "gone", nil)
		}, nil, report.ExitUnknown, "Secret default/gone is not there"),
		Entry("a list of servers that fails", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			env.Cloud().Inject(iaasmock.Fault{Operation: "ListServers", Status: 403})
		}, nil, report.ExitUnknown, string(provider.ReasonNoPermission)),
		Entry("no terminal, and nobody to ask", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
		}, []string{"--yes=false"}, report.ExitUsage, "standard input is no terminal"),
	)

	It("asks on a terminal", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		proof, id := c.prove(ctx, "worker"), orphan(ctx)
		session := command.onTerminal(ctx, now()...)
		session.answer("Servers to delete: 1. Type yes", "no")
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(c.serverIDs()).To(ConsistOf(proof, id))

		session = command.onTerminal(ctx, now()...)
		session.answer("Servers to delete: 1. Type yes", "yes")
		Expect(session.wait()).To(BeZero())
		Expect(c.serverIDs()).To(ConsistOf(proof))
	}, SpecTimeout(3*time.Minute))

	DescribeTable("leaves alone a server whose Machine appears while it asks", func(ctx SpecContext, faults ...iaasmock.Fault) {
		c.createClass(ctx, "worker", specWith(nil))
		proof, id := c.prove(ctx, "worker"), orphan(ctx)
		session := command.onTerminal(ctx, now()...)
		Eventually(session.output).WithTimeout(time.Minute).Should(gbytes.Say("Servers to delete: 1. Type yes"))
		c.createMachine(ctx, "orphan-1", "worker")
		for i := range faults {
			env.Cloud().Inject(faults[i])
		}
		session.write("yes")
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("left alone: Machine " + env.Namespace() + "/orphan-1 names it"))
		Expect(c.serverIDs()).To(ConsistOf(proof, id))
	},
		Entry("and that the API finds"),
		Entry("and that the API does not find for a moment", iaasmock.Fault{Operation: "GetServer", Status: http.StatusNotFound, Count: 1}),
	)

	It("leaves alone a server whose Machine appears before its DELETE is repeated", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		proof, id := c.prove(ctx, "worker"), orphan(ctx)
		env.Cloud().Inject(iaasmock.Fault{Operation: "DeleteServer", Server: id, Status: http.StatusTooManyRequests, Count: 1,
			Header: http.Header{"Retry-After": {"3"}}})
		before := env.Cloud().CallCounts()["DeleteServer"]
		session := command.onTerminal(ctx, now("--yes")...)
		Eventually(func() int { return env.Cloud().CallCounts()["DeleteServer"] }).WithTimeout(time.Minute).Should(Equal(before + 1))
		c.createMachine(ctx, "orphan-1", "worker")
		Expect(session.wait()).To(Equal(report.ExitWrong)) // 429: it was not accepted
		Expect(session.output).To(And(gbytes.Say("deleting: 0 of 1 done"),
			gbytes.Say("is not deleted: left alone: Machine "+env.Namespace()+"/orphan-1 names it")))
		Expect(env.Cloud().CallCounts()["DeleteServer"]).To(Equal(before + 1))
		Expect(c.serverIDs()).To(ConsistOf(proof, id))
	}, SpecTimeout(3*time.Minute))

	It("has the cluster's name and the number typed, and the IDs given, where nothing links it", func(ctx SpecContext) {
		id, args := orphan(ctx), now("--secret="+secretName)
		session := command.onTerminal(ctx, args...)
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("Nothing is deleted."))
		Expect(c.serverIDs()).To(ConsistOf(id))

		for _, wrong := range []string{"yes", clusterName, clusterName + " 2"} {
			session = command.onTerminal(ctx, append(args, id)...)
			session.answer("Type the cluster's name and their number, "+clusterName+" 1,", wrong)
			Expect(session.wait()).To(Equal(report.ExitWrong))
			Expect(c.serverIDs()).To(ConsistOf(id))
		}

		session = command.onTerminal(ctx, append(args, id)...)
		session.answer("Type the cluster's name", clusterName+" 1")
		Expect(session.wait()).To(BeZero())
		Expect(c.serverIDs()).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	It("never deletes what a Node names, whoever types", func(ctx SpecContext) {
		id := orphan(ctx)
		c.createNode(ctx, "live", id)
		session := command.onTerminal(ctx, now("--secret="+secretName, id)...)
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("kubectl drain live, kubectl delete node live"))
		Expect(c.serverIDs()).To(ConsistOf(id))
	})

	It("prints the command that gives the IDs", func(ctx SpecContext) {
		id := orphan(ctx)
		result := command.run(ctx, now("--secret="+secretName, "--yes")...)
		line := regexp.MustCompile(`(?m)^  mcm-stackit (clean .*)$`).FindStringSubmatch(result.Stderr)
		Expect(line).To(HaveLen(2), result.Stderr)
		Expect(line[1]).To(HaveSuffix(id))
		session := command.onTerminal(ctx, strings.Fields(line[1])...)
		session.answer("Type the cluster's name", clusterName+" 1")
		Expect(session.wait()).To(BeZero())
		Expect(c.serverIDs()).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	DescribeTable("says what became of a server that it did not see go", func(ctx SpecContext, arg string, code int, says string) {
		c.createClass(ctx, "worker", specWith(nil))
		c.prove(ctx, "worker")
		id := orphan(ctx)
		env.Cloud().Inject(iaasmock.Fault{Operation: "DeleteServer", Server: id, NeverGone: true})
		result := command.run(ctx, now("--yes", arg)...)
		Expect(result.Code).To(Equal(code), result.Stderr)
		Expect(result.Stdout + result.Stderr).To(ContainSubstring("server " + id + " (orphan-1) " + says))
	},
		Entry("because nobody waits", "--wait=false", report.ExitFine, "is being deleted"),
		Entry("because it takes too long", "--timeout=3s", report.ExitUnknown, "may be deleted or not: not done within --timeout=3s: its deletion may have been requested"),
	)

	It("says which deletion failed", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		proofs := []string{c.prove(ctx, "first"), c.prove(ctx, "second")}
		stuck, gone := orphan(ctx), c.makeServer(ctx, "orphan-2", machineLabels("orphan-2", "worker", clusterName))
		env.Cloud().Inject(iaasmock.Fault{Operation: "DeleteServer", Server: stuck, Status: 403})
		result := command.run(ctx, now("--yes")...)
		Expect(result.Code).To(Equal(report.ExitWrong))
		Expect(result.Stdout).To(ContainSubstring(gone + " (orphan-2) deleted"))
		Expect(result.Stderr).To(ContainSubstring(stuck + " (orphan-1) is not deleted: " + string(provider.ReasonNoPermission)))
		Expect(c.serverIDs()).To(ConsistOf(append(proofs, stuck)))
	}, SpecTimeout(3*time.Minute))
})

// prove makes a server with its Machine and Node, by which the cluster is linked and its target
// proved, and returns the server's ID.
func (c *cluster) prove(ctx context.Context, name string) string {
	GinkgoHelper()
	id := c.makeServer(ctx, "proof-"+name, machineLabels("proof-"+name, "worker", clusterName))
	machine := c.createMachine(ctx, "proof-"+name, "worker")
	change(ctx, c, machine, func() { machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, id) })
	c.createNode(ctx, "proof-"+name, id)
	return id
}

// createNode makes a Ready Node of a server.
func (c *cluster) createNode(ctx context.Context, name, serverID string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "stackit://" + serverID}}
	Expect(c.target.Create(ctx, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	Expect(c.target.Status().Update(ctx, node)).To(Succeed())
}

func (c *cluster) serverIDs() []string {
	var ids []string
	for _, server := range c.env.Cloud().Servers() {
		ids = append(ids, server.ID)
	}
	return ids
}

// useSecret makes a class name another Secret, which is made if it is to have content.
func (c *cluster) useSecret(ctx context.Context, class, name string, change func(map[string][]byte)) {
	GinkgoHelper()
	if change != nil {
		var secret corev1.Secret
		Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: secretName}, &secret)).To(Succeed())
		changed := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: name}, Data: secret.Data}
		change(changed.Data)
		Expect(c.Create(ctx, &changed)).To(Succeed())
	}
	var object v1alpha1.MachineClass
	Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: class}, &object)).To(Succeed())
	object.SecretRef.Name = name
	Expect(c.Update(ctx, &object)).To(Succeed())
}

// writeSecret writes the credentials into a file, as a Secret of another name.
func (c *cluster) writeSecret(file, name string) {
	GinkgoHelper()
	text, err := json.Marshal(corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name},
		Data: map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion), "serviceAccountKey": c.env.ServiceAccountKey(),
		},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
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
