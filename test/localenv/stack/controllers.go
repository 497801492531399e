// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// noTarget tells both controllers that there is no target cluster.
const noTarget = "none"

// StartManager starts machine-controller-manager and returns when it answers on
// /healthz. Start has done so already; it is for use after KillManager.
func (e *Env) StartManager(ctx context.Context) error {
	// The rates Gardener sets.
	args := append(e.controllerArgs(), "--kube-api-qps=150", "--kube-api-burst=200")
	return e.startController(ctx, PartManager, e.programs.manager, minimalEnvironment(), append(args, e.settings.managerArgs...))
}

// StartSidecar starts this project's machine-controller and returns when it
// answers on /healthz. Start has done so already; it is for use after
// KillSidecar.
func (e *Env) StartSidecar(ctx context.Context) error {
	args := append(e.controllerArgs(), e.sidecarArgs()...)
	return e.startController(ctx, PartSidecar, e.programs.sidecar, e.sidecarEnvironment(), args)
}

// SidecarCommand returns the flags and the variables ("NAME=value") with which another
// machine-controller works in this environment: those of its own, but for the port.
func (e *Env) SidecarCommand() (args, variables []string) {
	return append(e.controllerArgs(), e.sidecarArgs()...), e.CloudEnvironment()
}

// sidecarArgs are the rates Gardener sets, and what the settings add.
func (e *Env) sidecarArgs() []string {
	return append([]string{"--kube-api-qps=100", "--kube-api-burst=200"}, e.settings.sidecarArgs...)
}

// KillManager ends machine-controller-manager with SIGKILL and returns when it
// is gone. It does not count as a failure of the environment.
func (e *Env) KillManager() { e.endPart(PartManager, 0) }

// KillSidecar ends the machine-controller with SIGKILL and returns when it is
// gone. It does not count as a failure of the environment.
func (e *Env) KillSidecar() { e.endPart(PartSidecar, 0) }

func (e *Env) startController(ctx context.Context, part Part, path string, env, args []string) error {
	ports, err := e.launchController(ctx, e.controllerService(part, path, env, args))
	if err != nil {
		return err
	}
	e.setURL(part, controllerURL(ports[0]))
	return nil
}

// launchController is launch for a part that Controllers names.
func (e *Env) launchController(ctx context.Context, s service) ([]int, error) {
	e.mu.Lock()
	if !slices.Contains(e.controllers, s.part) {
		e.controllers = append(e.controllers, s.part)
	}
	e.mu.Unlock()
	return e.launch(ctx, s)
}

func controllerURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// controllerService is a controller on a port of our choice.
func (e *Env) controllerService(part Part, path string, env, args []string) service {
	return service{
		part:  part,
		ports: 1,
		command: func(ports []int) command {
			return command{path: path, env: env, args: append(slices.Clone(args), "--port="+strconv.Itoa(ports[0]))}
		},
		ready: func(ctx context.Context, ports []int) error {
			return httpOK(ctx, e.probe, controllerURL(ports[0])+"/healthz", "")
		},
	}
}

// controllerArgs are the flags both controllers have. The manager's integration
// suite finds processes by their first flag, hence the order.
func (e *Env) controllerArgs() []string {
	target := e.TargetKubeconfigPath()
	if e.settings.targetless {
		target = noTarget
	}
	return []string{
		"--control-kubeconfig=" + e.KubeconfigPath(),
		"--target-kubeconfig=" + target,
		"--namespace=" + e.settings.namespace,
		"--address=127.0.0.1",
		// There is one of each, and a restarted one must not wait for a lease.
		"--leader-elect=false",
		"--v=2",
	}
}

func (e *Env) sidecarEnvironment() []string {
	return append(minimalEnvironment(), e.CloudEnvironment()...)
}
