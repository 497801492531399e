// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

const (
	id1 = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	id2 = "e61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
)

func size(gigabytes int64) *int64 { return &gigabytes }

func valid() *apis.ProviderSpec {
	return &apis.ProviderSpec{
		Region: "eu01", MachineType: "g2i.4", ImageID: id1,
		BootVolume: &apis.BootVolume{Size: size(20), Source: &apis.BootVolumeSource{Type: "image", ID: id1}},
		Networking: &apis.Networking{NetworkID: id1},
	}
}

func paths(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Field)
	}
	return strings.Join(all, " ")
}

func TestValidateProviderSpec(t *testing.T) {
	yes := true
	long, longName := strings.Repeat("a", 64), strings.Repeat("a", 128)
	for name, row := range map[string]struct {
		change func(*apis.ProviderSpec)
		want   string
	}{
		"valid":                       {func(*apis.ProviderSpec) {}, ""},
		"no region":                   {func(s *apis.ProviderSpec) { s.Region = "" }, "region"},
		"region with a slash":         {func(s *apis.ProviderSpec) { s.Region = "eu01/x" }, "region"},
		"region of tomorrow":          {func(s *apis.ProviderSpec) { s.Region = "us-east.7" }, ""},
		"no machine type":             {func(s *apis.ProviderSpec) { s.MachineType = "" }, "machineType"},
		"machine type of tomorrow":    {func(s *apis.ProviderSpec) { s.MachineType = "zz9.1024cd.q7" }, ""},
		"machine type with a newline": {func(s *apis.ProviderSpec) { s.MachineType = "g2i.4\n" }, "machineType"},
		"machine type of 127 letters": {func(s *apis.ProviderSpec) { s.MachineType = longName[1:] }, ""},
		"machine type of 128 letters": {func(s *apis.ProviderSpec) { s.MachineType = longName }, "machineType"},
		"image no UUID": {func(s *apis.ProviderSpec) { s.ImageID, s.BootVolume.Source.ID = "ubuntu", "ubuntu" },
			"imageId"},
		"image in upper case":         {func(s *apis.ProviderSpec) { s.ImageID = strings.ToUpper(id1) }, "imageId imageId"},
		"image without a boot volume": {func(s *apis.ProviderSpec) { s.BootVolume = nil }, ""},
		"nothing to boot from":        {func(s *apis.ProviderSpec) { s.ImageID, s.BootVolume = "", nil }, "imageId"},
		"two sources":                 {func(s *apis.ProviderSpec) { s.BootVolume.Source.ID = id2 }, "imageId"},
		"unknown source": {func(s *apis.ProviderSpec) { s.ImageID, s.BootVolume.Source.Type = "", "disk" },
			"bootVolume.source.type"},
		"source without ID": {func(s *apis.ProviderSpec) { s.ImageID, s.BootVolume.Source.ID = "", "" },
			"bootVolume.source.id"},
		"image disk without a size": {func(s *apis.ProviderSpec) { s.BootVolume.Size = nil }, "bootVolume.size"},
		"snapshot without a size": {func(s *apis.ProviderSpec) {
			s.ImageID, s.BootVolume.Source.Type, s.BootVolume.Size = "", "snapshot", nil
		}, "bootVolume.size"},
		"volume without a size": {func(s *apis.ProviderSpec) {
			s.ImageID, s.BootVolume.Source.Type, s.BootVolume.Size = "", "volume", nil
		}, ""},
		"disk of nothing": {func(s *apis.ProviderSpec) { s.ImageID, s.BootVolume = "", &apis.BootVolume{} },
			"imageId bootVolume.size"},
		"boot size 0":     {func(s *apis.ProviderSpec) { s.BootVolume.Size = size(0) }, "bootVolume.size"},
		"boot size 16001": {func(s *apis.ProviderSpec) { s.BootVolume.Size = size(16001) }, "bootVolume.size"},
		"boot size 16000": {func(s *apis.ProviderSpec) { s.BootVolume.Size = size(16000) }, ""},
		"performance class": {func(s *apis.ProviderSpec) { s.BootVolume.PerformanceClass = "_fast" },
			"bootVolume.performanceClass"},
		"delete somebody's volume": {func(s *apis.ProviderSpec) {
			s.ImageID = ""
			s.BootVolume = &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "volume", ID: id1}, DeleteOnTermination: &yes}
		}, "bootVolume.deleteOnTermination"},
		"no network":       {func(s *apis.ProviderSpec) { s.Networking = nil }, "networking"},
		"empty networking": {func(s *apis.ProviderSpec) { s.Networking = &apis.Networking{} }, "networking"},
		"network no UUID":  {func(s *apis.ProviderSpec) { s.Networking.NetworkID = "net" }, "networking.networkId"},
		"NIC no UUID": {func(s *apis.ProviderSpec) { s.Networking = &apis.Networking{NICIDs: []string{"nic"}} },
			"networking.nicIds[0]"},
		"network and NICs": {func(s *apis.ProviderSpec) { s.Networking.NICIDs = []string{id1} }, "networking"},
		"addresses": {
			func(s *apis.ProviderSpec) { s.AllowedAddresses = []string{"10.0.0.0/8", "10.1.1.1", "fd00::/8", "::1"} }, ""},
		"bad addresses": {func(s *apis.ProviderSpec) {
			s.AllowedAddresses = []string{"10.0.0.0/33", "", "fe80::1%eth0"}
		}, "allowedAddresses[0] allowedAddresses[1] allowedAddresses[2]"},
		"empty security group": {func(s *apis.ProviderSpec) { s.SecurityGroups = []string{""} }, "securityGroups[0]"},
		"volume no UUID":       {func(s *apis.ProviderSpec) { s.Volumes = []string{id1, "data"} }, "volumes[1]"},
		"user data":            {func(s *apis.ProviderSpec) { s.UserData = strings.Repeat("s", 256<<10) }, ""},
		"long user data":       {func(s *apis.ProviderSpec) { s.UserData = strings.Repeat("s", 256<<10+1) }, "userData"},
		"key pair":             {func(s *apis.ProviderSpec) { s.KeypairName = "me@home_1.2" }, ""},
		"bad key pair":         {func(s *apis.ProviderSpec) { s.KeypairName = "me home" }, "keypairName"},
		"long key pair":        {func(s *apis.ProviderSpec) { s.KeypairName = longName }, "keypairName"},
		"affinity group":       {func(s *apis.ProviderSpec) { s.AffinityGroup = "soft" }, "affinityGroup"},
		"two service accounts": {func(s *apis.ProviderSpec) { s.ServiceAccountMails = []string{"a@b.c", "d@e.f"} },
			"serviceAccountMails"},
		"fallbacks": {func(s *apis.ProviderSpec) {
			s.AvailabilityZone = "eu01-1"
			s.Fallbacks = []apis.Choice{choice("c2a.2", ""), choice("", "eu01-2"), choice("c2a.2", "eu01-2")}
		}, ""},
		"eight fallbacks": {func(s *apis.ProviderSpec) { s.Fallbacks = fallbacks(8) }, ""},
		"nine fallbacks":  {func(s *apis.ProviderSpec) { s.Fallbacks = fallbacks(9) }, "fallbacks"},
		"a fallback without a choice": {
			func(s *apis.ProviderSpec) { s.Fallbacks = []apis.Choice{choice("c2a.2", ""), choice("", "")} }, "fallbacks[1]"},
		"another type with a NIC": {func(s *apis.ProviderSpec) {
			s.Networking, s.Fallbacks = &apis.Networking{NICIDs: []string{id1}}, []apis.Choice{choice("c2a.2", "")}
		}, ""},
		"another zone with a NIC": {func(s *apis.ProviderSpec) {
			s.Networking, s.Fallbacks = &apis.Networking{NICIDs: []string{id1}},
				[]apis.Choice{choice("c2a.2", ""), choice("", "eu01-2")}
		}, "fallbacks[1].availabilityZone"},
		"another zone with a volume": {func(s *apis.ProviderSpec) {
			s.Volumes, s.Fallbacks = []string{id1}, []apis.Choice{choice("", "eu01-2")}
		}, "fallbacks[0].availabilityZone"},
		"another zone with a disk": {func(s *apis.ProviderSpec) {
			s.BootVolume = &apis.BootVolume{Source: &apis.BootVolumeSource{Type: "volume", ID: id1}}
			s.ImageID, s.Fallbacks = "", []apis.Choice{choice("", "eu01-2")}
		}, "fallbacks[0].availabilityZone"},
		"a wrong machine type": {func(s *apis.ProviderSpec) { s.Fallbacks = []apis.Choice{choice("c2a.2\n", "")} },
			"fallbacks[0].machineType"},
		"no mail": {func(s *apis.ProviderSpec) { s.ServiceAccountMails = []string{"a"} }, "serviceAccountMails[0]"},
		"long mail": {func(s *apis.ProviderSpec) { s.ServiceAccountMails = []string{longName + longName + "@b.c"} },
			"serviceAccountMails[0]"},
		"labels": {func(s *apis.ProviderSpec) {
			s.Labels = map[string]string{"kubernetes.io/cluster": "shoot--a--b", "x": ""}
		}, ""},
		"empty cluster label": {func(s *apis.ProviderSpec) { s.Labels = map[string]string{"a/cluster": ""} },
			"labels[a/cluster]"},
		"reserved label": {func(s *apis.ProviderSpec) { s.Labels = map[string]string{"stackit-x": "y"} },
			"labels[stackit-x]"},
		"long label value": {func(s *apis.ProviderSpec) { s.Labels = map[string]string{"x": long} },
			"labels[x]"},
		"long label key": {func(s *apis.ProviderSpec) { s.Labels = map[string]string{long: "x"} },
			"labels[" + long + "]"},
		"label that would split a selector": {func(s *apis.ProviderSpec) { s.Labels = map[string]string{"a,b": "c=d"} },
			"labels[a,b] labels[a,b]"},
		"metadata": {func(s *apis.ProviderSpec) {
			s.Metadata = map[string]any{"a b": "x", "n": 1.5, "t": true, "long": strings.Repeat("ä", 255)}
		}, ""},
		"wrong metadata": {func(s *apis.ProviderSpec) {
			s.Metadata = map[string]any{"": "", "a": map[string]any{}, "l": strings.Repeat("ä", 256), "n": "x\n", "ä": ""}
		}, "metadata[] metadata[a] metadata[l] metadata[n] metadata[ä]"},
		"long metadata key": {func(s *apis.ProviderSpec) { s.Metadata = map[string]any{long + long + long + long: ""} },
			"metadata[" + long + long + long + long + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := valid()
			row.change(spec)
			if diff := cmp.Diff(row.want, paths(validation.ValidateProviderSpec(spec, nil))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func choice(machineType, zone string) apis.Choice {
	return apis.Choice{MachineType: machineType, AvailabilityZone: zone}
}

// fallbacks returns as many machine types.
func fallbacks(count int) (choices []apis.Choice) {
	for i := range count {
		choices = append(choices, choice(fmt.Sprintf("c%di.2", i), ""))
	}
	return choices
}

// A MachineClass may have a megabyte, and it is checked in every call: 640 kB of
// securityGroups took 27 s.
func TestLongListsAreRefusedAtOnce(t *testing.T) {
	const entries = 110_000
	names, labels, metadata := make([]string, entries), map[string]string{}, map[string]any{}
	for i := range names {
		names[i] = strconv.Itoa(i)
		labels[names[i]], metadata[names[i]] = "_", []any{}
	}
	for name, change := range map[string]func(*apis.ProviderSpec){
		"securityGroups":      func(s *apis.ProviderSpec) { s.SecurityGroups = names },
		"volumes":             func(s *apis.ProviderSpec) { s.Volumes = names },
		"allowedAddresses":    func(s *apis.ProviderSpec) { s.AllowedAddresses = names },
		"serviceAccountMails": func(s *apis.ProviderSpec) { s.ServiceAccountMails = names },
		"networking.nicIds":   func(s *apis.ProviderSpec) { s.Networking = &apis.Networking{NICIDs: names} },
		"labels":              func(s *apis.ProviderSpec) { s.Labels = labels },
		"metadata":            func(s *apis.ProviderSpec) { s.Metadata = metadata },
	} {
		t.Run(name, func(t *testing.T) {
			spec := valid()
			change(spec)
			errs := validation.ValidateProviderSpec(spec, nil)
			if len(errs) != 1 || errs[0].Field != name || errs[0].Type != field.ErrorTypeTooMany {
				t.Errorf("%d errors, the first about %q, want one that says that %s has too many",
					len(errs), paths(errs[:min(len(errs), 1)]), name)
			}
		})
	}
}

func TestNoValueOfTheSecretIsShown(t *testing.T) {
	errs := slices.Concat(validation.ValidateSecret(&apis.Secret{ProjectID: "s3cr3t"}, apis.SecretPath),
		validation.ValidateRegion("s3cr3t key", apis.SpecPath.Child("region")),
		validation.ValidateNetworking(&apis.Networking{NetworkID: "s3cr3t"}, apis.SpecPath.Child("networking")))
	if got := paths(errs); got != "secret.projectId providerSpec.region providerSpec.networking.networkId" {
		t.Errorf("errors are about %q", got)
	}
	if text := errs.ToAggregate().Error(); strings.Contains(text, "s3cr3t") {
		t.Errorf("%q shows a value", text)
	}
}

func TestValidateNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"shoot--a--worker-z1-5f7c9-abcde": true, "a": true, "a.b": true, strings.Repeat("a", 63): true,
		"": false, strings.Repeat("a", 64): false, "-a": false,
	} {
		if errs := validation.ValidateMachineName(name, field.NewPath("name")); (len(errs) == 0) != ok {
			t.Errorf("machine name %q: %v, want ok=%t", name, errs, ok)
		}
	}
	if errs := validation.ValidateRegion(strings.Repeat("a", 64), field.NewPath("region")); len(errs) != 1 {
		t.Errorf("a long region: %v, want one error", errs)
	}
}

// FuzzProviderSpec decodes, completes and checks anything: without a panic, and
// with the parts that the driver relies on once nothing was found.
func FuzzProviderSpec(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, ``, `{"machineType":5}`,
		`{"region":"eu01","machineType":"g2i.4","imageId":"` + id1 + `","networking":{"networkId":"` + id2 + `"}}`,
		`{"bootVolume":{"source":{"type":"volume","id":"` + id1 + `"},"deleteOnTermination":true}}`,
		`{"labels":{"a/cluster":"x","b":null},"metadata":{"a":1,"b":[]},"allowedAddresses":["::1"]}`,
		`{"labels":{"a/cluster":5,"b":[]},"networking":{"nicIds":[1,[2]]},` +
			`"bootVolume":{"size":1.5,"source":{"type":{}}},"metadata":{"a":1e999}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, _, errs := apis.DecodeProviderSpec(raw)
		needed, wrong, network := apis.DecodeNeeded(raw)
		if len(errs) == 0 {
			same := &apis.ProviderSpec{Region: spec.Region, Labels: spec.Labels, Networking: spec.Networking,
				AllowedAddresses: spec.AllowedAddresses, UserData: spec.UserData}
			if diff := cmp.Diff(same, needed); diff != "" || len(wrong)+len(network) > 0 {
				t.Errorf("what every call needs (-want +got):\n%s\nerrors: %v", diff, wrong)
			}
		}
		apis.SetDefaults(spec, &apis.Secret{Region: "eu01", NetworkID: id1})
		if len(errs) > 0 || len(validation.ValidateProviderSpec(spec, apis.SpecPath)) > 0 {
			return
		}
		if spec.Networking == nil || (spec.Networking.NetworkID == "") == (len(spec.Networking.NICIDs) == 0) {
			t.Errorf("valid with networking %+v", spec.Networking)
		}
		if spec.BootVolume == nil && validation.IsUUID(spec.ImageID) {
			return
		}
		if spec.BootVolume == nil || spec.BootVolume.Source == nil || !validation.IsUUID(spec.BootVolume.Source.ID) {
			t.Errorf("valid with image %q and boot volume %+v", spec.ImageID, spec.BootVolume)
		}
	})
}
