// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// built returns the absolute path of a program that make has built.
func built(path string) string {
	GinkgoHelper()
	absolute := filepath.Join(root(), path)
	Expect(absolute).To(BeAnExistingFile(), "run 'make test-e2e'")
	return absolute
}

// command is the built mcm-stackit as an operator runs it.
type command struct {
	path  string
	env   []string
	stdin string
}

// newCommand reaches the control cluster and the cloud of an environment.
func newCommand(env *localenv.Env) *command {
	GinkgoHelper()
	return &command{path: built("bin/mcm-stackit"), env: append([]string{
		"HOME=" + GinkgoT().TempDir(), "KUBECONFIG=" + env.KubeconfigPath(),
	}, env.CloudEnvironment()...)}
}

// ran is what a run of the command left behind.
type ran struct {
	Code           int
	Stdout, Stderr string
}

// run runs the command to its end, with what stdin has as standard input.
func (c *command) run(ctx context.Context, args ...string) ran {
	GinkgoHelper()
	process := exec.CommandContext(ctx, c.path, args...)
	process.Env, process.Stdin = slices.Clone(c.env), strings.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	process.Stdout, process.Stderr = &stdout, &stderr
	err := process.Run()
	var exit *exec.ExitError
	Expect(err == nil || errors.As(err, &exit)).To(BeTrue(), "%v", err)
	return ran{process.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// newQuietCluster returns an environment without controllers, for one spec of the command:
// what is there is what the spec makes. The environment is given, and emptied first.
func newQuietCluster(ctx context.Context, env *localenv.Env) *cluster {
	GinkgoHelper()
	c := &cluster{env: env, Client: env.Client(), target: env.TargetClient()}
	for _, object := range []client.Object{&v1alpha1.MachineDeployment{}, &v1alpha1.Machine{}, &v1alpha1.MachineClass{},
		&corev1.Secret{}} {
		Expect(c.DeleteAllOf(ctx, object, client.InNamespace(env.Namespace()))).To(Succeed())
	}
	Expect(c.target.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
	env.Cloud().ClearFaults()
	for _, server := range env.Cloud().Servers() {
		Expect(env.Cloud().RemoveServer(server.ID)).To(Succeed())
	}
	return c
}

// makeServer makes a server as the driver does, but with these labels only, and returns
// its ID.
func (c *cluster) makeServer(ctx context.Context, name string, labels map[string]string) string {
	GinkgoHelper()
	variables := map[string]string{}
	for _, variable := range c.env.CloudEnvironment() {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	config, err := spi.ConfigFromEnvironment(func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	})
	Expect(err).NotTo(HaveOccurred())
	session, err := (&spi.PluginSPIImpl{Config: config}).Session(spi.Credentials{
		ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(c.env.ServiceAccountKey()),
	})
	Expect(err).NotTo(HaveOccurred())
	size := int64(20)
	server, err := provider.NewClient(session, iaasmock.DefaultRegion).CreateServer(ctx, &provider.ServerRequest{
		Name: name, Labels: labels, Spec: &apis.ProviderSpec{
			MachineType: iaasmock.DefaultMachineType, Networking: &apis.Networking{NetworkID: iaasmock.DefaultNetworkID},
			BootVolume: &apis.BootVolume{Size: &size,
				Source: &apis.BootVolumeSource{Type: apis.SourceImage, ID: iaasmock.DefaultImageID}},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return server.ID
}

// machineLabels are those of the driver's, with the cluster's.
func machineLabels(machine, class, cluster string) map[string]string {
	return map[string]string{
		provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class, clusterLabel: cluster,
	}
}

// apiAhead is how far the API's clock is ahead of what it says of its servers: they are old to who goes
// by the Date of its answers.
const apiAhead = 2 * time.Hour

// As in Gardener: the Machines are in the seed, to which the operator is logged in, and the Nodes are in another
// cluster. No controllers run, as in a migration.
var _ = Describe("The operator's command", Ordered, longest, func() {
	var (
		c       *cluster
		command *command
		ids     = map[string]string{}
	)
	run := func(ctx context.Context, code int, args ...string) ran {
		GinkgoHelper()
		got := command.run(ctx, args...)
		Expect(got.Code).To(Equal(code), "%v: %s%s", args, got.Stdout, got.Stderr)
		(&canaries{env: c.env}).expectNone(strings.Join(args, " "), got.Stdout+got.Stderr)
		return got
	}
	deletion := func(words ...string) []string {
		return append([]string{"delete", "server", "--target-kubeconfig=" + c.env.TargetKubeconfigPath()}, words...)
	}

	BeforeAll(func(ctx SpecContext) {
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
		c, command = newQuietCluster(ctx, env), newCommand(env)
		c.createSecret(ctx, nil)
		c.createClass(ctx, "worker", specWith(nil))
		for _, name := range []string{"lost-1", "owned-1", "joined-1"} {
			ids[name] = c.makeServer(ctx, name, machineLabels(name, "worker", clusterName))
			Expect(env.Cloud().SetServerStatus(ids[name], "ACTIVE", "")).To(Succeed())
		}
		machine := c.createMachine(ctx, "owned-1", "worker")
		change(ctx, c, machine, func() {
			machine.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, ids["owned-1"])
		})
		c.createNode(ctx, "joined-1", ids["joined-1"])
	})

	It("is a plugin that kubectl finds, completes and runs", func(ctx SpecContext) {
		kubectl := newPlugin()
		Expect(kubectl.run(ctx, "plugin", "list", "--name-only").Stdout).To(ContainSubstring("kubectl-mcm_stackit\n"))
		Expect(kubectl.run(ctx, "mcm-stackit", "list", "--help").Stdout).To(ContainSubstring("kubectl mcm-stackit list"))
		Expect(kubectl.run(ctx, "mcm-stackit", "bogus")).To(HaveField("Code", report.ExitUsage))
		Expect(kubectl.run(ctx, "__complete", "mcm-stackit", "des")).To(HaveField("Stdout", HavePrefix("describe\t")))
	})

	It("finds nothing wrong in credentials, a class and what kubectl gets", func(ctx SpecContext) {
		got := run(ctx, 0, "doctor")
		for _, line := range []string{"fine     token: granted and accepted", "fine     reads: a server: allowed",
			"fine     MachineClass " + c.env.Namespace() + "/worker: valid", "not tried: whether manager and sidecar run"} {
			Expect(got.Stdout).To(ContainSubstring(line))
		}
		kubectl := newPlugin()
		kubectl.env = append(kubectl.env, "KUBECONFIG="+c.env.KubeconfigPath())
		command.stdin = kubectl.run(ctx, "get", "-o", "yaml", "machineclass/worker", "secret/"+secretName).Stdout
		got = run(ctx, 0, "validate", "--online", "-f", "-")
		Expect(got.Stderr).To(ContainSubstring("Checked 1 MachineClass, 1 Secret: 0 wrong, 0 unknown"))
	})

	It("shows Machines and servers side by side, and all about each", func(ctx SpecContext) {
		got := run(ctx, 0, "list")
		Expect(got.Stdout).To(And(MatchRegexp(`(?m)^owned-1 +worker +- +%s +ACTIVE `, ids["owned-1"]),
			MatchRegexp(`(?m)^- +worker +- +%s +ACTIVE +- +\S+ +orphan$`, ids["lost-1"])))
		Expect(run(ctx, 0, "describe", "machine", "owned-1").Stdout).To(ContainSubstring("name: " + ids["owned-1"]))
		Expect(run(ctx, 0, "describe", "server", "lost-1").Stdout).To(And(MatchRegexp(`(?m)^addresses:\n- 10\.`),
			ContainSubstring("kind: orphan")))
		Expect(run(ctx, 2, "describe", "machine", "nobody").Stderr).To(ContainSubstring("nobody was not found"))
	})

	It("deletes the orphans that are named, once the cluster's name is typed, and nothing else", func(ctx SpecContext) {
		missing := "20000000-0000-4000-8000-000000000009"
		result := run(ctx, 2, deletion("--dry-run", "server/"+ids["lost-1"], ids["owned-1"], ids["joined-1"], missing)...)
		Expect(strings.Split(strings.TrimSpace(result.Stdout), "\n")).To(ConsistOf(
			HavePrefix("server/"+ids["owned-1"]+" refused: Machine "+c.env.Namespace()+"/owned-1 names it"),
			HavePrefix("server/"+ids["joined-1"]+" refused: Node joined-1 of the target cluster names it"),
			HavePrefix("server/"+missing+" not found: ")))
		Expect(result.Stderr).To(ContainSubstring(ids["lost-1"] + "   lost-1"))

		question := "Delete 1 server of cluster " + clusterName + "\\? Type the cluster's name: "
		session := command.onTerminal(ctx, deletion(ids["lost-1"])...)
		session.answer(question, "yes")
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("Nothing was deleted."))
		Expect(c.serverIDs()).To(ContainElement(ids["lost-1"]))

		orphans := strings.Fields(run(ctx, 0, "list", "servers", "--orphans", "-o", "name").Stdout)
		Expect(orphans).To(ContainElement("server/" + ids["lost-1"]))
		session = command.onTerminal(ctx, deletion(append(orphans, ids["owned-1"])...)...)
		session.answer("Type the cluster's name: ", clusterName)
		Expect(session.wait()).To(Equal(report.ExitWrong))
		Expect(session.output).To(gbytes.Say("server/" + ids["lost-1"] + " gone"))
		Expect(c.serverIDs()).To(ConsistOf(ids["owned-1"], ids["joined-1"]))
	}, SpecTimeout(8*time.Minute))
})

// newPlugin returns kubectl, which finds the command as README.md says: in its PATH.
func newPlugin() *command {
	GinkgoHelper()
	kubectl := built("bin/kubectl")
	return &command{path: kubectl, env: []string{
		"HOME=" + GinkgoT().TempDir(), "PATH=" + filepath.Dir(kubectl) + ":/usr/bin:/bin",
	}}
}

// createNode makes a Node of a server.
func (c *cluster) createNode(ctx context.Context, name, serverID string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = "stackit://" + serverID
	Expect(c.target.Create(ctx, node)).To(Succeed())
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
