// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// many returns the part n times, with commas between them and a number in place of "#".
func many(n int, part string) string {
	var text strings.Builder
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strings.ReplaceAll(part, "#", fmt.Sprint(i)))
	}
	return text.String()
}

// 200 kB of securityGroups that are numbers took 4 minutes, in every call.
func TestOfAMegabyteOfMistakesSomeAreTold(t *testing.T) {
	const entries = 5_000
	for name, row := range map[string]struct{ spec, field string }{
		"items of a wrong type":    {`{"securityGroups":[` + many(entries, `1`) + `]}`, "providerSpec.securityGroups"},
		"lists in a list":          {`{"networking":{"nicIds":[` + many(entries, `[]`) + `]}}`, "providerSpec.networking.nicIds"},
		"labels of a wrong type":   {`{"labels":{` + many(entries, `"#":1`) + `}}`, "providerSpec.labels"},
		"empty cluster labels":     {`{"labels":{` + many(entries, `"#/cluster":""`) + `}}`, "providerSpec.labels"},
		"numbers that are no ones": {`{"metadata":{` + many(entries, `"#":1e999`) + `}}`, "providerSpec.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(row.spec)}}
			in := decodeInputs(nil, class, &corev1.Secret{}, strict, nil)
			code, text := Classify(in.problems(nil))
			if code != codes.InvalidArgument || len(concerning(in.Errors, row.field)) == 0 || !strings.Contains(text, row.field) {
				t.Errorf("got %s: %s; want InvalidArgument about %s", code, text, row.field)
			}
			if errs := len(in.Errors); errs > 20 {
				t.Errorf("%d errors, want few", errs)
			}
		})
	}
}

// Calls of a class share what is decoded of it. What a Secret adds is each call's own.
func TestStrictCallsShareTheSpec(t *testing.T) {
	const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	class := func(spec string) *v1alpha1.MachineClass {
		class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(spec)}}
		class.Name = "class-a"
		return class
	}
	secret := func(region string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"projectId": []byte(id), "region": []byte(region), "networkId": []byte(id), "userData": nil}}
	}
	const valid = `{"machineType":"a","imageId":"` + id + `","bootVolume":{"size":20},"metadata":{"a":1},"colour":"blue"}`
	p := &Provider{}
	p.init()
	first, second := p.inputs(nil, class(valid), secret("eu01"), strict), p.inputs(nil, class(valid), secret("eu02"), strict)
	if len(first.Errors)+len(second.Errors) > 0 || first.Spec.Region != "eu01" || second.Spec.Region != "eu02" || len(second.Unknown) != 1 {
		t.Errorf("got %+v and %+v", first.Inputs, second.Inputs)
	}
	if first.decoded != second.decoded || first.specHash != second.specHash {
		t.Error("the second call has a copy of its own")
	}
	if shared := second.decoded.spec; shared.Region != "" || shared.Networking != nil || shared.BootVolume.DeleteOnTermination != nil {
		t.Errorf("what is shared has defaults: %+v", shared)
	}

	for _, row := range []struct {
		old, new string
		isKept   bool
	}{{`"a":1`, `"a":2`, true}, {`"a",`, `5,`, false}, {`"a",`, `"a b-",`, false}} {
		in := p.inputs(nil, class(strings.Replace(valid, row.old, row.new, 1)), secret("eu01"), strict)
		if _, isKept := p.specs.Lookup(in.specHash); isKept != row.isKept || in.decoded == first.decoded {
			t.Errorf("a spec with %s is kept: %t, want %t; errors: %v", row.new, isKept, row.isKept, in.Errors)
		}
	}
}

// A text has room for few: the fields are told as far as they go. To join all their texts took minutes.
func TestManyErrorsAreToldAtOnce(t *testing.T) {
	errs := make(field.ErrorList, 10_000)
	for i := range errs {
		errs[i] = field.Required(field.NewPath("a").Index(i), "")
	}
	_, text := Classify(invalidError(errs))
	if len(text) > maxText || !strings.HasPrefix(text, "InvalidInput: 10000 fields are wrong, the first: a(0)") {
		t.Errorf("got %q", text)
	}
}

const someUserData = "#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr<&>s3cr3t\"\ntoken: abc123.0123456789abcdef\n"

func TestRedactedMessage(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(someUserData))
	quoted := strconv.Quote(someUserData)
	const asJSON = `"#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr\u003c\u0026\u003es3cr3t\"\ntok`
	for name, row := range map[string]struct {
		message, want string
	}{
		"nothing of it":     {"machine type is not valid", "machine type is not valid"},
		"as it is":          {"wrong: " + someUserData + "!", "wrong: (userData)!"},
		"base64":            {"wrong: " + encoded + "!", "wrong: (userData)!"},
		"quoted as Go does": {"wrong: " + quoted + "!", `wrong: "(userData)"!`},
		"quoted as JSON":    {"wrong: " + asJSON, `wrong: "(userData)`},
		"cut off":           {"wrong: " + quoted[:40] + "...", `wrong: "(userData)...`},
		"twice":             {someUserData + " and " + encoded, "(userData) and (userData)"},
		"15 characters":     {"wrong: " + someUserData[:15] + "!", "wrong: " + someUserData[:15] + "!"},
		"16 characters":     {"wrong: " + someUserData[:16] + "!", "wrong: (userData)!"},
		"a name within it":  {"no shoot--demo--worker-1 here", "no shoot--demo--worker-1 here"},
		"cut to 4 KiB":      {strings.Repeat("x", maxMessage-1) + "ü", strings.Repeat("x", maxMessage-1) + "?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redacted(row.message, someUserData); got != row.want {
				t.Errorf("%q becomes %q, want %q", row.message, got, row.want)
			}
		})
	}
}

// Whatever the message and the userData: the beginning of userData is not left.
func FuzzRedacted(f *testing.F) {
	f.Add("wrong: "+someUserData, someUserData)
	f.Add("wrong: "+strconv.Quote(someUserData)[:50], someUserData)
	f.Add(strings.Repeat("ü", 30), strings.Repeat("ü", 40))
	f.Add(strings.Repeat("a", 100), strings.Repeat("a", 50))
	f.Fuzz(func(t *testing.T, message, userData string) {
		text := withoutRepeated(message, []string{userData})
		if len(userData) >= minRepeated && strings.Contains(strings.ReplaceAll(text, "(userData)", "\x00"), userData[:minRepeated]) {
			t.Errorf("%q is left of %q", userData[:minRepeated], text)
		}
		if got := redacted(message, userData); !utf8.ValidString(got) {
			t.Errorf("%q is no valid UTF-8", got)
		}
	})
}
