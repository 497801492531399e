// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Override is a value that beats that of a Secret, and what set it, such as "--region".
type Override struct {
	Value, Origin string
	// Read returns the value, when it is used; nil means that it is Value.
	Read func() (string, error)
}

// IsSet says whether there is a value.
func (o Override) IsSet() bool { return o.Value != "" || o.Read != nil }

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
		key string
		// replaced are keys that mean the same, or are not allowed beside it.
		replaced []string
	}{
		{o.ProjectID, apis.SecretProjectID, []string{apis.SecretProjectIDGardener}},
		{o.Region, apis.SecretRegion, nil},
		{o.ServiceAccountKey, apis.SecretServiceAccountKey, append([]string{apis.SecretServiceAccountGardener}, apis.SecretIdentity...)},
	} {
		if !each.IsSet() {
			continue
		}
		value := each.Value
		if each.Read != nil {
			var err error
			if value, err = each.Read(); err != nil {
				return nil, nil, err
			}
		}
		for _, key := range each.replaced {
			delete(changed.Data, key)
		}
		changed.Data[each.key] = []byte(value)
		origins = append(origins, fmt.Sprintf("%s by %s", each.key, each.Origin))
	}
	return changed, origins, nil
}
