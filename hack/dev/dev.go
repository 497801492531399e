// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// samples are the files both commands apply, in this order.
var samples = []string{"secret.yaml", "machine-class.yaml", "machine-class-minimal.yaml", "machine-deployment.yaml"}

// lookEvery is the interval at which the state is read and shown.
const lookEvery = 300 * time.Millisecond

// settle shortens the sidecar's wait for late servers: the mock's lists lag only on request, and the first Machines,
// which are as young as the sidecar, would otherwise wait for half a minute.
const settle = "--stackit-settle=5s"

// start starts an environment that reports to the view. Its servers boot and are removed in these times.
func start(
	ctx context.Context, v *view, boot, remove time.Duration, options ...localenv.Option,
) (*localenv.Env, error) {
	return localenv.Start(ctx, append(options,
		localenv.WithProgress(v.progress), localenv.WithSidecarArgs(settle),
		localenv.WithCloudOptions(iaasmock.WithBootDuration(boot), iaasmock.WithDeleteDuration(remove)))...)
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

// The values for dev's sidecar: the environment runs it, or none.
const (
	ownSidecar = "own"
	noSidecar  = "none"
)

// dev runs the samples until it is interrupted.
func dev(ctx context.Context, v *view, sidecar string) error {
	var options []localenv.Option
	if sidecar == noSidecar {
		options = append(options, localenv.WithoutSidecar())
	}
	env, err := start(ctx, v, 5*time.Second, 3*time.Second, options...)
	if err != nil {
		return err
	}
	defer stop(env, v)
	v.progress("applying samples/")
	if err := applySamples(ctx, env); err != nil {
		return err
	}
	join, err := newJoinFile(env, sidecar)
	if err != nil {
		return err
	}
	if err := join.write(); err != nil {
		return err
	}
	defer join.remove()
	metrics := env.SidecarMetricsURL()
	if sidecar == noSidecar {
		metrics = "none before make start"
	}
	logs := filepath.Dir(env.LogPath(localenv.PartSidecar))
	v.say(welcome, quoteIfNeeded(env.KubeconfigPath()), env.CloudURL(), logs, metrics)
	if sidecar == noSidecar {
		v.say(withoutSidecar)
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if now, err := look(ctx, env); err == nil {
			v.show(now.rows())
		}
		join.keep()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-env.Done():
			return env.Err()
		case <-ticker.C:
		}
	}
}

const welcome = `
Ready. In another terminal:

  export KUBECONFIG=%[1]s
  the cloud (a mock):  %[2]s
  its console:         %[2]s/ in a browser
  logs of all parts:   %[3]s
  sidecar's metrics:   %[4]s

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
  kubectl get machineclasses,secrets -o yaml | bin/mcm-stackit validate --online -f -

Ctrl-C stops everything.`

const withoutSidecar = `
There is no sidecar: Machines wait. Start the one in the working tree, as often as you
change it:

  make start           # its flags go into ARGS; DLV=1 runs it under delve`

// stop ends the environment and prints that it does, since this takes a few seconds.
func stop(env *localenv.Env, v *view) {
	v.close()
	v.progress("stopping")
	env.Stop()
	v.progress("stopped")
}

// joinFile is bin/dev.sh, by which make start finds the environment of make dev. Of several environments it names the
// one that was started last.
type joinFile struct {
	path   string
	script []byte
}

func newJoinFile(env *localenv.Env, sidecar string) (joinFile, error) {
	root, err := localenv.Root()
	args, variables := env.SidecarCommand()
	return joinFile{
		path: filepath.Join(root, "bin", "dev.sh"), script: joinScript(os.Getpid(), sidecar, args, variables),
	}, err
}

func (j joinFile) write() error { return os.WriteFile(j.path, j.script, 0o600) }

// keep writes the file again after the environment that had overwritten it has ended.
func (j joinFile) keep() {
	var pid int
	var sidecar string
	now, err := os.ReadFile(j.path)
	if _, bad := fmt.Sscanf(string(now), joinHead, &pid, &sidecar); err != nil || bad != nil || !isAlive(pid) {
		_ = j.write()
	}
}

// isAlive reports whether a process of this user runs.
func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// remove deletes the file unless another environment has written its own meanwhile.
func (j joinFile) remove() {
	if now, err := os.ReadFile(j.path); err == nil && bytes.Equal(now, j.script) {
		_ = os.Remove(j.path)
	}
}

// joinHead is the format of the first lines of a joinScript.
const joinHead = "# How make start joins the environment of make dev.\npid=%d sidecar=%s\n"

// joinScript returns a script that sets what make start needs: the environment's pid, and whether it has a sidecar;
// the sidecar's environment variables; its flags, as the script's arguments.
func joinScript(pid int, sidecar string, args, variables []string) []byte {
	script := fmt.Sprintf(joinHead, pid, sidecar)
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

// quoteIfNeeded quotes a path if the shell would not take it as one word.
func quoteIfNeeded(path string) string {
	if strings.ContainsAny(path, " \t\n'\"\\$`!*?[]{}()<>|&;#~") {
		return quote(path)
	}
	return path
}
