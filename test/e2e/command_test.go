// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// buildCommand builds mcm-stackit, once in a process.
var buildCommand = sync.OnceValues(func() (string, error) {
	shared.ends.Cleanup(gexec.CleanupBuildArtifacts)
	return gexec.Build("github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/mcm-stackit")
})

// command is the built mcm-stackit as an operator runs it.
type command struct {
	path string
	env  []string
}

// newCommand reaches the control cluster and the cloud of an environment.
func newCommand(env *localenv.Env) *command {
	GinkgoHelper()
	path, err := buildCommand()
	Expect(err).NotTo(HaveOccurred())
	return &command{path: path, env: append([]string{
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
