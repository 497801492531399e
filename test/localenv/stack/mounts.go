// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

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

// mount writes the files of a Pod: its service account, and its Secrets as they are in
// the control cluster now.
func (e *Env) mount(ctx context.Context, pod *corev1.Pod, token string) (mounts, error) {
	root := filepath.Join(e.dir, "pods", pod.Name)
	files := mounts{inClusterFolder: filepath.Join(root, "serviceaccount"), inClusterURL: e.control.restConfig.Host}
	content := map[string]map[string][]byte{
		files[inClusterFolder]: {"token": []byte(token), "ca.crt": e.control.credentials.ca},
	}
	for _, volume := range pod.Spec.Volumes {
		folder := filepath.Join(root, "volumes", volume.Name)
		var err error
		if content[folder], err = e.volume(ctx, pod.Namespace, volume); err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
		for _, container := range pod.Spec.Containers {
			for _, mount := range container.VolumeMounts {
				if mount.Name == volume.Name {
					files[mount.MountPath] = filepath.Join(folder, mount.SubPath)
				}
			}
		}
	}
	for folder, entries := range content {
		if err := files.write(folder, entries); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (m mounts) write(folder string, entries map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, content := range entries {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(m.in(string(content))), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// volume returns the files of a volume that is a Secret, or several.
func (e *Env) volume(ctx context.Context, namespace string, volume corev1.Volume) (map[string][]byte, error) {
	switch {
	case volume.Secret != nil:
		return e.secret(ctx, namespace, volume.Secret.SecretName, volume.Secret.Items)
	case volume.Projected != nil:
		all := map[string][]byte{}
		for _, source := range volume.Projected.Sources {
			if source.Secret == nil {
				return nil, errors.New("only Secrets can be projected")
			}
			entries, err := e.secret(ctx, namespace, source.Secret.Name, source.Secret.Items)
			if err != nil {
				return nil, err
			}
			for name, content := range entries {
				all[name] = content
			}
		}
		return all, nil
	}
	return nil, errors.New("only Secrets can be mounted")
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
