// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// 200 kB of wrong securityGroups took 4 minutes, in every call.
func TestOfAMegabyteOfMistakesSomeAreTold(t *testing.T) {
	const entries = 5_000
	for name, row := range map[string]struct{ spec, field string }{
		"items of a wrong type": {`{"securityGroups":[` + many(entries, `1`) + `]}`, "providerSpec.securityGroups"},
		"empty cluster labels":  {`{"labels":{` + many(entries, `"#/cluster":""`) + `}}`, "providerSpec.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(row.spec)}}
			in := decodeInputs(nil, class, &corev1.Secret{}, strict)
			code, text := Classify(in.problems(nil))
			if code != codes.InvalidArgument || !strings.Contains(text, row.field) || len(in.Errors) > 20 {
				t.Errorf("got %d errors, %s: %s; want few, and InvalidArgument about %s", len(in.Errors), code, text, row.field)
			}
		})
	}
}

const someUserData = "#cloud-config\nhostname: shoot--demo--worker-1\n" +
	"password: \"s3cr<&>s3cr3t\"\n"

func TestRedacted(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(someUserData))
	long := strings.Repeat("x", maxMessage-1)
	for message, want := range map[string]string{
		"machine type is not valid":              "machine type is not valid",
		"wrong: " + someUserData + "!":           "wrong: (redacted) !",
		"wrong: " + encoded + "!":                "wrong: (redacted)!",
		"wrong: a token abc123.0123456789abcdef": "wrong: a token (token)",
		"two\nlines \x1b[2J":                     "two lines ?[2J",
		long + someUserData:                      long + "(",
		long + "ü":                               long + "?",
	} {
		if got := redacted(message, "", "short", someUserData); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
