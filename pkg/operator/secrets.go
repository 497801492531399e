// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ErrNoSecret says that a Secret is in no manifest, and not in the cluster if one may be
// asked.
var ErrNoSecret = errors.New("is not there")

// secret finds a Secret: among the manifests, then in the control cluster.
func (o *Operator) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	if manifest := o.manifestOf(key); manifest != nil {
		return manifest.secret()
	}
	if o.Control == nil {
		return nil, fmt.Errorf("%s %s %w: it is in no file, and no cluster was asked", kindSecret, key, ErrNoSecret)
	}
	secret := &corev1.Secret{}
	err := o.Control.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %s %w", kindSecret, key, ErrNoSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// manifestOf returns the manifest of a Secret; nil if there is none.
func (o *Operator) manifestOf(key client.ObjectKey) *Manifest {
	for _, manifest := range o.Manifests {
		if manifest.isSecret() && manifest.Namespace == key.Namespace && manifest.Name == key.Name {
			return manifest
		}
	}
	return nil
}

// SecretGiven says whether the Secret that SecretName names is among the manifests, so that
// no cluster needs to be asked for it.
func (o *Operator) SecretGiven() bool {
	return o.manifestOf(o.namedKey(o.SecretName)) != nil
}

// secretOf merges the Secrets of a class as the manager does: what credentialsSecretRef
// names beats what secretRef does (v0.62.1 machine_util.go:97, 225). A class without a
// reference has an empty one. The manager leaves out a Secret that is missing; here it is an
// error, since nobody knows what it should hold.
func (o *Operator) secretOf(ctx context.Context, class *v1alpha1.MachineClass) (*corev1.Secret, error) {
	merged := &corev1.Secret{Data: map[string][]byte{}}
	for _, ref := range secretRefs(class) {
		secret, err := o.secret(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		if err != nil {
			return nil, err
		}
		maps.Copy(merged.Data, secret.Data)
	}
	return merged, nil
}

func (m *Manifest) isSecret() bool {
	return m.Kind.Group == "" && m.Kind.Kind == "Secret"
}

// secret decodes the manifest. stringData beats data, as in the API server.
func (m *Manifest) secret() (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := json.Unmarshal(m.JSON, secret); err != nil {
		// The decoder's error may repeat a value.
		return nil, fmt.Errorf("%v: Secret %s/%s cannot be decoded: data must be base64, stringData text", m.Position("data"), m.Namespace, m.Name)
	}
	secret.Namespace = m.Namespace
	mergeStringData(secret)
	return secret, nil
}

// mergeStringData does what the API server does with a Secret.
func mergeStringData(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
}

// Override is a value that beats that of a Secret, and what set it, such as "--region".
type Override struct {
	Value, Origin string
	// Read returns the value, when it is used; nil means that it is Value.
	Read func() (string, error)
}

func (o Override) isSet() bool { return o.Value != "" || o.Read != nil }

// Overrides are what the command line and the environment say of the credentials.
type Overrides struct{ ProjectID, Region, ServiceAccountKey Override }

// apply returns the Secret with the overrides in it, and what they came from.
func (o Overrides) apply(secret *corev1.Secret) (*corev1.Secret, []string, error) {
	changed := secret.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string][]byte{}
	}
	var origins []string
	for _, each := range []struct {
		Override
		key, gardener string
	}{
		{o.ProjectID, apis.SecretProjectID, apis.SecretProjectIDGardener},
		{o.Region, apis.SecretRegion, ""},
		{o.ServiceAccountKey, apis.SecretServiceAccountKey, apis.SecretServiceAccountGardener},
	} {
		if !each.isSet() {
			continue
		}
		value := each.Value
		if each.Read != nil {
			var err error
			if value, err = each.Read(); err != nil {
				return nil, nil, err
			}
		}
		delete(changed.Data, each.gardener)
		changed.Data[each.key] = []byte(value)
		origins = append(origins, fmt.Sprintf("%s by %s", each.key, each.Origin))
	}
	return changed, origins, nil
}

// namedKey reads "name" or "namespace/name".
func (o *Operator) namedKey(name string) client.ObjectKey {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: rest}
	}
	return client.ObjectKey{Namespace: o.Namespace, Name: name}
}

// secretRefs are the references of a class to its Secrets; the last one's keys win.
func secretRefs(class *v1alpha1.MachineClass) []*corev1.SecretReference {
	return slices.DeleteFunc([]*corev1.SecretReference{class.SecretRef, class.CredentialsSecretRef},
		func(ref *corev1.SecretReference) bool { return ref == nil })
}
