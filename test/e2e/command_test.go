// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
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
	path string
	env  []string
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

// run runs the command to its end.
func (c *command) run(ctx context.Context, args ...string) ran {
	GinkgoHelper()
	process := exec.CommandContext(ctx, c.path, args...)
	process.Env = slices.Clone(c.env)
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

var _ = Describe("kubectl mcm-stackit", func() {
	It("is a plugin that kubectl finds, completes and runs", func(ctx SpecContext) {
		kubectl := newPlugin()
		Expect(kubectl.run(ctx, "plugin", "list", "--name-only")).To(And(
			HaveField("Code", 0), HaveField("Stdout", ContainSubstring("kubectl-mcm_stackit\n"))))
		Expect(kubectl.run(ctx, "mcm-stackit", "--version")).To(And(
			HaveField("Code", 0), HaveField("Stdout", Not(BeEmpty())), HaveField("Stderr", BeEmpty())))
		help := kubectl.run(ctx, "mcm-stackit", "delete", "server", "--help")
		Expect(help.Stdout).To(And(
			ContainSubstring("  kubectl mcm-stackit delete server ID..."), ContainSubstring("(kubectl mcm-stackit list servers"),
			ContainSubstring(`Use "kubectl mcm-stackit options"`)))
		Expect(kubectl.run(ctx, "mcm-stackit", "bogus")).To(HaveField("Code", report.ExitUsage))
		Expect(kubectl.run(ctx, "__complete", "mcm-stackit", "des")).To(HaveField("Stdout", HavePrefix("describe\t")))
		Expect(kubectl.run(ctx, "__complete", "mcm-stackit", "list", "--output", "")).
			To(HaveField("Stdout", HavePrefix("wide\njson\n")))
	})
})

// newPlugin returns kubectl, which finds the command as README.md says: in its PATH.
func newPlugin() *command {
	GinkgoHelper()
	kubectl := built("bin/kubectl")
	return &command{path: kubectl, env: []string{
		"HOME=" + GinkgoT().TempDir(), "PATH=" + filepath.Dir(kubectl) + ":/usr/bin:/bin",
	}}
}
