// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

func TestDecodeProviderSpec(t *testing.T) {
	for name, row := range map[string]struct {
		raw     string
		want    apis.ProviderSpec
		unknown string
	}{
		"empty object": {`{}`, apis.ProviderSpec{}, ""},
		"null means not set": {`{"region":null,"labels":{"a":null},"bootVolume":null,"agent":{"provisioned":null}}`,
			apis.ProviderSpec{Labels: map[string]string{"a": ""}, Agent: &apis.Agent{}}, ""},
		"large numbers": {`{"metadata":{"n":9007199254740993}}`,
			apis.ProviderSpec{Metadata: map[string]any{"n": int64(9007199254740993)}}, ""},
		"unknown and duplicate fields": {`{"machineTyp":5,"agent":{"sise":"x"},"region":"eu01","region":"eu02"}`,
			apis.ProviderSpec{Region: "eu02", Agent: &apis.Agent{}},
			`unknown field "machineTyp" unknown field "agent.sise" duplicate field "region"`},
		"the operator's own keys": {`{"labels":{"Region":"c"},"metadata":{"ImageId":"a"}}`, apis.ProviderSpec{
			Labels: map[string]string{"Region": "c"}, Metadata: map[string]any{"ImageId": "a"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown, errs := apis.DecodeProviderSpec([]byte(row.raw))
			if diff := cmp.Diff(row.want, *got); diff != "" || len(errs) > 0 {
				t.Errorf("%v (-want +got):\n%s", errs, diff)
			}
			if text := strings.Trim(fmt.Sprint(unknown), "[]"); text != row.unknown {
				t.Errorf("unknown are %s, want %s", text, row.unknown)
			}
		})
	}
}

// The first error of decoding is told alone, with its path and without a text that Gardener takes for wrong
// credentials. STACKIT's own driver takes keys in another case; here only the fields' own names count.
func TestDecodeProviderSpecRefuses(t *testing.T) {
	for name, row := range map[string]struct{ raw, want string }{
		"nothing":       {"", "providerSpec: Invalid value: is not valid JSON at byte 0"},
		"null":          {"null", "providerSpec: Invalid value: is null: must be a JSON object"},
		"a list":        {"[]", "providerSpec: Invalid value: json: cannot unmarshal array"},
		"trailing data": {`{} {}`, "providerSpec: Invalid value: is not valid JSON at byte 4"},
		"too much": {`{"userData":"` + strings.Repeat("x", 512<<10) + `"}`,
			"providerSpec: Invalid value: has 524303 bytes: must have at most 524288"},
		"wrong types": {`{"bootVolume":{"size":"s3cr3t"},"machineType":5}`,
			"providerSpec.bootVolume.size: Invalid value: json: cannot unmarshal string into"},
		"an item": {`{"networking":{"nicIds":["i",7]}}`,
			"providerSpec.networking.nicIds: Invalid value: json: cannot unmarshal number into"},
		"another case": {`{"allowedaddresses":[],"networking":{"NetworkId":"n"}}`,
			`providerSpec.allowedAddresses: Invalid value: is spelled "allowedaddresses": must be "allowedAddresses"; ` +
				`providerSpec.networking.networkId: Invalid value: is spelled "networking.NetworkId": must be`},
		"another case in a list": {`{"fallbacks":[{"machineType":"c2a.2"},{"MachineType":"c2a.4"}]}`,
			`providerSpec.fallbacks.machineType: Invalid value: is spelled "fallbacks[1].MachineType": must be`},
		"another case beside the right one": {`{"labels":{"a":"b"},"Labels":null}`,
			`providerSpec.labels: Invalid value: is spelled "Labels": must be "labels"`},
		"other letters, as encoding/json folds them": {`{"networ\u212aing":{}}`,
			"providerSpec.networking: Invalid value: is spelled \"networ\u212aing\": must be"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, errs := apis.DecodeProviderSpec([]byte(row.raw))
			if got := texts(errs); !strings.HasPrefix(got, row.want) || strings.Contains(got, "s3cr3t") {
				t.Errorf("got %s\nwant %s", got, row.want)
			}
		})
	}
}

func texts(errs field.ErrorList) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// A wrong part matters only to calls that need it.
func TestDecodeNeeded(t *testing.T) {
	for name, row := range map[string]struct{ raw, wrong, network string }{
		"other fields may be wrong": {`{"region":"eu01","machineType":5,"allowedAddresses":7,"Volumes":7,"a":1}`, "", ""},
		"wrong types":               {`{"region":"eu01","labels":{"a":1},"networking":[]}`, "labels", ""},
		"a wrong network":           {`{"region":"eu01","networking":[]}`, "", "networking"},
		"another case":              {`{"region":"eu01","Region":null}`, "region", ""},
		"a network in another case": {`{"networking":{"networkID":"n"}}`, "", "networking.networkId"},
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong, network := apis.DecodeNeeded([]byte(row.raw))
			fields := func(errs field.ErrorList) (text string) {
				for _, err := range errs {
					text += " " + strings.TrimPrefix(err.Field, "providerSpec.")
				}
				return strings.TrimSpace(text)
			}
			if fields(wrong) != row.wrong || fields(network) != row.network {
				t.Errorf("wrong are %v and %v, want %q and %q", wrong, network, row.wrong, row.network)
			}
		})
	}
}

func TestDecodeSecret(t *testing.T) {
	data := func(pairs ...string) map[string][]byte {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return data
	}
	for name, row := range map[string]struct {
		data map[string][]byte
		want apis.Secret
		errs []string
	}{
		"documented spelling": {data("projectId", "p", "serviceAccountKey", "k", "region", "eu01", "networkId", "n",
			"userData", " u\n"),
			apis.Secret{ProjectID: "p", ServiceAccountKey: "k", Region: "eu01", NetworkID: "n", UserData: " u\n"}, nil},
		"Gardener's spelling": {data("project-id", "p", "serviceaccount.json", "k"),
			apis.Secret{ProjectID: "p", ServiceAccountKey: "k"}, nil},
		"a workload identity": {data("serviceAccountEmail", "e", "token", "t\n"),
			apis.Secret{ServiceAccountEmail: "e", Token: "t"}, nil},
		"both and equal": {data("projectId", "p", "project-id", "p\n"), apis.Secret{ProjectID: "p"}, nil},
		"both and different": {data("projectId", "p", "project-id", "q", "serviceAccountKey", "k1", "serviceaccount.json",
			"k2"), apis.Secret{ProjectID: "p", ServiceAccountKey: "k1"},
			[]string{"secret.projectId", "secret.serviceAccountKey"}},
		"a zone as region": {data("region", "eu01-1"), apis.Secret{Region: "eu01", AvailabilityZone: "eu01-1"}, nil},
		"the metro zone":   {data("region", "eu02-m"), apis.Secret{Region: "eu02", AvailabilityZone: "eu02-m"}, nil},
		"userData that is long": {data("userData", strings.Repeat("u", 256<<10+1)), apis.Secret{},
			[]string{"secret.userData"}},
		"a region with a hyphen": {data("region", "eu-west"), apis.Secret{Region: "eu-west"}, nil},
		"nothing":                {nil, apis.Secret{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := apis.DecodeSecret(row.data)
			var fields []string
			for _, err := range errs {
				fields = append(fields, err.Field)
				if strings.Contains(err.Error(), "k1") || strings.Contains(err.Error(), "k2") {
					t.Errorf("%v shows a value", err)
				}
			}
			if diff := cmp.Diff(row.errs, fields); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetDefaults(t *testing.T) {
	yes, no := true, false
	secret := &apis.Secret{Region: "eu01", AvailabilityZone: "eu01-1", NetworkID: "n", UserData: "secret's"}
	for name, row := range map[string]struct{ spec, want apis.ProviderSpec }{
		"from the Secret": {apis.ProviderSpec{}, apis.ProviderSpec{Region: "eu01", AvailabilityZone: "eu01-1",
			Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
		"the spec wins": {
			apis.ProviderSpec{Region: "eu01", AvailabilityZone: "eu01-2", Networking: &apis.Networking{NICIDs: []string{"i"}},
				UserData: "own"},
			apis.ProviderSpec{Region: "eu01", AvailabilityZone: "eu01-2", Networking: &apis.Networking{NICIDs: []string{"i"}},
				UserData: "own"}},
		"empty objects": {apis.ProviderSpec{Region: "x", Networking: &apis.Networking{},
			BootVolume: &apis.BootVolume{Source: &apis.BootVolumeSource{}}}, apis.ProviderSpec{Region: "x",
			Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's", BootVolume: &apis.BootVolume{}}},
		"no zone of another region": {apis.ProviderSpec{Region: "eu02"}, apis.ProviderSpec{Region: "eu02",
			Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
		"image as source": {apis.ProviderSpec{Region: "x", ImageID: "i", BootVolume: &apis.BootVolume{}},
			apis.ProviderSpec{Region: "x", ImageID: "i",
				BootVolume: &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "image", ID: "i"}, DeleteOnTermination: &yes},
				Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
		"disk kept on demand": {
			apis.ProviderSpec{Region: "x", ImageID: "i", BootVolume: &apis.BootVolume{DeleteOnTermination: &no}},
			apis.ProviderSpec{Region: "x", ImageID: "i",
				BootVolume: &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "image", ID: "i"}, DeleteOnTermination: &no},
				Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
		"an existing volume is nobody's to delete": {
			apis.ProviderSpec{Region: "x",
				BootVolume: &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "volume", ID: "v"}}},
			apis.ProviderSpec{Region: "x", BootVolume: &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "volume", ID: "v"}},
				Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
	} {
		t.Run(name, func(t *testing.T) {
			apis.SetDefaults(&row.spec, secret)
			if diff := cmp.Diff(row.want, row.spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
