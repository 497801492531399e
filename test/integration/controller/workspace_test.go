// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// workspace is a folder with all that the suite expects around it.
type workspace struct {
	dir string
	// environment is the whole one of the second run.
	environment []string
}

// newWorkspace makes the workspace in a folder that goes with the environment, and
// builds the sidecar.
func newWorkspace(t *testing.T, env *localenv.Env, cloud cloud) *workspace {
	t.Helper()
	dir, err := env.MakeFolder("integration")
	if err != nil {
		t.Fatal(err)
	}
	repository, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{dir: dir}
	if err := errors.Join(
		os.CopyFS(dir, os.DirFS("testdata/workspace")),
		os.CopyFS(filepath.Join(dir, "dev/mcm/kubernetes/crds"), os.DirFS(env.ManagerCRDs())),
		// The suite looks whether dev/mcm is a clone, and never runs git.
		os.MkdirAll(filepath.Join(dir, "dev/mcm/.git"), 0o750),
		os.MkdirAll(w.logDir(), 0o750),
		os.MkdirAll(w.packageDir(), 0o750),
	); err != nil {
		t.Fatal(err)
	}
	// The suite would do it, too, but hide in a log of its own what went wrong.
	if err := runMake(t.Context(), repository, "build"); err != nil {
		t.Fatalf("building the sidecar: %v", err)
	}
	w.environment = suiteEnvironment(t, env, cloud, dir, repository)
	return w
}

func (w *workspace) logDir() string { return filepath.Join(w.dir, ".ci/controllers-test/logs") }

// packageDir is three levels deep: the suite looks for everything in ../../..
func (w *workspace) packageDir() string { return filepath.Join(w.dir, "test/integration/controller") }

// suiteEnvironment is what the second run, and the controllers it starts, find.
func suiteEnvironment(t *testing.T, env *localenv.Env, cloud cloud, dir, repository string) []string {
	t.Helper()
	ps, err := exec.LookPath("ps")
	if err != nil {
		t.Fatalf("the suite looks for its processes with ps (package procps on Debian): %v", err)
	}
	class := func(name string) string {
		path := filepath.Join(dir, name)
		if err := cloud.writeClass(filepath.Join("testdata", name), path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ports := freePorts(t, 2)
	return append(append(inherited(), cloud.environment...),
		insideVariable+"=true",
		"PATH="+filepath.Join(dir, "path")+string(filepath.ListSeparator)+os.Getenv("PATH"),
		// What the suite reads.
		"CONTROL_KUBECONFIG="+env.KubeconfigPath(),
		"TARGET_KUBECONFIG="+env.KubeconfigPath(),
		"CONTROL_CLUSTER_NAMESPACE="+env.Namespace(),
		"TARGET_CLUSTER_NAME=shoot--test--integration",
		"MACHINECLASS_V1="+class("machine-class-v1.yaml"),
		"MACHINECLASS_V2="+class("machine-class-v2.yaml"),
		// What the files of the workspace read.
		"PS="+ps,
		"REPOSITORY="+repository,
		"MANAGER="+env.ManagerPath(),
		fmt.Sprintf("SIDECAR_PORT=%d", ports[0]),
		fmt.Sprintf("MANAGER_PORT=%d", ports[1]),
	)
}

// inherited is this process's environment without what is meant for other runs:
// what a make that runs this test tells its own sub-makes, and settings of the
// suite and of the driver that somebody may have for a real cluster.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return slices.ContainsFunc([]string{
			"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=", "ARGS=", "LEADER_ELECT=",
			"STACKIT_", "CONTROL_", "TARGET_", "MACHINE", "IS_", "TAGS_ARE_STRINGS=", "GNA_SECRET_NAME=", "PRESERVE_CRD_AT_END=",
		}, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
}

// runMake makes a target of the repository.
func runMake(ctx context.Context, repository, target string) error {
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", repository, target)
	command.Env = inherited()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// freePorts returns n loopback ports that had no listener a moment ago.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		// All stay open until the last is chosen, so that all differ.
		defer func() { _ = listener.Close() }()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
