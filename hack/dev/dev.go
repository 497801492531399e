// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// samples are the files both commands apply, in this order.
var samples = []string{"secret.yaml", "machine-class.yaml", "machine-class-minimal.yaml", "machine-deployment.yaml"}

// lookEvery is how often the state is read and shown.
const lookEvery = 300 * time.Millisecond

// settle is how long the sidecar waits for what may still show: the mock's lists do not
// lag unless they are told to, and nobody wants to wait half a minute for the first
// Machines, which are as young as the sidecar.
const settle = "--stackit-settle=5s"

// start starts an environment that reports to the view. Its lines say what is
// slow, which matters on the first run.
func start(ctx context.Context, v *view, chosen choice) (*localenv.Env, error) {
	options := []localenv.Option{
		localenv.WithProgress(v.progress), localenv.WithSidecarArgs(settle),
		localenv.WithCloudOptions(iaasmock.WithBootDuration(chosen.boot), iaasmock.WithDeleteDuration(chosen.remove)),
	}
	if chosen.sidecar == noSidecar {
		options = append(options, localenv.WithoutSidecar())
	}
	return localenv.Start(ctx, options...)
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

// dev runs the samples until somebody asks it to end, which is success.
func dev(ctx context.Context, v *view, chosen choice) error {
	env, err := start(ctx, v, chosen)
	if err == nil {
		defer stop(env, v)
		err = stay(ctx, env, v, chosen.sidecar)
	}
	if err = causeOf(ctx, err); errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

func stay(ctx context.Context, env *localenv.Env, v *view, sidecar string) error {
	v.progress("applying samples/")
	if err := applySamples(ctx, env); err != nil {
		return err
	}
	leave, err := leaveJoinFile(env, sidecar)
	if err != nil {
		return err
	}
	defer leave()
	v.say(welcome, env.KubeconfigPath(), env.CloudURL(), env.CloudURL(), filepath.Dir(env.LogPath(localenv.PartSidecar)),
		env.CloudURL(), env.CloudURL(), env.CloudURL())
	if sidecar == noSidecar {
		v.say(withoutSidecar)
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		now, err := look(ctx, env)
		if err == nil {
			v.show(now.rows())
		}
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

  export KUBECONFIG=%s
  the cloud (a mock):  %s
  its console:         %s/ in a browser
  logs of all parts:   %s

Try:
  kubectl get machines,machinedeployments,nodes
  kubectl scale machinedeployment worker --replicas=5
  kubectl patch machinedeployment worker --type=merge \
    -p '{"spec":{"template":{"spec":{"class":{"name":"stackit-worker"}}}}}'
  kubectl delete machine --all
  curl -s %s/admin/state

With the operator's command (make mcm-stackit):
  export STACKIT_API_ENDPOINT=%s STACKIT_TOKEN_BASEURL=%s/token
  bin/mcm-stackit list machines
  bin/mcm-stackit validate --online

Ctrl-C stops everything.`

const withoutSidecar = `
There is no sidecar: Machines wait. Start the one in the working tree, as often as you
change it:

  make start           # its flags go into ARGS; DLV=1 runs it under delve`

// stop ends the environment and says so: it takes a few seconds.
func stop(env *localenv.Env, v *view) {
	v.close()
	v.progress("stopping")
	env.Stop()
	v.progress("stopped")
}

// errInterrupted is why a command ends when somebody asked it to.
var errInterrupted = errors.New("interrupted")

// choice is what a command's flags choose: how long the mock takes to boot a server and to
// remove it, and who starts the sidecar.
type choice struct {
	boot, remove time.Duration
	sidecar      string
}

// The environment has a sidecar of its own, or none.
const (
	ownSidecar = "own"
	noSidecar  = "none"
)

// causeOf returns why ctx has ended if that is what made err: client-go answers
// that the context was cancelled, and not why.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// joinPath is the file, below the repository's root, by which `make start` finds the
// environment of `make dev`: a shell script that it reads.
var joinPath = filepath.Join("bin", "dev.sh")

// leaveJoinFile writes that file, and returns what removes it again, unless another
// environment has written its own meanwhile.
func leaveJoinFile(env *localenv.Env, sidecar string) (remove func(), err error) {
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, joinPath)
	args, variables := env.SidecarCommand()
	script := joinScript(os.Getpid(), sidecar, args, variables)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	return func() {
		if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, script) {
			_ = os.Remove(path)
		}
	}, os.WriteFile(path, script, 0o600)
}

// joinScript sets what make start asks for: whether the environment still runs (pid), and
// has a sidecar; the sidecar's environment; its flags, as the script's arguments.
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

// quote makes one word of the shell of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
