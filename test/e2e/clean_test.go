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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
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
		env = startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar())
		command = newCommand(env)
	}, NodeTimeout(5*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		c = newQuietCluster(ctx, env)
		c.createSecret(ctx, nil)
	})

	orphan := func(ctx context.Context) string {
		return c.makeServer(ctx, "orphan-1", machineLabels("orphan-1", "worker", clusterName))
	}

	It("deletes orphans of the cluster, and nothing else", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
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
		shown := command.run(ctx, "clean", thisCluster, "--older-than=0s", "--dry-run", "-o=json")
		Expect(shown.Code).To(BeZero(), shown.Stderr)
		var plan clean.Plan
		Expect(json.Unmarshal([]byte(shown.Stdout), &plan)).To(Succeed())
		Expect(plan.Orphans).To(ConsistOf(HaveField("ID", gone[0]), HaveField("ID", gone[1])))
		Expect(c.serverIDs()).To(ConsistOf(append(stay, gone...)))

		By("deleting them")
		deleted := command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes")
		Expect(deleted.Code).To(BeZero(), deleted.Stderr)
		Expect(deleted.Stdout).To(And(ContainSubstring(gone[0]+" (orphan-1) deleted"), ContainSubstring(gone[1]+" (orphan-2) deleted")))
		Expect(deleted.Stderr).To(And(
			ContainSubstring("Servers that belong to Machines and stay: 3."),
			ContainSubstring("\n  kubectl -n "+env.Namespace()+" delete machine by-provider-id\n"),
			ContainSubstring("it carries the label of another cluster, too: example.org/cluster=other,"+clusterLabel+"="+clusterName)))
		Expect(c.serverIDs()).To(ConsistOf(stay))
	}, SpecTimeout(3*time.Minute))

	DescribeTable("never touches a server that a Machine names by its ProviderID", func(ctx SpecContext, providerID string) {
		c.createClass(ctx, "worker", specWith(nil))
		id := orphan(ctx)
		machine := c.createMachine(ctx, "another-name", "worker")
		change(ctx, c, machine, func() { machine.Spec.ProviderID = fmt.Sprintf(providerID, id) })
		Expect(command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes").Code).To(BeZero())
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
		result := command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes", second)
		Expect(result.Code).To(Equal(finding.ExitWrong))
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
		Expect(command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes", "--namespaces="+env.Namespace()).Code).To(BeZero())
		Expect(c.serverIDs()).To(ConsistOf(id))

		By("for somebody who may see one namespace alone")
		c.allowNamespace(ctx, "narrow")
		var result ran
		args := []string{"clean", thisCluster, "--older-than=0s", "--yes", "--as=narrow"}
		Eventually(ctx, func(ctx context.Context) string { // the API server learns of roles in a moment
			result = command.run(ctx, append(args, "--namespaces="+env.Namespace())...)
			return result.Stderr
		}).WithTimeout(upTimeout).WithPolling(poll).Should(ContainSubstring("Mind: only the Machines of " + env.Namespace() + " can be read"))
		Expect(result.Code).To(Equal(finding.ExitUsage))
		Expect(result.Stderr).To(ContainSubstring("the cluster's name must be typed on a terminal"))
		result = command.run(ctx, args...)
		Expect(result.Code).To(Equal(finding.ExitUnknown))
		Expect(result.Stderr).To(ContainSubstring("name the namespaces that have this cluster's with --namespaces"))
		Expect(c.serverIDs()).To(ConsistOf(id))
	}, SpecTimeout(3*time.Minute))

	It("does what the examples of its help say", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(providerSpec{"labels": map[string]any{clusterLabel: "shoot--demo--laptop"}}))
		lines := regexp.MustCompile(`(?m)^  mcm-stackit (clean --cluster kubernetes.*)$`).FindAllStringSubmatch(command.run(ctx, "clean", "--help").Stdout, -1)
		Expect(lines).NotTo(BeEmpty())
		for _, line := range lines {
			Expect(command.run(ctx, strings.Fields(line[1])...)).To(HaveField("Code", 0), line[1])
		}
	})

	It("leaves alone what is young, or not asked for", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		c.createMachine(ctx, "owned", "worker")
		young, named := orphan(ctx), c.makeServer(ctx, "orphan-2", machineLabels("orphan-2", "worker", clusterName))
		owned := c.makeServer(ctx, "owned", machineLabels("owned", "worker", clusterName))

		result := command.run(ctx, "clean", thisCluster, "--yes")
		Expect(result.Code).To(BeZero(), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring("Server " + young + " orphan-1 is left alone: it is younger than 10m0s."))
		Expect(c.serverIDs()).To(ConsistOf(young, named, owned))

		result = command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes", named, owned)
		Expect(result.Code).To(Equal(finding.ExitWrong), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring("kubectl -n " + env.Namespace() + " delete machine owned"))
		Expect(c.serverIDs()).To(ConsistOf(young, owned))
	}, SpecTimeout(3*time.Minute))

	DescribeTable("deletes nothing where it cannot be told what is an orphan", func(ctx SpecContext, prepare func(context.Context), args []string, code int, says string) {
		prepare(ctx)
		id := orphan(ctx)
		result := command.run(ctx, append([]string{"clean", thisCluster, "--older-than=0s", "--yes"}, args...)...)
		Expect(result.Code).To(Equal(code), result.Stderr)
		Expect(result.Stderr).To(ContainSubstring(says))
		Expect(c.serverIDs()).To(ConsistOf(id))
	},
		Entry("the wrong control cluster: none of its classes carries the label", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(providerSpec{"labels": map[string]any{clusterLabel: "shoot--test--other"}}))
		}, nil, finding.ExitUnknown, "no MachineClass carries the label"),
		Entry("the wrong control cluster, with credentials", func(context.Context) {}, []string{"--secret=" + secretName},
			finding.ExitUsage, "the cluster's name must be typed on a terminal"),
		Entry("a class of another cluster with the same label", func(ctx context.Context) {
			c.createClass(ctx, "another", specWith(nil))
		}, nil, finding.ExitUsage, "Mind: no MachineClass that carries "+clusterLabel+"="+clusterName+" is called worker: "),
		Entry("a class of the same label in another project", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "elsewhere", func(data map[string][]byte) { data["projectId"] = []byte("99999999-0000-4000-8000-000000000001") })
		}, []string{"--secret=" + secretName}, finding.ExitUsage, "the cluster's name must be typed on a terminal"),
		Entry("a file with a Secret of another project by the name of the class's", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "elsewhere", func(data map[string][]byte) { data["projectId"] = []byte("99999999-0000-4000-8000-000000000001") })
			c.writeSecret(file, "elsewhere")
		}, []string{"--filename=" + file}, finding.ExitUsage, "the cluster's name must be typed on a terminal"),
		Entry("a control cluster that does not answer", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
		}, []string{"--server=https://127.0.0.1:1"}, finding.ExitUnknown, "listing Machines"),
		Entry("a class that cannot be read", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.createClass(ctx, "broken", specWith(providerSpec{"labels": "none"}))
		}, nil, finding.ExitUnknown, "broken: its providerSpec.labels cannot be read"),
		Entry("a class whose Secret is gone", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			c.useSecret(ctx, "worker", "gone", nil)
		}, nil, finding.ExitUnknown, "Secret default/gone is not there"),
		Entry("a list of servers that fails", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
			env.Cloud().Inject(iaasmock.Fault{Operation: "ListServers", Status: 403})
		}, nil, finding.ExitUnknown, "not authorized"),
		Entry("no terminal, and nobody to ask", func(ctx context.Context) {
			c.createClass(ctx, "worker", specWith(nil))
		}, []string{"--yes=false"}, finding.ExitUsage, "standard input is no terminal"),
	)

	It("asks on a terminal", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		id := orphan(ctx)
		session := command.onTerminal(ctx, "clean", thisCluster, "--older-than=0s")
		session.answer("Servers to delete: 1. Type yes", "no")
		Expect(session.wait()).To(Equal(finding.ExitWrong))
		Expect(c.serverIDs()).To(ConsistOf(id))

		session = command.onTerminal(ctx, "clean", thisCluster, "--older-than=0s")
		session.answer("Servers to delete: 1. Type yes", "yes")
		Expect(session.wait()).To(BeZero())
		Expect(c.serverIDs()).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	DescribeTable("leaves alone a server whose Machine appears while it asks", func(ctx SpecContext, faults ...iaasmock.Fault) {
		c.createClass(ctx, "worker", specWith(nil))
		id := orphan(ctx)
		session := command.onTerminal(ctx, "clean", thisCluster, "--older-than=0s")
		Eventually(session.output).WithTimeout(time.Minute).Should(gbytes.Say("Servers to delete: 1. Type yes"))
		c.createMachine(ctx, "orphan-1", "worker")
		for i := range faults {
			env.Cloud().Inject(faults[i])
		}
		session.write("yes")
		Expect(session.wait()).To(Equal(finding.ExitWrong))
		Expect(session.output).To(gbytes.Say("left alone: Machine " + env.Namespace() + "/orphan-1 names it"))
		Expect(c.serverIDs()).To(ConsistOf(id))
	},
		Entry("and that the API finds"),
		Entry("and that the API does not find for a moment", iaasmock.Fault{Operation: "GetServer", Status: http.StatusNotFound, Count: 1}),
	)

	It("leaves alone a server whose Machine appears before its DELETE is repeated", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		id := orphan(ctx)
		env.Cloud().Inject(iaasmock.Fault{Operation: "DeleteServer", Server: id, Status: http.StatusTooManyRequests, Count: 1,
			Header: http.Header{"Retry-After": {"3"}}})
		before := env.Cloud().CallCounts()["DeleteServer"]
		session := command.onTerminal(ctx, "clean", thisCluster, "--older-than=0s", "--yes")
		Eventually(func() int { return env.Cloud().CallCounts()["DeleteServer"] }).WithTimeout(time.Minute).Should(Equal(before + 1))
		c.createMachine(ctx, "orphan-1", "worker")
		Expect(session.wait()).To(Equal(finding.ExitWrong))
		Expect(session.output).To(And(gbytes.Say("deleting: 0 of 1 done"),
			gbytes.Say("left alone: Machine "+env.Namespace()+"/orphan-1 names it; but its deletion may have been requested before")))
		Expect(env.Cloud().CallCounts()["DeleteServer"]).To(Equal(before + 1))
		Expect(c.serverIDs()).To(ConsistOf(id))
	}, SpecTimeout(3*time.Minute))

	It("has the cluster's name typed where the classes are gone", func(ctx SpecContext) {
		id := orphan(ctx)
		args := []string{"clean", thisCluster, "--older-than=0s", "--yes", "--secret=" + secretName}
		session := command.onTerminal(ctx, args...)
		session.answer("Type the cluster's name", "yes")
		Expect(session.wait()).To(Equal(finding.ExitWrong))
		Expect(c.serverIDs()).To(ConsistOf(id))

		session = command.onTerminal(ctx, args...)
		session.answer("Type the cluster's name", clusterName)
		Expect(session.wait()).To(BeZero())
		Expect(c.serverIDs()).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	It("says which deletion failed", func(ctx SpecContext) {
		c.createClass(ctx, "worker", specWith(nil))
		stuck, gone := orphan(ctx), c.makeServer(ctx, "orphan-2", machineLabels("orphan-2", "worker", clusterName))
		env.Cloud().Inject(iaasmock.Fault{Operation: "DeleteServer", Server: stuck, Status: 403})
		result := command.run(ctx, "clean", thisCluster, "--older-than=0s", "--yes")
		Expect(result.Code).To(Equal(finding.ExitWrong))
		Expect(result.Stdout).To(ContainSubstring(gone + " (orphan-2) deleted"))
		Expect(result.Stderr).To(ContainSubstring(stuck + " (orphan-1) is not deleted: PermissionDenied"))
		Expect(c.serverIDs()).To(ConsistOf(stuck))
	}, SpecTimeout(3*time.Minute))
})

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
