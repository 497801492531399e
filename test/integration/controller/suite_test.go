// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/test/integration/common"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/integration/provider"
)

const (
	// timeout is for each single wait of the suite, in seconds.
	timeout = 300
	// polling is how often it looks, in seconds.
	polling = 1
)

// runSuite runs the suite in the present environment and folder.
func runSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	suite := common.NewIntegrationTestFramework(&provider.ResourcesTrackerImpl{}, timeout, polling)
	BeforeSuite(suite.SetupBeforeSuite)
	AfterSuite(suite.Cleanup)
	Describe("The controllers", func() {
		suite.BeforeEachCheck()
		suite.ControllerTests()
	})
	RunSpecs(t, "Integration suite of machine-controller-manager")
}

// processGroup is a process group that ends with this process. Its first member does
// nothing but wait for that: for the end of its input.
type processGroup struct {
	guard *exec.Cmd
	input io.WriteCloser
}

func newProcessGroup() (*processGroup, error) {
	guard := exec.Command("/bin/sh", "-c", "read -r nothing; kill -KILL 0")
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &processGroup{guard: guard, input: input}, guard.Start()
}

// join makes a command a member when it starts.
func (g *processGroup) join(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id()}
}

func (g *processGroup) id() int { return g.guard.Process.Pid }

// end kills all members.
func (g *processGroup) end() {
	_ = g.input.Close()
	// It kills itself as well: that error says nothing.
	_ = g.guard.Wait()
}

// run is the second run of this program, in the workspace. It returns what that
// prints. Nothing it has started is left when run returns, or when this process
// ends in whatever way.
func (w *workspace) run(ctx context.Context) (report string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	group, err := newProcessGroup()
	if err != nil {
		return "", err
	}
	defer group.end()
	var output bytes.Buffer
	var show io.Writer = &output
	if testing.Verbose() {
		show = io.MultiWriter(&output, os.Stdout)
	}
	command := exec.CommandContext(ctx, program, suiteFlags()...)
	command.Dir, command.Env = w.packageDir(), w.environment
	command.Stdout, command.Stderr = show, show
	group.join(command)
	err = command.Run()
	return output.String(), err
}

// suiteFlags are those of the second run: the suite alone, with the flags for
// Ginkgo that this run was given, such as -ginkgo.v.
func suiteFlags() []string {
	flags := []string{"-test.run=^TestControllers$", "-test.v", "-ginkgo.no-color"}
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(strings.TrimLeft(arg, "-"), "ginkgo.") {
			flags = append(flags, arg)
		}
	}
	return flags
}

// logs returns the ends of what the controllers have logged.
func (w *workspace) logs() string {
	const most = 20000
	var text strings.Builder
	for _, name := range []string{"mc_process.log", "mcm_process.log"} {
		content, err := os.ReadFile(filepath.Join(w.logDir(), name))
		content = content[max(0, len(content)-most):]
		_, _ = fmt.Fprintf(&text, "--- %s (%v)\n%s\n", name, err, content)
	}
	return text.String()
}
