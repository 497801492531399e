// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// sentElsewhere are the fields that are not sent under their own names, and what is made of
// them.
var sentElsewhere = map[string]string{
	"region":           "is in the URL",
	"imageId":          "the default of bootVolume.source",
	"allowedAddresses": "sent by a PATCH of the NICs, once the server runs",
}

// notInTheSpec are the writable fields of a server that a class cannot set.
var notInTheSpec = map[string]string{
	"name": "the Machine's",
}

// A field that is decoded and never sent would be believed, and do nothing.
func TestEveryFieldIsSent(t *testing.T) {
	for path, set := range specLeaves() {
		t.Run(path, func(t *testing.T) {
			spec := &apis.ProviderSpec{}
			set(reflect.ValueOf(spec).Elem())
			sent := strings.Contains(asJSON(t, spec), asJSON(t, lastName(path)))
			if !sent {
				t.Fatalf("the test does not set %s", path)
			}
			apis.SetDefaults(spec, &apis.Secret{})
			if spec.Networking == nil {
				spec.Networking = &apis.Networking{}
			}
			var payload any
			if err := json.Unmarshal([]byte(asJSON(t, serverPayload(&ServerRequest{Spec: spec}))), &payload); err != nil {
				t.Fatal(err)
			}
			if _, elsewhere := sentElsewhere[path]; isSet(payload, path) != !elsewhere {
				t.Errorf("sent: %t, in sentElsewhere: %t", isSet(payload, path), elsewhere)
			}
		})
	}
}

// Tables and schemas are made from the types: hack/schema.
func TestTheSampleShowsEveryField(t *testing.T) {
	sample := fileText(t, "..", "..", "samples", "machine-class.yaml")
	_, sample, _ = strings.Cut(sample, "\nproviderSpec:\n")
	for path := range specLeaves() {
		if !regexp.MustCompile(`(?m)^ +(# +)?` + lastName(path) + `:`).MatchString(sample) {
			t.Errorf("samples/machine-class.yaml does not show %s", path)
		}
	}
}

// What the API lets its caller set of a server, a class can set, or it is said here why not.
func TestEveryFieldOfTheAPI(t *testing.T) {
	path := os.Getenv(conformance.Variable)
	if path == "" {
		t.Skip(conformance.Variable + " does not name the API document")
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(fileText(t, path)), &document); err != nil {
		t.Fatal(err)
	}
	schemas := schemas(document)
	api := slices.Collect(maps.Keys(schemas.writable("", map[string]any{"$ref": "#/components/schemas/CreateServerPayload"})))
	spec := slices.Collect(maps.Keys(notInTheSpec))
	for path := range specLeaves() {
		if what := sentElsewhere[path]; what == "" || slices.Contains(api, path) {
			spec = append(spec, path)
		}
	}
	slices.Sort(api)
	slices.Sort(spec)
	if diff := cmp.Diff(api, spec); diff != "" {
		t.Errorf("the ProviderSpec has other fields than the API (-API +ProviderSpec):\n%s", diff)
	}
}

// schemas are an API document.
type schemas map[string]any

// writable returns the paths of the fields without parts that a caller may set.
func (s schemas) writable(path string, schema map[string]any) map[string]bool {
	found := map[string]bool{}
	if readOnly, _ := schema["readOnly"].(bool); readOnly {
		return found
	}
	inside := []map[string]any{}
	if name, ok := schema["$ref"].(string); ok {
		var at any = map[string]any(s)
		for _, part := range strings.Split(strings.TrimPrefix(name, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		inside = append(inside, at.(map[string]any))
	}
	for _, form := range []string{"allOf", "oneOf"} {
		parts, _ := schema[form].([]any)
		for _, part := range parts {
			inside = append(inside, part.(map[string]any))
		}
	}
	for _, part := range inside {
		maps.Copy(found, s.writable(path, part))
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		maps.Copy(found, s.writable(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any)))
	}
	if len(inside) == 0 && len(properties) == 0 {
		found[path] = true
	}
	return found
}

// specLeaves returns the fields of a ProviderSpec that have no parts, by their paths, with
// what sets them to some value.
func specLeaves() map[string]func(spec reflect.Value) {
	leaves := map[string]func(reflect.Value){}
	var walk func(t reflect.Type, path string, reach func(reflect.Value) reflect.Value)
	walk = func(t reflect.Type, path string, reach func(reflect.Value) reflect.Value) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			name = strings.TrimPrefix(path+"."+name, ".")
			field := func(spec reflect.Value) reflect.Value { return reach(spec).Field(i) }
			if of := t.Field(i).Type; of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
				walk(of.Elem(), name, func(spec reflect.Value) reflect.Value {
					pointer := field(spec)
					if pointer.IsNil() {
						pointer.Set(reflect.New(of.Elem()))
					}
					return pointer.Elem()
				})
				continue
			}
			leaves[name] = func(spec reflect.Value) { set(field(spec)) }
		}
	}
	walk(reflect.TypeFor[apis.ProviderSpec](), "", func(spec reflect.Value) reflect.Value { return spec })
	return leaves
}

// set gives a field some value.
func set(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString("some")
	case reflect.Int64:
		field.SetInt(5)
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Interface:
		field.Set(reflect.ValueOf("some"))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		set(field.Elem())
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		set(field.Index(0))
	case reflect.Map:
		value := reflect.New(field.Type().Elem()).Elem()
		set(value)
		field.Set(reflect.MakeMap(field.Type()))
		field.SetMapIndex(reflect.ValueOf("key"), value)
	default:
		panic("a ProviderSpec has a field of kind " + field.Kind().String())
	}
}

// isSet says whether there is a value at the path.
func isSet(decoded any, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := decoded.(map[string]any)
		decoded = object[name]
	}
	return decoded != nil && !reflect.ValueOf(decoded).IsZero()
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func asJSON(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func fileText(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
