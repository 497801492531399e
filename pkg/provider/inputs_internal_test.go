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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
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
		"items of a wrong type": {`{"securityGroups":[` + many(entries, `1`) + `]}`, "providerSpec.securityGroups"},
		"lists in a list": {`{"networking":{"nicIds":[` + many(entries, `[]`) + `]}}`,
			"providerSpec.networking.nicIds"},
		"labels of a wrong type":   {`{"labels":{` + many(entries, `"#":1`) + `}}`, "providerSpec.labels"},
		"empty cluster labels":     {`{"labels":{` + many(entries, `"#/cluster":""`) + `}}`, "providerSpec.labels"},
		"numbers that are no ones": {`{"metadata":{` + many(entries, `"#":1e999`) + `}}`, "providerSpec.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(row.spec)}}
			in := decodeInputs(nil, class, &corev1.Secret{}, strict)
			code, text := Classify(in.problems(nil))
			if code != codes.InvalidArgument || len(concerning(in.Errors, row.field)) == 0 ||
				!strings.Contains(text, row.field) {
				t.Errorf("got %s: %s; want InvalidArgument about %s", code, text, row.field)
			}
			if errs := len(in.Errors); errs > 20 {
				t.Errorf("%d errors, want few", errs)
			}
		})
	}
}

// YAML makes true of yes, and a number of 12: the label is not empty.
func TestAClusterLabelOfAWrongTypeIsToldOnce(t *testing.T) {
	class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(`{"labels":{"a/cluster":true}}`)}}
	for name, errs := range map[string]field.ErrorList{
		"creation": concerning(Inspect(class, nil).Errors, labelsField), "list": decodeInputs(nil, class, &corev1.Secret{},
			lenient).scope} {
		if len(errs) != 1 || errs[0].Type != field.ErrorTypeTypeInvalid || errs[0].Field != labelsField+"[a/cluster]" {
			t.Errorf("%s: got %v, want only that a label must be a string", name, errs)
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
	if len(text) > maxText || !strings.HasPrefix(text, "InvalidInput: 10000 fields are invalid; the first: a(0)") {
		t.Errorf("got %q", text)
	}
}

const someUserData = "#cloud-config\nhostname: shoot--demo--worker-1\n" +
	"password: \"s3cr<&>s3cr3t\"\ntoken: abc123.0123456789abcdef\n"

func TestRedactedMessage(t *testing.T) {
	const (
		id     = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
		name   = "shoot--demo--worker-1"
		asJSON = `"#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr\u003c\u0026\u003es3cr3t\"\ntok`
		lines  = "a: b\nc: d\ne: f\ng: h\ni: j\nk: l\nm: n\no: p\n"
	)
	encoded := base64.StdEncoding.EncodeToString([]byte(someUserData))
	quoted := strconv.Quote(someUserData)
	spec := &apis.ProviderSpec{MachineType: "g2i.4-with-a-long-name", AvailabilityZone: "eu01-1",
		Labels:   map[string]string{"example.org/a-long-key": "a-long-value"},
		Metadata: map[string]any{"a": []any{map[string]any{"b": "within-the-metadata"}}}}
	for title, row := range map[string]struct {
		userData, message string
		isWithheld        bool
	}{
		"nothing of it":          {someUserData, "machine type is not valid", false},
		"as it is":               {someUserData, "wrong: " + someUserData + "!", true},
		"from its middle":        {someUserData, "wrong at line 4: token: abc123.0123456789abcdef, line 5", true},
		"its last 16 characters": {someUserData, "wrong: 6789abcdef" + someUserData[len(someUserData)-17:], true},
		"base64":                 {someUserData, "wrong: " + encoded + "!", true},
		"base64 from its middle": {someUserData, "wrong: " + encoded[21:37] + "!", true},
		"base64 of a part": {someUserData, "wrong: " + base64.StdEncoding.EncodeToString([]byte(someUserData[47:80])),
			true},
		"quoted as Go does":     {someUserData, "wrong: " + quoted + "!", true},
		"quoted as JSON":        {someUserData, "wrong: " + asJSON, true},
		"short lines, quoted":   {lines, "wrong: " + strconv.Quote(lines[5:38]), true},
		"quoted as Python does": {"pw: \"hunter22\"\nkey: 'ab12cd'\n", `wrong: 'pw: "hunter22"\nkey: \'ab12cd\''`, true},
		"lines in another form": {"a: b1\r\n  c: d2\r\n  e: f3\r\n  g: h4\r\n", "wrong: a: b1 c: d2 e: f3 g: h4", true},
		"words that both write": {"echo \"containerd could not be found\"\nis not available in\n",
			"Image a is not available in eu01; it could not be found.", false},
		"a sentence of it": {"# correct horse battery staple, please remember\n",
			"wrong: correct horse battery staple please", false},
		"a long sentence of it": {"correct horse battery staple of mine and yours",
			"wrong: correct horse battery staple of mine and", true},
		"cut off":                            {someUserData, "wrong: " + quoted[:40] + "...", true},
		"15 characters":                      {someUserData, "wrong: " + someUserData[:16] + "!", false},
		"16 characters, but for line breaks": {someUserData, "wrong: " + someUserData[:17] + "!", true},
		"15 characters twice":                {someUserData, someUserData[:15] + "!" + someUserData[20:35], false},
		"the name within it":                 {someUserData, `hostname: shoot--demo--worker-1`, false},
		"the name and more":                  {someUserData, "config\nhostname: shoot--demo--worker-1\npassword", true},
		"a UUID":                             {"image: " + id, "image: " + id + " is gone", false},
		"a UUID and more":                    {"image-reference: " + id, "image-reference: " + id + " is gone", true},
		"the class's machine type":           {"type=g2i.4-with-a-long-name", "type=g2i.4-with-a-long-name", false},
		"the class's label": {"example.org/a-long-key=a-long-value",
			"label example.org/a-long-key=a-long-value", false},
		"the class's metadata":         {"x: within-the-metadata", "within-the-metadata is unknown", false},
		"a short value within it":      {"pass: eu01-1eu01-1x7!aZ-very-secret", "bad: eu01-1x7!aZ-very-secret", true},
		"a short one":                  {"hunter2\n", "wrong password hunter2 there", true},
		"a short one, base64":          {"hunter2\n", "wrong: aHVudGVyMgo=", true},
		"a part of a short one":        {"hunter2\n", "wrong password hunter", false},
		"a short one that is the name": {name, "no " + name + " here", false},
		"an empty one":                 {"", "wrong", false},
		"blanks":                       {" \n", "wrong \n", false},
	} {
		t.Run(title, func(t *testing.T) {
			spec := *spec
			spec.UserData = row.userData
			want := printable(row.message)
			if row.isWithheld {
				want = withheld
			}
			if got := redacted(row.message, name, &spec); got != want {
				t.Errorf("%q becomes %q, want %q", row.message, got, want)
			}
		})
	}
	long := strings.Repeat("x", maxMessage-1)
	if got := redacted(long+"ü", name, nil); got != long+"?" {
		t.Errorf("a message of 4 KiB + 1 becomes one of %d bytes: …%q", len(got), got[len(got)-2:])
	}
}

// A class may have 256 KiB of userData, and every call of 500 Machines fail.
func BenchmarkRedacted(b *testing.B) {
	spec := &apis.ProviderSpec{UserData: strings.Repeat(someUserData, (256<<10)/len(someUserData))}
	message := strings.Repeat("machine type is not valid ", 20)
	for b.Loop() {
		_ = redacted(message, "m1", spec)
	}
}

// Whatever the message and the userData: 32 bytes of userData are never shown.
func FuzzRedacted(f *testing.F) {
	f.Add("wrong: "+someUserData, someUserData)
	f.Add("wrong: "+strconv.Quote(someUserData)[:50], someUserData)
	f.Add(strings.Repeat("ü", 30), strings.Repeat("ü", 40))
	f.Add(strings.Repeat("a", 100), strings.Repeat("a", 50))
	f.Fuzz(func(t *testing.T, message, userData string) {
		got := redacted(message, "", &apis.ProviderSpec{UserData: userData})
		if !utf8.ValidString(got) {
			t.Errorf("%q is no valid UTF-8", got)
		}
		if got == withheld || uuids.MatchString(message) {
			return
		}
		form, _ := plain(userData, make([]bool, len(userData)))
		text, _ := plain(message[:min(len(message), maxMessage)], make([]bool, min(len(message), maxMessage)))
		for i := 0; i+minProse <= len(form); i++ {
			if strings.Contains(text, form[i:i+minProse]) {
				t.Fatalf("%q shows %q of userData", got, form[i:i+minProse])
			}
		}
	})
}
