// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// startManager starts machine-controller-manager and returns when it answers on /healthz.
func (e *Env) startManager(ctx context.Context) error {
	// The limits that Gardener sets.
	args := append(e.controllerArgs(), "--kube-api-qps=150", "--kube-api-burst=200", "--concurrent-syncs=30")
	_, err := e.launch(ctx, command{part: PartManager, path: e.programs.manager, args: args})
	return err
}

// StartSidecar starts this project's machine-controller and returns when it answers on /healthz.
// Start calls it already; call it only after KillSidecar or with WithoutSidecar.
func (e *Env) StartSidecar(ctx context.Context) error {
	args, variables := e.SidecarCommand()
	port, err := e.launch(ctx, command{part: PartSidecar, path: e.programs.sidecar, variables: variables, args: args})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sidecarURL = localURL(port)
	return err
}

// SidecarCommand returns flags and variables ("NAME=value") of the environment's machine-controller,
// except the port.
func (e *Env) SidecarCommand() (args, variables []string) {
	args = append(e.controllerArgs(), "--kube-api-qps=100", "--kube-api-burst=200")
	return append(args, e.settings.sidecarArgs...), e.CloudEnvironment()
}

// KillSidecar kills the machine-controller with SIGKILL, which is no failure of the environment, and returns
// when it has ended.
func (e *Env) KillSidecar() { e.end(PartSidecar, 0) }

// controllerArgs returns the flags of both controllers. The order matters: the manager's integration suite finds
// processes by their first flag.
func (e *Env) controllerArgs() []string {
	return []string{
		"--control-kubeconfig=" + e.control.kubeconfig,
		"--target-kubeconfig=" + e.target.kubeconfig,
		"--namespace=" + e.settings.namespace,
		"--address=127.0.0.1",
		// Each runs once, and after a restart must not wait for a lease.
		"--leader-elect=false",
		"--v=2",
	}
}

// programs holds the paths of the programs and of the folder with the manager's CRDs.
type programs struct{ controlPlane, manager, sidecar, crds string }

// findPrograms returns the paths of what make built. KUBEBUILDER_ASSETS, which envtest reads, too, names another
// folder with etcd and kube-apiserver.
func findPrograms(sidecar string) (programs, error) {
	root, err := Root()
	if err != nil {
		return programs{}, err
	}
	built := filepath.Join(root, "bin", "localenv")
	p := programs{
		controlPlane: filepath.Join(root, "bin", "controlplane"), manager: filepath.Join(built, string(PartManager)),
		sidecar: filepath.Join(built, sidecar), crds: filepath.Join(built, "crds"),
	}
	needed := []string{p.manager, p.sidecar, p.crds}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		needed = append(needed, filepath.Join(p.controlPlane, "kube-apiserver"))
	}
	for _, path := range needed {
		if _, err := os.Stat(path); err != nil {
			return programs{}, fmt.Errorf("%w: run 'make localenv'", err)
		}
	}
	return p, nil
}

// Check returns an error if a program that Start needs is missing.
func Check() error {
	_, err := findPrograms(newSettings(nil).sidecarProgram)
	return err
}

// Root returns the root folder of this repository, in which the working directory must be.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	const module = "github.com/stackitcloud/machine-controller-manager-provider-stackit"
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		// The path of a nested module continues after this module's path.
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(content, []byte("module "+module+"\n")) {
			return dir, nil
		}
	}
	return "", errors.New("the working directory is not inside the module " + module)
}
