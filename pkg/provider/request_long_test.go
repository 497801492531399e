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

// mistakes are long providerSpecs that are wrong all over, with the field that is.
func mistakes() map[string]struct{ spec, field string } {
	const entries = 20_000
	return map[string]struct{ spec, field string }{
		"items of a wrong type":    {`{"securityGroups":[` + many(entries, `1`) + `]}`, "providerSpec.securityGroups"},
		"lists in a list":          {`{"networking":{"nicIds":[` + many(entries, `[]`) + `]}}`, "providerSpec.networking.nicIds"},
		"labels of a wrong type":   {`{"labels":{` + many(entries, `"#":1`) + `}}`, "providerSpec.labels"},
		"empty cluster labels":     {`{"labels":{` + many(entries, `"#/cluster":""`) + `}}`, "providerSpec.labels"},
		"numbers that are no ones": {`{"metadata":{` + many(entries, `"#":1e999`) + `}}`, "providerSpec.metadata"},
	}
}

func decodeMistakes(spec string) *inputs {
	class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: []byte(spec)}}
	return decodeInputs(nil, class, &corev1.Secret{}, true)
}

func TestOfAMegabyteOfMistakesSomeAreTold(t *testing.T) {
	for name, row := range mistakes() {
		t.Run(name, func(t *testing.T) {
			in := decodeMistakes(row.spec)
			code, text := classify(in.problems(strict, nil))
			if code != codes.InvalidArgument || !anyConcerns(field.NewPath(row.field), in.others) || !strings.Contains(text, row.field) {
				t.Errorf("got %s: %s; want InvalidArgument about %s", code, text, row.field)
			}
			if errs := len(in.needed) + len(in.others); errs > 20 {
				t.Errorf("%d errors, want few", errs)
			}
		})
	}
}

// 200 kB of securityGroups that are numbers took 4 minutes, in every call.
func BenchmarkAMegabyteOfMistakes(b *testing.B) {
	for name, row := range mistakes() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = classify(decodeMistakes(row.spec).problems(strict, nil))
			}
			if took := b.Elapsed() / time.Duration(b.N); took > 5*time.Second {
				b.Errorf("it takes %s, want less than 5 s", took)
			}
		})
	}
}

// A text has room for few: the fields are told as far as they go.
func TestManyErrorsAreToldAtOnce(t *testing.T) {
	_, text := classify(invalidError(manyErrors()))
	if len(text) > maxText || !strings.HasPrefix(text, "InvalidInput: 100000 fields are wrong, the first: a(0)") {
		t.Errorf("got %q", text)
	}
}

func manyErrors() field.ErrorList {
	errs := make(field.ErrorList, 100_000)
	for i := range errs {
		errs[i] = field.Required(field.NewPath("a").Index(i), "")
	}
	return errs
}

// To join all their texts took minutes.
func BenchmarkManyErrors(b *testing.B) {
	errs := manyErrors()
	for b.Loop() {
		_, _ = classify(invalidError(errs))
	}
	if took := b.Elapsed() / time.Duration(b.N); took > time.Second {
		b.Errorf("it takes %s, want less than 1 s", took)
	}
}
