// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	schemaPath = "../../kubernetes/schema/machineclass.json"
	factsPath  = "../../test/iaasmock/openapi/iaas.json"
	id         = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
)

var update = flag.Bool("update", false, "write the schema and the facts anew")

// The facts are those of the API document that IAAS_OPENAPI names. Without it, they are their own
// facts: sorted, and without a sentence.
func TestFilesAreCurrent(t *testing.T) {
	schema, err := machineClass()
	must(t, err)
	facts, err := apiFacts(read(t, cmp.Or(os.Getenv("IAAS_OPENAPI"), factsPath)))
	must(t, err)
	for path, want := range map[string][]byte{schemaPath: schema, factsPath: facts} {
		if *update {
			must(t, os.WriteFile(path, want, 0o600))
		}
		if !bytes.Equal(read(t, path), want) {
			t.Errorf("%s is not current: make generated writes it", path)
		}
	}
}

func TestFactsHaveNoSentences(t *testing.T) {
	facts, err := apiFacts([]byte(`{"info":{"title":"a"},"tags":[],"components":{"schemas":{"E":{"title":"e","x-f":1,
		"properties":{"title":{"maximum":9223372036854775807,"description":"f","x-extensible-enum":["<"]}}}}}}`))
	const want = `{"properties":{"title":{"maximum":9223372036854775807,"x-extensible-enum":["<"]}}}`
	if !strings.Contains(string(facts), "\"schemas\":{\n\"E\":"+want+"\n}") || err != nil {
		t.Errorf("got %s (%v), want the schema %s", facts, err, want)
	}
}

// The page for operators has a row for each field, in the order of the types.
func TestThePageHasEachField(t *testing.T) {
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| ").FindAllSubmatch(
		read(t, "../../pkg/provider/apis/README.md"), -1) {
		got = append(got, string(row[1]))
	}
	if want := append(fields(reflect.TypeFor[apis.Secret](), "key", ""),
		fields(reflect.TypeFor[apis.ProviderSpec](), "json", "")...); !slices.Equal(got, want) {
		t.Errorf("the page has rows for\n%q, want\n%q", got, want)
	}
}

// fields returns the paths of a struct's fields, down to those that are no structs.
func fields(of reflect.Type, tag, prefix string) (paths []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get(tag), ",")
		kind := of.Field(i).Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct {
			paths = append(paths, fields(kind, tag, prefix+name+".")...)
		} else if name != "-" {
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// FuzzSchema expects that the schema accepts what the driver's validation accepts.
func FuzzSchema(f *testing.F) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(f, schemaPath)))
	must(f, err)
	compiler := jsonschema.NewCompiler()
	must(f, compiler.AddResource(schemaPath, document))
	schema := compiler.MustCompile(schemaPath)
	for fields, isRefused := range map[string]bool{
		`{"labels":{"kubernetes.io/cluster":"a","b":null},"metadata":{"a":1,"b":true},"volumes":["` + id + `"]}`: false,
		`{"region":null,"networking":null,"bootVolume":{"size":20,"source":{}},"keypairName":""}`:                false,
		`{"imageId":null,"bootVolume":{"source":{"type":"volume","id":"` + id + `"}}}`:                           false,
		`{"imageId":null,"bootVolume":{"source":{"type":"image","id":"` + id + `"}}}`:                            true,
		`{"bootVolume":{"size":16001}}`: true, `{"bootVolume":{"source":{"type":"tape","id":"` + id + `"}}}`: true,
		`{"machineType":""}`: true, `{"machineTyp":"g2i.4"}`: true, `{"KeypairName":null}`: true, `{"imageId":"a"}`: true,
		`{"labels":{"a":"b c"}}`: true, `{"labels":{"stackit/x/":"a"}}`: true, `{"metadata":{"a":[]}}`: true,
		`{"serviceAccountMails":["a@b.cd","d@e.fg"]}`: true, `{"securityGroups":[null]}`: true, `{"volumes":"a"}`: true,
	} {
		spec := map[string]any{"machineType": "g2i.4", "imageId": id}
		must(f, json.Unmarshal([]byte(fields), &spec))
		encoded, err := json.Marshal(spec)
		must(f, err)
		bySchema, byValidation := refusals(schema, string(encoded))
		if (bySchema != nil) != isRefused || (byValidation != nil) != isRefused {
			f.Errorf("%s: the schema says %v, the validation %v", fields, bySchema, byValidation)
		}
		f.Add(string(encoded))
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if bySchema, byValidation := refusals(schema, spec); bySchema != nil && byValidation == nil {
			t.Errorf("%s is valid, and the schema says: %v", spec, bySchema)
		}
	})
}

// refusals are what the schema, and what the driver's validation with unknown fields refused,
// says against a MachineClass with this providerSpec.
func refusals(schema *jsonschema.Schema, spec string) (bySchema, byValidation error) {
	text := `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineClass","metadata":{"name":"worker"},` +
		`"secretRef":{"name":"s","namespace":"n"},"providerSpec":` + spec + `}`
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	class := &v1alpha1.MachineClass{}
	if err := errors.Join(err, json.Unmarshal([]byte(text), class)); err != nil {
		return err, err
	}
	inputs := provider.Inspect(class, &corev1.Secret{Data: map[string][]byte{
		"projectId": []byte(id), "serviceAccountKey": []byte("{}"), "region": []byte("eu01"), "networkId": []byte(id),
		"userData": nil,
	}})
	byValidation = inputs.Errors.ToAggregate()
	if len(inputs.Unknown) > 0 {
		byValidation = inputs.Unknown[0]
	}
	return schema.Validate(value), byValidation
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(path))
	must(t, err)
	return content
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
