// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// inClusterFolder is where each container finds its service account.
	inClusterFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// inClusterURL is the API server's, for each container.
	inClusterURL = "https://kubernetes.default.svc"
	// rootsFolder is where Go looks for the certificates to trust on Linux.
	rootsFolder = "/etc/ssl/certs"
)

// mounts are the files of a Pod: by the path in a container, the path on this computer.
type mounts map[string]string

// in returns text with the paths of this computer for those of a container.
func (m mounts) in(text string) string {
	for inside, here := range m {
		text = strings.ReplaceAll(text, inside, here)
	}
	return text
}

// environment has Go read another folder of root certificates for one that a container
// mounts into its own. Only Linux knows the variable.
func (m mounts) environment(container corev1.Container) []string {
	for _, mount := range container.VolumeMounts {
		if path.Dir(mount.MountPath) == rootsFolder {
			return []string{"SSL_CERT_DIR=" + filepath.Dir(m[mount.MountPath])}
		}
	}
	return nil
}

// PodPath returns the path on this computer of what a container of the Pod has at a path.
func (e *Env) PodPath(pod *corev1.Pod, inside string) string { return e.mountsOf(pod).in(inside) }

// mountsOf returns where a Pod's files are.
func (e *Env) mountsOf(pod *corev1.Pod) mounts {
	root := filepath.Join(e.dir, "pods", pod.Name)
	files := mounts{inClusterFolder: filepath.Join(root, "serviceaccount"), inClusterURL: e.control.restConfig.Host}
	for _, container := range pod.Spec.Containers {
		for _, mount := range container.VolumeMounts {
			files[mount.MountPath] = filepath.Join(root, "volumes", mount.Name, mount.SubPath)
		}
	}
	return files
}

// mount writes the files of a Pod: its service account, its Secrets as they are in the
// control cluster now, and tokens of its service account for others.
func (e *Env) mount(ctx context.Context, pod *corev1.Pod, token string) (mounts, error) {
	files := e.mountsOf(pod)
	content := map[string]map[string][]byte{
		files[inClusterFolder]: {"token": []byte(token), "ca.crt": e.control.credentials.ca},
	}
	for _, volume := range pod.Spec.Volumes {
		folder := filepath.Join(e.dir, "pods", pod.Name, "volumes", volume.Name)
		var err error
		if content[folder], err = e.volume(ctx, pod, volume); err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	for folder, entries := range content {
		if err := files.write(folder, entries); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// write makes the files as a kubelet does: behind links, by which it replaces all at once.
func (m mounts) write(folder string, entries map[string][]byte) error {
	const data, written = "..data", "..written"
	if err := cmp.Or(
		os.RemoveAll(folder), // an earlier Pod of the name had others
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

// volume returns the files of a volume that is a Secret, or is projected.
func (e *Env) volume(ctx context.Context, pod *corev1.Pod, volume corev1.Volume) (map[string][]byte, error) {
	switch {
	case volume.Secret != nil:
		return e.secret(ctx, pod.Namespace, volume.Secret.SecretName, volume.Secret.Items)
	case volume.Projected != nil:
		all := map[string][]byte{}
		for _, source := range volume.Projected.Sources {
			entries, err := e.projection(ctx, pod, source)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, entries)
		}
		return all, nil
	}
	return nil, errors.New("only Secrets can be mounted")
}

func (e *Env) projection(ctx context.Context, pod *corev1.Pod, source corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case source.Secret != nil:
		return e.secret(ctx, pod.Namespace, source.Secret.Name, source.Secret.Items)
	case source.ServiceAccountToken != nil:
		token, err := requestToken(ctx, e.control.client, pod.Namespace, pod.Spec.ServiceAccountName, authenticationv1.TokenRequestSpec{
			Audiences: []string{source.ServiceAccountToken.Audience}, ExpirationSeconds: source.ServiceAccountToken.ExpirationSeconds,
		})
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(token)}, err
	}
	return nil, errors.New("only Secrets and tokens of service accounts can be projected")
}

// secret returns the files of a Secret: those of items, or all if there are none.
func (e *Env) secret(ctx context.Context, namespace, name string, items []corev1.KeyToPath) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := e.control.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return secret.Data, nil
	}
	chosen := map[string][]byte{}
	for _, item := range items {
		content, ok := secret.Data[item.Key]
		if !ok {
			return nil, fmt.Errorf("secret %s has no key %s", name, item.Key)
		}
		chosen[item.Path] = content
	}
	return chosen, nil
}
