// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// PodPart names a container of StartPod, for Logs.
func PodPart(pod, container string) Part { return Part(pod + "." + container) }

// StartPod runs a Pod of machine-controller-manager and the machine-controller, as a
// kubelet would: each container is a process with its arguments and environment, and
// with the Pod's rights in the control cluster, those of its service account. It returns
// when all answer on /healthz. A container that ends by itself is a failure of the
// environment.
//
// A process has neither an image nor a network or files of its own. So
//   - the last part of the image's name says which of the two programs runs;
//   - the arguments are followed by --control-kubeconfig, --address and --port, which
//     overrule those of the Pod;
//   - the Secrets and tokens that are mounted are files in another place, and this place
//     is written for theirs, in arguments and in these files (mounts.go, PodPath);
//   - in leader election the process has the name of its Pod (lease.go).
func (e *Env) StartPod(ctx context.Context, pod *corev1.Pod) error {
	e.mu.Lock()
	e.pods[pod.Name] = pod.DeepCopy()
	e.mu.Unlock()
	token, err := ServiceAccountToken(ctx, e.control.client, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	lease, err := e.newLeaseIdentity(Part(pod.Name), token)
	if err != nil {
		return err
	}
	files, err := e.mount(ctx, pod, token)
	if err != nil {
		return fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	for _, container := range pod.Spec.Containers {
		if err := e.startContainer(ctx, pod, container, files, lease); err != nil {
			return fmt.Errorf("pod %s, container %s: %w", pod.Name, container.Name, err)
		}
	}
	return nil
}

func (e *Env) startContainer(ctx context.Context, pod *corev1.Pod, container corev1.Container, files mounts, lease *leaseIdentity) error {
	program, err := e.program(container.Image)
	if err != nil {
		return err
	}
	variables, err := environment(pod, container)
	if err != nil {
		return err
	}
	args := slices.Concat(container.Command[min(1, len(container.Command)):], container.Args)
	for i := range args {
		args[i] = files.in(expand(args[i], variables))
	}
	args = append(args, "--control-kubeconfig="+lease.kubeconfig, "--address=127.0.0.1")
	env := append(minimalEnvironment(), files.environment(container)...)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return e.startController(ctx, PodPart(pod.Name, container.Name), program, env, args)
}

// program returns the path of what an image holds.
func (e *Env) program(image string) (string, error) {
	name, _, _ := strings.Cut(path.Base(image), ":")
	switch name {
	case "machine-controller-manager":
		return e.programs.manager, nil
	case "machine-controller-manager-provider-stackit":
		return e.programs.sidecar, nil
	}
	return "", fmt.Errorf("no program for the image %q", image)
}

// environment returns a container's variables.
func environment(pod *corev1.Pod, container corev1.Container) (map[string]string, error) {
	fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}
	variables := map[string]string{}
	for _, variable := range container.Env {
		value := variable.Value
		if source := variable.ValueFrom; source != nil {
			if source.FieldRef == nil || fields[source.FieldRef.FieldPath] == "" {
				return nil, fmt.Errorf("variable %s: only the Pod's name and namespace are known", variable.Name)
			}
			value = fields[source.FieldRef.FieldPath]
		}
		variables[variable.Name] = value
	}
	return variables, nil
}

// expand replaces $(NAME) in an argument.
func expand(argument string, variables map[string]string) string {
	for name, value := range variables {
		argument = strings.ReplaceAll(argument, "$("+name+")", value)
	}
	return argument
}

// StopPod ends a Pod as a kubelet does: SIGTERM for all of its processes, and SIGKILL for
// those that have not ended after its terminationGracePeriodSeconds.
func (e *Env) StopPod(name string) {
	e.mu.Lock()
	pod := e.pods[name]
	delete(e.pods, name)
	e.mu.Unlock()
	if pod == nil {
		return
	}
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	var ending sync.WaitGroup
	for _, container := range pod.Spec.Containers {
		ending.Go(func() { e.endPart(PodPart(name, container.Name), time.Duration(grace)*time.Second) })
	}
	ending.Wait()
}

func (e *Env) endPods() {
	e.mu.Lock()
	names := slices.Collect(maps.Keys(e.pods))
	e.mu.Unlock()
	for _, name := range names {
		e.StopPod(name)
	}
}
