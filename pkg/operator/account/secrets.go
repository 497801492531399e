// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNoSecret says that a Secret is not in the control cluster, or that none was asked.
var ErrNoSecret = errors.New("is not there")

// Secret reads a Secret of the control cluster.
func (o *Access) Secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	if o.Control == nil {
		return nil, fmt.Errorf("Secret %s %w: no cluster was asked", key, ErrNoSecret)
	}
	secret := &corev1.Secret{}
	err := o.Control.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("Secret %s %w", key, ErrNoSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// SecretOf merges the Secrets of a class as the manager does: what credentialsSecretRef
// names beats what secretRef does (v0.62.1 machine_util.go:97, 225). A class without a
// reference has an empty one. The manager leaves out a Secret that is missing; here it is an
// error, since nobody knows what it should hold.
func (o *Access) SecretOf(ctx context.Context, class *v1alpha1.MachineClass) (*corev1.Secret, error) {
	merged := &corev1.Secret{Data: map[string][]byte{}}
	for _, ref := range SecretRefs(class) {
		secret, err := o.Secret(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return nil, err
		}
		maps.Copy(merged.Data, secret.Data)
	}
	return merged, nil
}

// NamedKey reads "name" or "namespace/name".
func (o *Access) NamedKey(name string) client.ObjectKey {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: rest}
	}
	return client.ObjectKey{Namespace: o.Namespace, Name: name}
}

// SecretRefs are the references of a class to its Secrets; the last one's keys win.
func SecretRefs(class *v1alpha1.MachineClass) []*corev1.SecretReference {
	return slices.DeleteFunc([]*corev1.SecretReference{class.SecretRef, class.CredentialsSecretRef},
		func(ref *corev1.SecretReference) bool { return ref == nil })
}

// SecretNames are the Secrets of a class, as texts name them.
func SecretNames(class *v1alpha1.MachineClass) []string {
	var names []string
	for _, ref := range SecretRefs(class) {
		names = append(names, fmt.Sprintf("Secret %s/%s", ref.Namespace, ref.Name))
	}
	return names
}
