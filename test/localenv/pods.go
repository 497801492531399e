// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodPart returns the Part of a container in a Pod that StartPod started, whose log Logs returns.
func PodPart(pod, container string) Part { return Part(pod + "." + container) }

// StartPod runs a Pod of machine-controller-manager and the machine-controller as a kubelet would. Each container is a
// process with the container's arguments and environment, and with the rights of the Pod's service account in the
// control cluster. StartPod returns when all answer on /healthz. A container that ends unexpectedly is a failure of the
// environment.
//
// A process has no image, network or files of its own. So
//   - the last part of the image's name selects one of the two programs;
//   - --control-kubeconfig, --address and --port are appended to the arguments and override those of the Pod, and so
//     does --target-kubeconfig if the Pod sets it to "", which means the cluster in which the Pod runs;
//   - mounted Secrets, ConfigMaps and tokens are files in another folder, whose path replaces theirs in arguments and
//     in these files (PodPath);
//   - in leader election the process has the name of its Pod.
func (e *Env) StartPod(ctx context.Context, started *corev1.Pod) error {
	token, err := ServiceAccountToken(ctx, e.control.client, started.Namespace, started.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	lease, err := e.startLeaseProxy(started.Name, token)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(e.running)
	p := &pod{Pod: started.DeepCopy(), lease: lease, running: running, stop: stop}
	e.mu.Lock()
	e.pods[p.Name] = p
	e.mu.Unlock()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["control"] = &clientcmdapi.Cluster{Server: lease.URL}
	kubeconfig.Contexts["control"] = &clientcmdapi.Context{Cluster: "control"}
	kubeconfig.CurrentContext = "control"
	path := filepath.Join(e.dir, p.Name+".kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return err
	}
	if err := e.MountPod(ctx, p.Pod); err != nil {
		return fmt.Errorf("pod %s: %w", p.Name, err)
	}
	for _, container := range p.Spec.Containers {
		if err := e.startContainer(ctx, p, container, path); err != nil {
			return fmt.Errorf("pod %s, container %s: %w", p.Name, container.Name, err)
		}
	}
	return nil
}

// pod is a running Pod.
type pod struct {
	*corev1.Pod
	lease *httptest.Server
	// running ends when the Pod is stopped.
	running context.Context
	stop    context.CancelFunc
}

func (e *Env) startContainer(
	ctx context.Context, pod *pod, container corev1.Container, kubeconfig string,
) error {
	files := e.mountsOf(pod.Pod)
	program, err := e.program(container.Image)
	if err != nil {
		return err
	}
	variables, err := environment(pod.Pod, container)
	if err != nil {
		return err
	}
	args := slices.Concat(container.Command[min(1, len(container.Command)):], container.Args)
	for i := range args {
		args[i] = files.in(expand(args[i], variables))
	}
	if slices.Contains(args, "--target-kubeconfig=") {
		args = append(args, "--target-kubeconfig="+kubeconfig)
	}
	args = append(args, "--control-kubeconfig="+kubeconfig, "--address=127.0.0.1")
	env := files.environment(container)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	c := command{part: PodPart(pod.Name, container.Name), path: program, variables: env, args: args}
	if e.settings.podRestarts {
		c.ended = func(err error) { e.restart(pod, c, err) }
	}
	_, err = e.launch(ctx, c)
	return err
}

// restart starts a container again until it is ready, as a kubelet does, unless its Pod is stopped.
func (e *Env) restart(pod *pod, c command, err error) {
	for err != nil && pod.running.Err() == nil {
		e.settings.progress(fmt.Sprintf("starting a container again: %.300s", err))
		c.ended = func(err error) { e.restart(pod, c, err) }
		_, err = e.launch(pod.running, c)
	}
}

// program returns the path of the program in an image.
func (e *Env) program(image string) (string, error) {
	name, _, _ := strings.Cut(path.Base(image), ":")
	switch name {
	case "machine-controller-manager":
		return e.programs.manager, nil
	case "machine-controller-manager-provider-stackit":
		return e.programs.sidecar, nil
	}
	return "", fmt.Errorf(
		"the image is %q: must be machine-controller-manager or machine-controller-manager-provider-stackit", image)
}

// environment returns a container's variables.
func environment(pod *corev1.Pod, container corev1.Container) (map[string]string, error) {
	fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace}
	variables := map[string]string{}
	for _, variable := range container.Env {
		value := variable.Value
		if source := variable.ValueFrom; source != nil {
			if source.FieldRef == nil || fields[source.FieldRef.FieldPath] == "" {
				return nil, fmt.Errorf("the valueFrom of variable %s is not supported: must be metadata.name or metadata.namespace",
					variable.Name)
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

// StopPod stops a Pod as a kubelet does: it sends SIGTERM to all processes of the Pod, and SIGKILL
// to processes that still run after terminationGracePeriodSeconds, if that is not 0.
func (e *Env) StopPod(name string) {
	e.mu.Lock()
	pod := e.pods[name]
	e.mu.Unlock()
	if pod != nil {
		grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
		e.endPod(name, time.Duration(grace)*time.Second)
	}
}

// KillPod ends all processes of a Pod with SIGKILL.
func (e *Env) KillPod(name string) { e.endPod(name, 0) }

func (e *Env) endPod(name string, grace time.Duration) {
	e.mu.Lock()
	pod := e.pods[name]
	delete(e.pods, name)
	e.mu.Unlock()
	if pod == nil {
		return
	}
	pod.stop()
	var ending sync.WaitGroup
	for _, container := range pod.Spec.Containers {
		ending.Go(func() { e.end(PodPart(name, container.Name), grace) })
	}
	ending.Wait()
	pod.lease.CloseClientConnections()
	pod.lease.Close()
}

func (e *Env) stopPods() {
	e.mu.Lock()
	names := slices.Collect(maps.Keys(e.pods))
	e.mu.Unlock()
	for _, name := range names {
		e.StopPod(name)
	}
}

const (
	// inClusterFolder is the folder of the service account in each container.
	inClusterFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// inClusterURL is the URL of the API server in each container.
	inClusterURL = "https://kubernetes.default.svc"
	// rootsFolder is where Go looks for root certificates on Linux.
	rootsFolder = "/etc/ssl/certs"
)

// mounts maps paths in a container to paths on this computer.
type mounts map[string]string

// in replaces paths of a container in text by paths on this computer.
func (m mounts) in(text string) string {
	for inside, here := range m {
		text = strings.ReplaceAll(text, inside, here)
	}
	return text
}

// environment makes Go read the root certificates that a container mounts into its folder of them. Only on Linux does
// Go support this variable.
func (m mounts) environment(container corev1.Container) []string {
	for _, mount := range container.VolumeMounts {
		if path.Dir(mount.MountPath) == rootsFolder {
			return []string{"SSL_CERT_DIR=" + filepath.Dir(m[mount.MountPath])}
		}
	}
	return nil
}

// PodPath translates a path in a container of the Pod into the path of that file on this computer. It returns
// other paths unchanged.
func (e *Env) PodPath(pod *corev1.Pod, inside string) string { return e.mountsOf(pod).in(inside) }

// mountsOf returns the paths of a Pod's files.
func (e *Env) mountsOf(pod *corev1.Pod) mounts {
	root := filepath.Join(e.dir, "pods", pod.Name)
	files := mounts{inClusterFolder: filepath.Join(root, "serviceaccount"), inClusterURL: e.control.config.Host}
	for _, container := range pod.Spec.Containers {
		for _, mount := range container.VolumeMounts {
			files[mount.MountPath] = filepath.Join(root, "volumes", mount.Name, mount.SubPath)
		}
	}
	return files
}

// MountPod writes the files that a Pod mounts, as a kubelet does: its service account, the current content of its
// Secrets and ConfigMaps, and tokens of its service account for other audiences. StartPod calls it before the Pod
// starts; call it again after changes to the Pod's Secrets and ConfigMaps.
func (e *Env) MountPod(ctx context.Context, pod *corev1.Pod) error {
	token, err := ServiceAccountToken(ctx, e.control.client, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	files := e.mountsOf(pod)
	content := map[string]map[string][]byte{
		files[inClusterFolder]: {"token": []byte(token), "ca.crt": e.control.config.CAData},
	}
	for _, volume := range pod.Spec.Volumes {
		folder := filepath.Join(e.dir, "pods", pod.Name, "volumes", volume.Name)
		if content[folder], err = e.volume(ctx, pod, volume); err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	for folder, entries := range content {
		if err := files.write(folder, entries); err != nil {
			return err
		}
	}
	return nil
}

// write writes the files as a kubelet does, behind symbolic links, so that all are replaced at once.
func (m mounts) write(folder string, entries map[string][]byte) error {
	const data, written = "..data", "..written"
	if err := cmp.Or(
		os.RemoveAll(folder), // an earlier Pod of this name had other files
		os.MkdirAll(filepath.Join(folder, written), 0o700),
		os.Symlink(written, filepath.Join(folder, data)),
	); err != nil {
		return err
	}
	for name, content := range entries {
		if err := cmp.Or(
			os.WriteFile(filepath.Join(folder, written, name), []byte(m.in(string(content))), 0o600),
			os.Symlink(filepath.Join(data, name), filepath.Join(folder, name)),
		); err != nil {
			return err
		}
	}
	return nil
}

// volume returns the files of a Secret, projected or empty volume.
func (e *Env) volume(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) (map[string][]byte, error) {
	var sources []corev1.VolumeProjection
	switch {
	case volume.Secret != nil:
		sources = []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{Items: volume.Secret.Items,
			LocalObjectReference: corev1.LocalObjectReference{Name: volume.Secret.SecretName}}}}
	case volume.Projected != nil:
		sources = volume.Projected.Sources
	case volume.EmptyDir == nil:
		return nil, errors.New("the type of the volume is not supported: must be secret, projected or emptyDir")
	}
	all := map[string][]byte{}
	for _, source := range sources {
		entries, err := e.projection(ctx, pod, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, entries)
	}
	return all, nil
}

func (e *Env) projection(
	ctx context.Context, pod *corev1.Pod, source corev1.VolumeProjection,
) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: pod.Namespace}
	switch {
	case source.Secret != nil:
		secret := &corev1.Secret{}
		key.Name = source.Secret.Name
		if err := e.control.client.Get(ctx, key, secret); err != nil {
			return nil, err
		}
		return chosen(secret.Data, key.Name, source.Secret.Items)
	case source.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		key.Name = source.ConfigMap.Name
		if err := e.control.client.Get(ctx, key, configMap); err != nil {
			return nil, err
		}
		content := map[string][]byte{}
		for name, text := range configMap.Data {
			content[name] = []byte(text)
		}
		return chosen(content, key.Name, source.ConfigMap.Items)
	case source.ServiceAccountToken != nil:
		asked := source.ServiceAccountToken
		spec := authenticationv1.TokenRequestSpec{
			Audiences: []string{asked.Audience}, ExpirationSeconds: asked.ExpirationSeconds,
		}
		token, err := requestToken(ctx, e.control.client, pod.Namespace, pod.Spec.ServiceAccountName, spec)
		return map[string][]byte{asked.Path: []byte(token)}, err
	}
	return nil, errors.New("a source of the volume is not supported: must be secret, configMap or serviceAccountToken")
}

// chosen returns the files of a Secret or ConfigMap: those of items, or all files without items.
func chosen(content map[string][]byte, name string, items []corev1.KeyToPath) (map[string][]byte, error) {
	if len(items) == 0 {
		return content, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		file, ok := content[item.Key]
		if !ok {
			return nil, fmt.Errorf("the Secret or ConfigMap %s has no key %s, which the volume lists in its items",
				name, item.Key)
		}
		files[item.Path] = file
	}
	return files, nil
}

// ServiceAccountToken returns a token of a service account. The token is valid for an hour.
func ServiceAccountToken(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	return requestToken(ctx, c, namespace, name, authenticationv1.TokenRequestSpec{})
}

// requestToken returns a token of a service account. Without audiences it is for the API server.
func requestToken(
	ctx context.Context, c client.Client, namespace, name string, spec authenticationv1.TokenRequestSpec,
) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: spec}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}
