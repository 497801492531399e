// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// IsSecret says whether the object is a Secret.
func (m *Manifest) IsSecret() bool {
	return m.Kind.Group == "" && m.Kind.Kind == "Secret"
}

// Secret decodes the manifest. stringData beats data, as in the API server.
func (m *Manifest) Secret() (*corev1.Secret, error) {
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
