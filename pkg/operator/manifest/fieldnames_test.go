// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"reflect"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

func TestNearestField(t *testing.T) {
	spec, machine := reflect.TypeFor[apis.ProviderSpec](), reflect.TypeFor[v1alpha1.Machine]()
	for name, row := range map[string]struct {
		in         reflect.Type
		path, want string
	}{
		"one letter too few":        {spec, "machineTyp", "machineType"},
		"letters swapped":           {spec, "regoin", "region"},
		"upper case":                {spec, "MACHINETYPE", "machineType"},
		"beside it, in an object":   {spec, "bootVolume.sise", "size"},
		"in another object":         {spec, "performanceClass", "bootVolume.performanceClass"},
		"of the level above":        {spec, "bootVolume.keypairName", "keypairName"},
		"embedded without a name":   {machine, "spec.drainTimeot", "drainTimeout"},
		"item of a list":            {machine, "spec.nodeTemplate.spec.taints[0].efect", "effect"},
		"nothing like it":           {spec, "zzzzzz", ""},
		"short, and nothing like":   {spec, "ab", ""},
		"below a field that is not": {spec, "nothing.size", "bootVolume.size"},
		"empty":                     {spec, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nearestField(row.in, row.path); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestEditDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"size", "sise", 1}, {"ab", "ba", 2}} {
		if got := editDistance(row.a, row.b); got != row.want {
			t.Errorf("%q to %q: got %d, want %d", row.a, row.b, got, row.want)
		}
	}
}

func TestDecodeStrictlyKeepsWhatIsRight(t *testing.T) {
	class := &v1alpha1.MachineClass{}
	problems := DecodeStrictly([]byte(`{"metadata":{"name":1,"labels":{"a":"b","c":["d"]}},"nodeTemplate":{"zone":"z","capacity":{"cpu":"x","gpu":1},"region":{}},
		"providerSpec":{"any":1},"secretRef":[],"provider":"stackit","":0}`), class)
	want := map[string]string{
		"metadata.name": "is a JSON number", "metadata.labels.c": "is a JSON array", "nodeTemplate.region": "is a JSON object",
		"secretRef": "is a JSON array", "nodeTemplate.capacity.cpu": "cannot be decoded: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		"": "is not a known field",
	}
	got := map[string]string{}
	for _, problem := range problems {
		got[problem.Path] = problem.Found
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if class.Labels["a"] != "b" || class.NodeTemplate.Zone != "z" || class.Provider != "stackit" || string(class.ProviderSpec.Raw) != `{"any":1}` {
		t.Errorf("got %+v, want the fields that are right", class)
	}
}
