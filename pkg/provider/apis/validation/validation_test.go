// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
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
		"NIC twice": {func(s *apis.ProviderSpec) { s.Networking = &apis.Networking{NICIDs: []string{id1, id1}} },
			"networking.nicIds[1]"},
		"addresses": {
			func(s *apis.ProviderSpec) { s.AllowedAddresses = []string{"10.0.0.0/8", "10.1.1.1", "fd00::/8", "::1"} }, ""},
		"bad addresses": {func(s *apis.ProviderSpec) {
			s.AllowedAddresses = []string{"10.0.0.0/33", "", "fe80::1%eth0"}
		}, "allowedAddresses[0] allowedAddresses[1] allowedAddresses[2]"},
		"security group twice": {func(s *apis.ProviderSpec) { s.SecurityGroups = []string{"a", "a"} }, "securityGroups[1]"},
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
		"two fallbacks alike": {func(s *apis.ProviderSpec) {
			s.AvailabilityZone = "eu01-1"
			s.Fallbacks = []apis.Choice{choice("c2a.2", ""), choice("c2a.2", "eu01-1")}
		}, "fallbacks[1]"},
		"a fallback like the class": {func(s *apis.ProviderSpec) {
			s.AvailabilityZone = "eu01-1"
			s.Fallbacks = []apis.Choice{choice("", "eu01-1"), choice("g2i.4", "eu01-1")}
		}, "fallbacks[0] fallbacks[1]"},
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

// excess is a value that is beyond one limit of a field, and the path of the error about it.
type excess struct {
	value any
	at    string
}

// What the schema refuses by SpecLimits, validation refuses too: a value beyond each limit of each field.
func TestEveryLimitIsChecked(t *testing.T) {
	all := validation.SpecLimits()
	for path, limits := range all {
		name, isItem := strings.CutSuffix(path, "[]")
		values := beyond(name, &limits, func(text string) excess {
			switch {
			case !isItem:
				return excess{text, strings.ReplaceAll(name, "[]", "[0]")}
			case all[name].KeyPattern != "":
				return excess{map[string]any{"key": text}, name + "[key]"}
			default:
				return excess{[]any{text}, name + "[0]"}
			}
		})
		set := 0
		for i := range reflect.TypeFor[validation.Limits]().NumField() {
			if !reflect.ValueOf(limits).Field(i).IsZero() {
				set++
			}
		}
		if limits.Unset {
			set-- // it limits nothing
		}
		if len(values) != set {
			t.Errorf("%s: the test goes beyond %d of its %d limits", path, len(values), set)
		}
		for _, row := range values {
			if errs := validation.ValidateProviderSpec(with(t, name, row.value), nil); !strings.Contains(" "+paths(errs)+" ",
				" "+row.at+" ") {
				t.Errorf("the schema refuses %.80q, validation has no error about %s: %v", fmt.Sprint(row.value), row.at, errs)
			}
		}
	}
}

// beyond returns a value beyond each limit; in puts a text where the limits are.
func beyond(name string, limits *validation.Limits, in func(text string) excess) (values []excess) {
	const wrong = "!\n" // matches no pattern
	if limits.Pattern != "" {
		values = append(values, in(wrong))
	}
	as := strings.Repeat("a", limits.MaxLength)
	for _, text := range []string{as + "a", as + "@b.c", strings.Repeat("1", limits.MaxLength+1)} {
		if limits.MaxLength > 0 && regexp.MustCompile(limits.Pattern).MatchString(text) {
			values = append(values, in(text))
			break
		}
	}
	if len(limits.Values) > 0 {
		values = append(values, in(wrong))
	}
	if limits.Minimum != 0 {
		values = append(values, excess{limits.Minimum - 1, name})
	}
	if limits.Maximum != 0 {
		values = append(values, excess{limits.Maximum + 1, name})
	}
	if limits.Unique {
		values = append(values, excess{[]string{id1, id1}, name + "[1]"})
	}
	list, object := []any{}, map[string]string{}
	for i := range limits.MaxItems + 1 {
		list = append(list, strconv.Itoa(i))
		object[strconv.Itoa(i)] = ""
		if name == "fallbacks" {
			list[i] = map[string]any{"machineType": "t" + strconv.Itoa(i)}
		}
	}
	switch {
	case limits.KeyPattern != "":
		values = append(values, excess{object, name}, excess{map[string]string{wrong: ""}, name + "[" + wrong + "]"})
	case limits.MaxItems > 0:
		values = append(values, excess{list, name})
	}
	if limits.KeyMaxLength > 0 {
		long := strings.Repeat("a", limits.KeyMaxLength+1)
		values = append(values, excess{map[string]string{long: ""}, name + "[" + long + "]"})
	}
	return values
}

// with returns a spec that has a value in a field.
func with(t *testing.T, name string, value any) *apis.ProviderSpec {
	t.Helper()
	spec := map[string]any{"region": "eu01", "machineType": "g2i.4"}
	if strings.HasPrefix(name, "bootVolume.") {
		spec["bootVolume"] = map[string]any{"size": 20, "source": map[string]any{"type": "image", "id": id1}}
	}
	object, keys := spec, strings.Split(name, ".")
	for _, key := range keys[:len(keys)-1] {
		below, isSet := object[key].(map[string]any)
		if !isSet {
			below = map[string]any{}
		}
		if list, isList := strings.CutSuffix(key, "[]"); isList {
			object[list] = []any{below}
		} else {
			object[key] = below
		}
		object = below
	}
	object[keys[len(keys)-1]] = value
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, errs := apis.DecodeProviderSpec(raw)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return decoded
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

func TestAListMayBeAsLongAsAnyServerNeeds(t *testing.T) {
	spec := valid()
	spec.Labels, spec.Metadata = map[string]string{}, map[string]any{}
	for i := range 256 {
		name := "a" + strconv.Itoa(i)
		spec.SecurityGroups = append(spec.SecurityGroups, name)
		spec.AllowedAddresses = append(spec.AllowedAddresses, "10.0.0."+strconv.Itoa(i))
		spec.Labels[name], spec.Metadata[name] = "", ""
	}
	if errs := validation.ValidateProviderSpec(spec, nil); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestValidateSecretNeverShowsAValue(t *testing.T) {
	secret := &apis.Secret{ProjectID: "s3cr3t", NetworkID: "s3cr3t"}
	errs := append(validation.ValidateSecret(secret, apis.SecretPath),
		validation.ValidateSecretNetwork(&apis.ProviderSpec{}, secret, apis.SecretPath)...)
	errs = append(errs, validation.ValidateRegion("s3cr3t key", apis.SpecPath.Child("region"))...)
	if got := paths(errs); got != "secret.projectId secret.networkId providerSpec.region" {
		t.Errorf("errors are about %q", got)
	}
	if text := errs.ToAggregate().Error(); strings.Contains(text, "s3cr3t") {
		t.Errorf("%q shows a value", text)
	}
}

func TestValidateNames(t *testing.T) {
	for region, ok := range map[string]bool{"eu01": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
		"": false, "eu/01": false} {
		if errs := validation.ValidateRegion(region, field.NewPath("region")); (len(errs) == 0) != ok {
			t.Errorf("region %q: %v, want ok=%t", region, errs, ok)
		}
	}
	for name, ok := range map[string]bool{
		"shoot--a--worker-z1-5f7c9-abcde": true, "a": true, "a.b": true, strings.Repeat("a", 63): true,
		"": false, strings.Repeat("a", 64): false, "-a": false, "a_b": false,
	} {
		if errs := validation.ValidateMachineName(name, field.NewPath("name")); (len(errs) == 0) != ok {
			t.Errorf("machine name %q: %v, want ok=%t", name, errs, ok)
		}
	}
	for name, ok := range map[string]bool{"class-a.b_c": true, "": false, strings.Repeat("a", 64): false} {
		if errs := validation.ValidateMachineClassName(name, field.NewPath("name")); (len(errs) == 0) != ok {
			t.Errorf("class name %q: %v, want ok=%t", name, errs, ok)
		}
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
		needed, wrong := apis.DecodeNeeded(raw)
		if len(errs) == 0 {
			same := &apis.ProviderSpec{Region: spec.Region, Labels: spec.Labels, Networking: spec.Networking,
				AllowedAddresses: spec.AllowedAddresses, UserData: spec.UserData}
			if diff := cmp.Diff(same, needed); diff != "" || len(wrong) > 0 {
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
