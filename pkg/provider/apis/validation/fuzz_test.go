// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// FuzzProviderSpec decodes, completes and checks anything: without a panic, and
// with the parts that the driver relies on once nothing was found.
func FuzzProviderSpec(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, ``, `{"machineType":5}`,
		`{"region":"eu01","machineType":"g2i.4","imageId":"` + id1 + `","networking":{"networkId":"` + id2 + `"}}`,
		`{"bootVolume":{"source":{"type":"volume","id":"` + id1 + `"},"deleteOnTermination":true}}`,
		`{"labels":{"a/cluster":"x","b":null},"metadata":{"a":1,"b":[]},"allowedAddresses":["::1"]}`,
		`{"labels":{"a/cluster":5,"b":[]},"networking":{"nicIds":[1,[2]]},"bootVolume":{"size":1.5,"source":{"type":{}}},"metadata":{"a":1e999}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, _, errs := apis.DecodeProviderSpec(raw)
		if spec == nil {
			if len(errs) == 0 {
				t.Fatal("neither a spec nor an error")
			}
			return
		}
		apis.SetDefaults(spec, &apis.Secret{Region: "eu01", NetworkID: id1})
		if len(errs) > 0 || len(validation.ValidateProviderSpec(spec, apis.SpecPath)) > 0 {
			return
		}
		if spec.Networking == nil || (spec.Networking.NetworkID == "") == (len(spec.Networking.NICIDs) == 0) {
			t.Errorf("valid with networking %+v", spec.Networking)
		}
		if spec.BootVolume == nil || spec.BootVolume.Source == nil || !validation.IsUUID(spec.BootVolume.Source.ID) {
			t.Errorf("valid with boot volume %+v", spec.BootVolume)
		}
	})
}

// FuzzSecret checks that no error repeats what a Secret holds.
func FuzzSecret(f *testing.F) {
	f.Add("10000000-0000-4000-8000-000000000001", "", "{}", "", "", "", "", "eu01-1", "")
	f.Add("my-project", "other-project", "key-one", "key-two", "an-account", "a-token", "a-file", "a region", "a-network")
	f.Add("my-project", "", "", "", "an-account", "a-token", "a-file", "eu01", "")
	f.Fuzz(func(t *testing.T, project, projectToo, key, keyToo, email, token, file, region, network string) {
		secret, errs := apis.DecodeSecret(map[string][]byte{
			apis.SecretProjectID: []byte(project), apis.SecretProjectIDGardener: []byte(projectToo),
			apis.SecretServiceAccountKey: []byte(key), apis.SecretServiceAccountGardener: []byte(keyToo),
			apis.SecretServiceAccountEmail: []byte(email), apis.SecretToken: []byte(token), apis.SecretWorkloadIdentityTokenFile: []byte(file),
			apis.SecretRegion: []byte(region), apis.SecretNetworkID: []byte(network),
		})
		errs = append(errs, validation.ValidateSecret(secret, apis.SecretPath)...)
		errs = append(errs, validation.ValidateSecretNetwork(&apis.ProviderSpec{}, secret, apis.SecretPath)...)
		errs = append(errs, validation.ValidateRegion(secret.Region, apis.SpecPath.Child("region"))...)
		for _, err := range errs {
			if value, shown := err.BadValue.(string); shown && value != "" {
				t.Errorf("%s shows the value %q", err.Field, value)
			}
		}
	})
}
