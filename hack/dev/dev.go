// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// samples are the files both commands apply, in this order.
var samples = []string{"secret.yaml", "machine-class.yaml", "machine-class-minimal.yaml", "machine-deployment.yaml"}

// start starts an environment whose servers boot and are removed in these times, and shows its Machines. It shortens
// the sidecar's wait for late servers: the mock's lists lag only on request, and the first Machines, which are as young
// as the sidecar, would otherwise wait for half a minute.
func start(
	ctx context.Context, out *output, boot, remove time.Duration, options ...localenv.Option,
) (*localenv.Env, error) {
	env, err := localenv.Start(ctx, append(options,
		localenv.WithProgress(out.progress), localenv.WithSidecarArgs("--stackit-settle=5s"),
		localenv.WithCloudOptions(iaasmock.WithBootDuration(boot), iaasmock.WithDeleteDuration(remove)))...)
	if err != nil {
		return nil, err
	}
	go showMachines(ctx, env, out)
	return env, nil
}

// stop ends the environment and prints that it does, since this takes a few seconds.
func stop(env *localenv.Env, out *output) {
	out.progress("stopping")
	env.Stop()
	out.progress("stopped")
}

// showMachines prints a line whenever a Machine changes, until ctx or the environment ends.
func showMachines(ctx context.Context, env *localenv.Env, out *output) {
	shown := map[string]string{}
	for ctx.Err() == nil {
		watcher, err := client.NewWithWatch(env.RESTConfig(), client.Options{Scheme: env.Client().Scheme()})
		if err != nil {
			return
		}
		events, err := watcher.Watch(ctx, &v1alpha1.MachineList{}, client.InNamespace(env.Namespace()))
		if err != nil {
			return // The environment ends.
		}
		for event := range events.ResultChan() { // An API server ends a watch after half an hour or more.
			if machine, ok := event.Object.(*v1alpha1.Machine); ok {
				if line := machineLine(machine, event.Type); shown[machine.Name] != line {
					shown[machine.Name] = line
					out.progress(line)
				}
			}
		}
	}
}

// machineLine describes a Machine. The manager's description is shown of failures only: it describes every step.
func machineLine(machine *v1alpha1.Machine, event watch.EventType) string {
	phase, description := cmp.Or(string(machine.Status.CurrentStatus.Phase), "new"), ""
	if event == watch.Deleted {
		phase = "gone"
	} else if operation := machine.Status.LastOperation; operation.State == v1alpha1.MachineStateFailed {
		description = strings.Join(strings.Fields(operation.Description), " ")
	}
	line := fmt.Sprintf("%-28s %-22s %-17s %s", machine.Name, machine.Spec.Class.Name, phase, description)
	return strings.TrimRight(line, " ")
}

func applySamples(ctx context.Context, env *localenv.Env) error {
	root, err := localenv.Root()
	if err != nil {
		return err
	}
	for _, name := range samples {
		if err := env.ApplyFile(ctx, filepath.Join(root, "samples", name)); err != nil {
			return err
		}
	}
	return nil
}

// dev runs the samples until it is interrupted.
func dev(ctx context.Context, out *output, withoutSidecar bool) error {
	var options []localenv.Option
	sidecar := "own"
	if withoutSidecar {
		sidecar = "none"
		options = append(options, localenv.WithoutSidecar())
	}
	env, err := start(ctx, out, 5*time.Second, 3*time.Second, options...)
	if err != nil {
		return err
	}
	defer stop(env, out)
	if err := applySamples(ctx, env); err != nil {
		return err
	}
	root, err := localenv.Root()
	if err != nil {
		return err
	}
	join := filepath.Join(root, "bin", "dev.sh")
	args, variables := env.SidecarCommand()
	if err := os.WriteFile(join, joinScript(os.Getpid(), sidecar, args, variables), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(join) }()
	_, _ = fmt.Fprintf(out, welcome, quote(env.KubeconfigPath()), env.CloudURL(),
		filepath.Dir(env.LogPath(localenv.PartSidecar)))
	if withoutSidecar {
		_, _ = fmt.Fprintln(out, "\nThere is no sidecar: Machines wait. Run 'make start', as often as you change the code.")
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-env.Done():
		return env.Err()
	}
}

const welcome = `
Ready. In another terminal:

  export KUBECONFIG=%[1]s
  the cloud (a mock):  %[2]s
  logs of all parts:   %[3]s

Try:
  kubectl get machines,machinedeployments,nodes
  kubectl scale machinedeployment worker --replicas=5
  kubectl patch machinedeployment worker --type=merge \
    -p '{"spec":{"template":{"spec":{"class":{"name":"stackit-worker"}}}}}'
  kubectl delete machine --all
  curl -s %[2]s/admin/state

With the operator's command (make mcm-stackit):
  export STACKIT_API_ENDPOINT=%[2]s STACKIT_TOKEN_BASEURL=%[2]s/oauth/v2/token
  bin/mcm-stackit list

Ctrl-C stops everything.
`

// joinScript returns bin/dev.sh, by which make start finds the environment: its pid, and whether it has a sidecar; the
// sidecar's environment variables; its flags, as the script's arguments.
func joinScript(pid int, sidecar string, args, variables []string) []byte {
	script := fmt.Sprintf("# How make start joins the environment of make dev.\npid=%d sidecar=%s\n", pid, sidecar)
	script += "unset STACKIT_API_ENDPOINT STACKIT_NO_AUTH\n" // the caller's
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		script += fmt.Sprintf("export %s=%s\n", name, quote(value))
	}
	script += "set --"
	for _, arg := range args {
		script += " " + quote(arg)
	}
	return []byte(script + "\n")
}

// quote quotes a text as one word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
