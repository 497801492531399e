// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// SpecPath is how errors name the ProviderSpec: by its field of the MachineClass.
var SpecPath = field.NewPath("providerSpec")

// maxSpec is the largest ProviderSpec, in bytes. One with the longest userData has room in it.
const maxSpec = 512 << 10

// DecodeProviderSpec reads the JSON of MachineClass.providerSpec. wrong has an error about the first
// part that has the wrong type, one about each field whose key has another case, each with the path
// of the field, and one about JSON of more than 512 KiB; these parts are as if they were not set, and
// all others are decoded. unknown names the fields the driver does not know and those given twice,
// each as a FieldError of sigs.k8s.io/json: the caller decides whether they matter. A null in a field
// means that it is not set.
func DecodeProviderSpec(raw []byte) (spec *ProviderSpec, unknown []error, wrong field.ErrorList) {
	twice, err := checkObject(raw)
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, err.Error())}
	}
	spec = &ProviderSpec{}
	unknown, wrong = Decode(raw, spec, SpecPath)
	dropNulls(spec, raw)
	otherCase := inOtherCase(raw, reflect.TypeFor[ProviderSpec](), SpecPath)
	wrong = append(wrong, otherCase...)
	unknown = slices.DeleteFunc(unknown, func(err error) bool {
		var at kjson.FieldError
		return errors.As(err, &at) && slices.ContainsFunc(otherCase, func(reported *field.Error) bool {
			return strings.EqualFold(SpecPath.Child(at.FieldPath()).String(), reported.Field)
		})
	})
	if len(raw) > maxSpec {
		wrong = append(wrong, field.Invalid(SpecPath, field.OmitValueType{},
			fmt.Sprintf("has %d bytes, must have at most %d", len(raw), maxSpec)))
	}
	return spec, append(twice, unknown...), wrong
}

// Decode decodes a JSON object into what into points to. wrong has an error about the first part that
// has the wrong type, with its path below the given one, which may be nil; it never repeats a value,
// which may be a secret in the wrong place. The parts that are right are decoded all the same. unknown has the fields
// that the type does not have, each as a FieldError of sigs.k8s.io/json. Names of fields must match
// exactly.
func Decode(object []byte, into any, path *field.Path) (unknown []error, wrong field.ErrorList) {
	unknown, err := kjson.UnmarshalStrict(object, into, kjson.DisallowUnknownFields)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		for _, key := range strings.Split(wrongType.Field, ".") {
			path = ChildPath(path, key)
		}
	}
	if err == nil {
		return unknown, nil
	}
	return unknown, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, problem(err))}
}

// inOtherCase returns an error about each field whose key an object has in another case, down to the
// smallest parts; the keys of maps are the operator's own. encoding/json, with which STACKIT's own
// driver decodes, takes such a key for the field: to drop it could drop the cluster label.
func inOtherCase(object []byte, of reflect.Type, path *field.Path) (wrong field.ErrorList) {
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return nil // Decode says why
	}
	keys := slices.Sorted(maps.Keys(values))
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		value := values[name]
		if other := keyInOtherCase(keys, name); other >= 0 {
			wrong = append(wrong, field.Invalid(path.Child(name), field.OmitValueType{},
				fmt.Sprintf("is spelled %q, must be %q", keys[other], name)))
			value = values[keys[other]]
		}
		if part := of.Field(i).Type; part.Kind() == reflect.Pointer && part.Elem().Kind() == reflect.Struct {
			wrong = append(wrong, inOtherCase(value, part.Elem(), path.Child(name))...)
		}
	}
	return wrong
}

// keyInOtherCase returns the index of a key that differs from the name only by case, as encoding/json
// compares them; -1 if there is none.
func keyInOtherCase(keys []string, name string) int {
	return slices.IndexFunc(keys, func(key string) bool { return key != name && strings.EqualFold(key, name) })
}

// IsReadable reports whether one field of a ProviderSpec has no part of a wrong type, decoded into what
// into points to, and does not stand under a key in another case alone.
func IsReadable(raw []byte, name string, into any) bool {
	var fields map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil || fields == nil {
		return false
	}
	if value, ok := fields[name]; ok {
		return kjson.UnmarshalCaseSensitivePreserveInts(value, into) == nil
	}
	keys := slices.Collect(maps.Keys(fields))
	other := keyInOtherCase(keys, name)
	return other < 0 || string(fields[keys[other]]) == "null"
}

// problem says in the operator's words why a value does not decode: what was found, and ", must be"
// what is right. The error of another decoder may repeat the value.
func problem(err error) string {
	var wrongType *json.UnmarshalTypeError
	var noBase64 base64.CorruptInputError
	switch {
	case errors.As(err, &wrongType) && strings.HasPrefix(wrongType.Value, "number "):
		return "is a number that is too large or has a fraction, must be " + jsonType(wrongType.Type)
	case errors.As(err, &wrongType):
		return "is a JSON " + wrongType.Value + ", must be " + jsonType(wrongType.Type)
	case errors.As(err, &noBase64):
		return "is not base64, must be encoded, or be a text in stringData"
	case errors.Is(err, resource.ErrFormatWrong):
		return "cannot be decoded: " + resource.ErrFormatWrong.Error()
	}
	return "cannot be decoded"
}

// checkObject refuses what is no JSON object, and returns the fields that are there twice.
func checkObject(raw []byte) (twice []error, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, errors.New("is empty, must be a JSON object")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			return nil, fmt.Errorf("is a JSON %s, must be a JSON object", wrongType.Value)
		}
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) { // its text looks like wrong credentials to Gardener
			return nil, fmt.Errorf("is not valid JSON at byte %d", syntax.Offset)
		}
		return nil, errors.New("is not valid JSON")
	}
	if fields == nil {
		return nil, errors.New("is null, must be a JSON object")
	}
	// An error is about a number that Decode finds, too.
	twice, _ = kjson.UnmarshalStrict(raw, &map[string]any{}, kjson.DisallowDuplicateFields)
	return twice, nil
}

// dropNulls removes what templates render for values that are not set: objects
// with nothing in them, and map entries that are null. In a map of strings a decoded null
// looks like an empty string, which a label may well be: hence the raw spec.
func dropNulls(spec *ProviderSpec, raw []byte) {
	if spec.Networking != nil && spec.Networking.NetworkID == "" && len(spec.Networking.NICIDs) == 0 {
		spec.Networking = nil
	}
	if spec.BootVolume != nil && spec.BootVolume.Source != nil && *spec.BootVolume.Source == (BootVolumeSource{}) {
		spec.BootVolume.Source = nil
	}
	isNull := func(_ string, value any) bool { return value == nil }
	maps.DeleteFunc(spec.Metadata, isNull)
	var labels struct {
		Labels map[string]any `json:"labels"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &labels); err != nil {
		return // the labels are no object
	}
	maps.DeleteFunc(spec.Labels, func(key, _ string) bool { return isNull(key, labels.Labels[key]) })
}

// jsonType names the JSON that a Go type is decoded from, such as "a whole number" for int64.
func jsonType(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 { // the data of a Secret
			return "base64 in a string"
		}
		return "a list"
	default:
		return "an object"
	}
}

// ChildPath is the path of a key of an object: a.b, or a[c/d] for a key that is no plain name.
func ChildPath(path *field.Path, key string) *field.Path {
	if strings.ContainsFunc(key, isSpecial) {
		return path.Key(key)
	}
	return path.Child(key)
}

func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
