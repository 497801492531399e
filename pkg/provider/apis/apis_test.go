// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

func TestDecodeProviderSpec(t *testing.T) {
	for name, row := range map[string]struct {
		raw  string
		want apis.ProviderSpec
	}{
		"empty object": {`{}`, apis.ProviderSpec{}},
		"null means not set": {
			`{"region":null,"labels":{"a":null,"b":""},"metadata":{"x":null},"bootVolume":null,"agent":{"provisioned":null}}`,
			apis.ProviderSpec{Labels: map[string]string{"b": ""}, Metadata: map[string]any{}, Agent: &apis.Agent{}}},
		"objects with nothing in them": {`{"networking":{"networkId":null,"nicIds":[]},"bootVolume":{"source":{}}}`,
			apis.ProviderSpec{BootVolume: &apis.BootVolume{}}},
		"large numbers": {`{"metadata":{"n":9007199254740993}}`,
			apis.ProviderSpec{Metadata: map[string]any{"n": int64(9007199254740993)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, errs := apis.DecodeProviderSpec([]byte(row.raw))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(row.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeProviderSpecRefusesWhatIsNoObject(t *testing.T) {
	for name, row := range map[string]struct{ raw, says string }{
		"nothing":       {"", "is empty"},
		"white space":   {" \n", "is empty"},
		"null":          {"null", "is null"},
		"a list":        {"[]", "is a JSON array"},
		"a string":      {`"{}"`, "is a JSON string"},
		"cut off":       {`{"region":`, "is not valid JSON"},
		"trailing data": {`{} {}`, "is not valid JSON"},
		"too long": {`{"userData":"` + strings.Repeat("x", 512<<10) + `"}`,
			"has 524303 bytes: must have at most 524288"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, errs := apis.DecodeProviderSpec([]byte(row.raw))
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), row.says) || errs[0].Field != "providerSpec" {
				t.Errorf("got %v, want one error of providerSpec that says %q", errs, row.says)
			}
		})
	}
}

func TestDecodeProviderSpecNamesTheFirstPartOfAWrongType(t *testing.T) {
	for name, row := range map[string]struct{ raw, want string }{
		"a number": {`{"machineType":5}`, "machineType: Invalid value: is a JSON number: must be a string"},
		"a list": {`{"allowedAddresses":"10.0.0.0/8"}`,
			"allowedAddresses: Invalid value: is a JSON string: must be a list"},
		"a secret": {`{"userData":{"secret":"s3cr3t"}}`,
			"userData: Invalid value: is a JSON object: must be a string"},
		"a part of a part": {`{"bootVolume":{"size":"s3cr3t"}}`,
			"bootVolume.size: Invalid value: is a JSON string: must be a whole number"},
		"an item": {`{"networking":{"nicIds":["i",7]}}`,
			"networking.nicIds[1]: Invalid value: is a JSON number: must be a string"},
		"a label": {`{"labels":{"a":"b","c/d":1}}`, "labels[c/d]: Invalid value: is a JSON number: must be a string"},
		"many items": {`{"volumes":[` + strings.Repeat("1,", 10) + `1]}`,
			"volumes: Invalid value: is a JSON number: must be a string"},
		"a fraction": {`{"bootVolume":{"size":81726354.5}}`,
			"bootVolume.size: Invalid value: is a number that is too large or has a fraction: must be a whole number"},
		"a number too large": {`{"metadata":{"x":81726354e999}}`,
			"metadata[x]: Invalid value: is a number that is too large or has a fraction: must be a number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, errs := apis.DecodeProviderSpec([]byte(row.raw))
			if len(errs) != 1 || errs[0].Error() != "providerSpec."+row.want {
				t.Errorf("got %v, want providerSpec.%s", errs, row.want)
			}
		})
	}
}

func TestDecodeProviderSpecKeepsWhatIsRight(t *testing.T) {
	spec, _, errs := apis.DecodeProviderSpec([]byte(`{"machineType":5,"region":"eu01","allowedAddresses":"10.0.0.0/8",
		"bootVolume":{"performanceClass":false,"deleteOnTermination":true,"source":[]},"networking":{"nicIds":["i",7]},
		"labels":{"a":"b","c/d":1,"e":null},"metadata":{"y":1}}`))
	yes := true
	if diff := cmp.Diff(apis.ProviderSpec{
		Region: "eu01", BootVolume: &apis.BootVolume{DeleteOnTermination: &yes},
		Networking: &apis.Networking{NICIDs: []string{"i", ""}},
		Labels:     map[string]string{"a": "b", "c/d": ""}, Metadata: map[string]any{"y": int64(1)},
	}, *spec); diff != "" || len(errs) != 6 {
		t.Errorf("what is right (-want +got):\n%s\nerrors: %v", diff, errs)
	}
}

// A wrong part matters only to calls that need it, and hides no other.
func TestDecodeNeeded(t *testing.T) {
	for name, row := range map[string]struct{ raw, wrong string }{
		"other fields may be wrong": {
			`{"region":"eu01","machineType":5,"bootVolume":[],"metadata":7,"Volumes":7,"colour":1}`, ""},
		"right keys beside others":  {`{"region":"eu01","Region":"eu02","networking":{},"Networking":{}}`, ""},
		"labels beside others":      {`{"labels":{},"LABELS":{"a":"b"}}`, "providerSpec.labels"}, // they count together
		"labels beside null":        {`{"labels":{},"LABELS":null}`, ""},
		"labels that are null":      {`{"labels":null,"Labels":{"a":"b"}}`, "providerSpec.labels"},
		"another case that is null": {`{"Region":null}`, ""},
		"another case alone":        {`{"Region":"eu01","Labels":{}}`, "providerSpec.region providerSpec.labels"},
		"wrong types": {`{"region":7,"labels":{"a":1},"networking":[]}`,
			"providerSpec.region providerSpec.labels[a] providerSpec.networking"},
		"two items": {`{"labels":{"b":1,"c":"","a":true},"allowedAddresses":["",7]}`,
			"providerSpec.labels[a] providerSpec.labels[b] providerSpec.allowedAddresses[1]"},
		"another case below":         {`{"networking":{"networkID":"n"}}`, "providerSpec.networking.networkId"},
		"another case in a list":     {`{"fallbacks":[{"MachineType":"c2a.2"}]}`, ""},
		"another case below and not": {`{"networking":{"networkID":"n","networkId":"m"}}`, ""},
		"no object":                  {`[]`, "providerSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, wrong := apis.DecodeNeeded([]byte(row.raw))
			var fields []string
			for _, err := range wrong {
				fields = append(fields, err.Field)
			}
			if got := strings.Join(fields, " "); got != row.wrong || spec == nil {
				t.Errorf("wrong are %q, want %q", got, row.wrong)
			}
		})
	}
}

// Types of Kubernetes have decoders of their own, whose errors may repeat the value.
func TestDecodeOfTypesWithADecoder(t *testing.T) {
	for field, want := range map[string]string{
		"time": "a time like 2026-01-31T12:00:00Z", "duration": "cannot be decoded: a duration must be like 30s or 2h45m",
		"cpu": "cannot be decoded: quantities must match", "data": "is not base64: must be base64",
	} {
		t.Run(field, func(t *testing.T) {
			var into struct {
				Time     metav1.Time       `json:"time"`
				Duration metav1.Duration   `json:"duration"`
				CPU      resource.Quantity `json:"cpu"`
				Data     []byte            `json:"data"`
			}
			_, errs := apis.Decode([]byte(`{"`+field+`":"1s3cr3t"}`), &into, nil)
			text := fmt.Sprint(errs.ToAggregate())
			if !strings.Contains(text, want) || strings.Contains(text, "s3cr3t") {
				t.Errorf("got %q, want %q and no value in it", text, want)
			}
		})
	}
}

func TestDecodeProviderSpecReportsUnknownFields(t *testing.T) {
	spec, unknown, errs := apis.DecodeProviderSpec([]byte(
		`{"machineTyp":5,"bootVolume":{"sise":"x"},"region":"eu01","region":"eu02"}`))
	if len(errs) > 0 || spec.MachineType != "" {
		t.Fatal(errs, spec)
	}
	var texts []string
	for _, problem := range unknown {
		texts = append(texts, problem.Error())
	}
	want := []string{`unknown field "machineTyp"`, `unknown field "bootVolume.sise"`, `duplicate field "region"`}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// STACKIT's own driver takes these keys; here only the fields' own names count.
func TestDecodeProviderSpecRefusesKeysInAnotherCase(t *testing.T) {
	for name, row := range map[string]struct{ raw, want string }{
		"at the top": {`{"keyPairName":"k"}`,
			`keypairName: Invalid value: is spelled "keyPairName": must be "keypairName"`},
		"in lower case": {`{"allowedaddresses":[]}`,
			`allowedAddresses: Invalid value: is spelled "allowedaddresses": must be "allowedAddresses"`},
		"below": {`{"networking":{"NetworkId":"n"}}`,
			`networking.networkId: Invalid value: is spelled "NetworkId": must be "networkId"`},
		"at two levels": {`{"bootVolume":{"Source":{"type":"image","ID":"i"}}}`,
			`bootVolume.source: Invalid value: is spelled "Source": must be "source"; ` +
				`bootVolume.source.id: Invalid value: is spelled "ID": must be "id"`},
		"in a list": {`{"fallbacks":[{"machineType":"c2a.2"},null,{"MachineType":"c2a.4"}]}`,
			`fallbacks[2].machineType: Invalid value: is spelled "MachineType": must be "machineType"`},
		"beside the right one": {`{"labels":{"a":"b"},"Labels":{"a":"c"}}`,
			`labels: Invalid value: is spelled "Labels": must be "labels"`},
		"that is null":       {`{"Region":null}`, `region: Invalid value: is spelled "Region": must be "region"`},
		"with a wrong value": {`{"Volumes":7}`, `volumes: Invalid value: is spelled "Volumes": must be "volumes"`},
		"in several":         {`{"AGENT":{},"Agent":{}}`, `agent: Invalid value: is spelled "AGENT": must be "agent"`},
		"in other letters, as encoding/json folds them": {`{"volume\u017f":[],"networ\u212aing":{}}`,
			"networking: Invalid value: is spelled \"networ\u212aing\": must be \"networking\"; " +
				`volumes: Invalid value: is spelled "volumeſ": must be "volumes"`},
		"the operator's own": {`{"labels":{"Labels":"a","region":"b","Region":"c"},"metadata":{"ImageId":"a"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, unknown, errs := apis.DecodeProviderSpec([]byte(row.raw))
			var texts []string
			for _, err := range errs {
				texts = append(texts, strings.TrimPrefix(err.Error(), "providerSpec."))
			}
			if got := strings.Join(texts, "; "); got != row.want || len(unknown) > 0 {
				t.Errorf("got %s (unknown: %v)\nwant %s", got, unknown, row.want)
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
		"a workload identity": {data("serviceAccountEmail", "e", "token", "t\n", "workloadIdentityTokenFile", "f"),
			apis.Secret{ServiceAccountEmail: "e", Token: "t", WorkloadIdentityTokenFile: "f"}, nil},
		"both and equal": {data("projectId", "p", "project-id", "p\n"), apis.Secret{ProjectID: "p"}, nil},
		"both and different": {data("projectId", "p", "project-id", "q", "serviceAccountKey", "k1", "serviceaccount.json",
			"k2"), apis.Secret{},
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
		"no zone of another region": {apis.ProviderSpec{Region: "eu02"}, apis.ProviderSpec{Region: "eu02",
			Networking: &apis.Networking{NetworkID: "n"}, UserData: "secret's"}},
		"image alone": {apis.ProviderSpec{Region: "x", ImageID: "i"}, apis.ProviderSpec{Region: "x", ImageID: "i",
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
