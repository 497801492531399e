// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

// sentElsewhere are the fields that are not sent under their own names, and what is made of
// them.
var sentElsewhere = map[string]string{
	"region":           "is in the URL",
	"fallbacks":        "sent as machineType and availabilityZone, once these have no capacity",
	"allowedAddresses": "sent by a PATCH of the NICs, once the server runs",
}

// notInTheSpec are the writable fields of a server that a class cannot set.
var notInTheSpec = map[string]string{
	"name": "the Machine's",
}

// A field that is decoded and never sent would be believed, and do nothing. Each is sent under its own name, as it is.
func TestEveryFieldIsSent(t *testing.T) {
	for path, set := range specLeaves() {
		t.Run(path, func(t *testing.T) {
			spec := &apis.ProviderSpec{}
			set(reflect.ValueOf(spec).Elem())
			want := valueAt(t, spec, path)
			if want == nil {
				t.Fatalf("the test does not set %s", path)
			}
			apis.SetDefaults(spec, &apis.Secret{})
			if spec.Networking == nil {
				spec.Networking = &apis.Networking{}
			}
			if path == "userData" {
				want = base64.StdEncoding.EncodeToString([]byte(spec.UserData))
			}
			if _, elsewhere := sentElsewhere[path]; elsewhere {
				want = nil
			}
			sent := valueAt(t, serverPayload(&ServerRequest{Labels: spec.Labels, Spec: spec}), path)
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("-set +sent:\n%s", diff)
			}
		})
	}
}

// What the API lets its caller set of a server, a class can set, or it is said here why not.
func TestEveryFieldOfTheAPI(t *testing.T) {
	api := slices.Collect(maps.Keys(writable("", createServerSchema())))
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

// A value that the API refuses by its document is refused before it is sent: where the document
// has a pattern or a limit of a field, package validation has one that is no wider.
func TestEveryLimitOfTheAPI(t *testing.T) {
	limits := validation.SpecLimits()
	checked := 0
	check := func(path string, schema *openapi3.Schema) {
		ours, missing := limits[path], []string{}
		if schema.Pattern != "" && ours.Pattern == nil {
			missing = append(missing, "pattern "+schema.Pattern)
		}
		ofOneLength := schema.MaxLength != nil && schema.MinLength == *schema.MaxLength && ours.Pattern != nil &&
			ours.Pattern.String() == schema.Pattern
		if most := schema.MaxLength; most != nil && !ofOneLength && (ours.MaxLength == 0 || ours.MaxLength > int(*most)) {
			missing = append(missing, fmt.Sprintf("maxLength %d", *most))
		}
		if most := schema.MaxItems; most != nil && (ours.MaxItems == 0 || ours.MaxItems > int(*most)) {
			missing = append(missing, fmt.Sprintf("maxItems %d", *most))
		}
		if most := schema.Max; most != nil && (ours.Maximum == 0 || float64(ours.Maximum) > *most) {
			missing = append(missing, fmt.Sprintf("maximum %v", *most))
		}
		if least := schema.Min; least != nil && float64(ours.Minimum) < *least {
			missing = append(missing, fmt.Sprintf("minimum %v", *least))
		}
		if len(missing) > 0 {
			t.Errorf("%s: the API has %s, package validation has %+v", path, strings.Join(missing, ", "), ours)
		}
		checked++
	}
	for path, schemas := range writable("", createServerSchema()) {
		if notInTheSpec[path] != "" {
			continue
		}
		for _, schema := range schemas {
			check(path, schema)
			if schema.Items != nil {
				for _, items := range writable(path+"[]", schema.Items) {
					for _, item := range items {
						check(path+"[]", item)
					}
				}
			}
		}
	}
	if checked < len(specLeaves()) {
		t.Errorf("only %d schemas are checked", checked)
	}
}

func createServerSchema() *openapi3.SchemaRef {
	return openapi.Load().Components.Schemas["CreateServerPayload"]
}

// writable returns the fields without parts that a caller may set, by their paths, with their
// schemas.
func writable(path string, schema *openapi3.SchemaRef) map[string][]*openapi3.Schema {
	found := map[string][]*openapi3.Schema{}
	if schema.Value.ReadOnly {
		return found
	}
	add := func(more map[string][]*openapi3.Schema) {
		for path, schemas := range more {
			found[path] = append(found[path], schemas...)
		}
	}
	parts := slices.Concat(schema.Value.AllOf, schema.Value.OneOf)
	for _, part := range parts {
		add(writable(path, part))
	}
	for name, property := range schema.Value.Properties {
		add(writable(strings.TrimPrefix(path+"."+name, "."), property))
	}
	if len(parts) == 0 && len(schema.Value.Properties) == 0 {
		found[path] = append(found[path], schema.Value)
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
			leaves[name] = func(spec reflect.Value) { set(field(spec), name) }
		}
	}
	walk(reflect.TypeFor[apis.ProviderSpec](), "", func(spec reflect.Value) reflect.Value { return spec })
	return leaves
}

// set gives a field some value: a text where it takes one.
func set(field reflect.Value, text string) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Int64:
		field.SetInt(5)
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Interface:
		field.Set(reflect.ValueOf(text))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		set(field.Elem(), text)
	case reflect.Struct:
		set(field.Field(0), text)
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		set(field.Index(0), text)
	case reflect.Map:
		value := reflect.New(field.Type().Elem()).Elem()
		set(value, text)
		field.Set(reflect.MakeMap(field.Type()))
		field.SetMapIndex(reflect.ValueOf("key"), value)
	default:
		panic("a ProviderSpec has a field of kind " + field.Kind().String())
	}
}

// valueAt is what the value's JSON has at the path.
func valueAt(t *testing.T, value any, path string) any {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := decoded.(map[string]any)
		decoded = object[name]
	}
	return decoded
}
