// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// many returns n of what part makes, with commas between them.
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
func TestAMegabyteOfMistakesIsRefusedAtOnce(t *testing.T) {
	const entries = 100_000
	for name, row := range map[string]struct{ spec, field string }{
		"items of a wrong type":    {`{"securityGroups":[` + many(entries, `1`) + `]}`, "providerSpec.securityGroups"},
		"lists in a list":          {`{"networking":{"nicIds":[` + many(entries, `[]`) + `]}}`, "providerSpec.networking.nicIds"},
		"labels of a wrong type":   {`{"labels":{` + many(entries, `"#":1`) + `}}`, "providerSpec.labels"},
		"empty cluster labels":     {`{"labels":{` + many(entries, `"#/cluster":""`) + `}}`, "providerSpec.labels"},
		"numbers that are no ones": {`{"metadata":{` + many(entries, `"#":1e999`) + `}}`, "providerSpec.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(row.spec)}}
			start := time.Now()
			in := decodeInputs(nil, class, &corev1.Secret{}, true)
			code, text := classify(in.problems(strict, nil))
			// It takes a tenth of that; the computer may be busy.
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if code != codes.InvalidArgument || !about(field.NewPath(row.field), in.others) || !strings.Contains(text, row.field) {
				t.Errorf("got %s: %s; want InvalidArgument about %s", code, text, row.field)
			}
			if errs := len(in.needed) + len(in.others); errs > 20 {
				t.Errorf("%d errors, want few", errs)
			}
		})
	}
}

// A text has room for few: the fields are told as far as they go.
func TestManyErrorsAreToldAtOnce(t *testing.T) {
	errs := make(field.ErrorList, 100_000)
	for i := range errs {
		errs[i] = field.Required(field.NewPath("a").Index(i), "")
	}
	start := time.Now()
	_, text := classify(invalidError(errs))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(text) > maxText || !strings.HasPrefix(text, "100000 fields are wrong, the first: a(0)") {
		t.Errorf("got %q", text)
	}
}
