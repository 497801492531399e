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

// SpecPath is the path of the ProviderSpec in errors: the MachineClass's field providerSpec.
var SpecPath = field.NewPath("providerSpec")

const (
	// MaxUserData is the maximum length of userData, in bytes before base64 encoding. The API document
	// names no limit; OpenStack Nova, on which the API is built, accepts at most 65535 bytes of base64.
	MaxUserData = 256 << 10
	// maxSpec is the maximum length of a ProviderSpec, in bytes. It leaves room for the longest
	// userData.
	maxSpec = 512 << 10
)

// DecodeProviderSpec decodes the JSON of MachineClass.providerSpec. If the JSON is larger than 512
// KiB or not an object, wrong has only that error. Otherwise wrong has an error for each field and
// item of the wrong type, and for each key that differs from a field's name only by case. Such
// parts stay unset; all others are decoded. A list or map with more than ten wrong items has only
// one error. unknown lists unknown and duplicate fields, each as a FieldError of sigs.k8s.io/json;
// it is empty if wrong has a type error. A null leaves its field unset.
func DecodeProviderSpec(raw []byte) (spec *ProviderSpec, unknown []error, wrong field.ErrorList) {
	spec = &ProviderSpec{}
	if wrong = checkObject(raw); wrong != nil {
		return spec, nil, wrong
	}
	wrong = decodeFields(raw, reflect.ValueOf(spec).Elem(), SpecPath, nil)
	dropNulls(spec, raw)
	unknown, _ = kjson.UnmarshalStrict(raw, &ProviderSpec{})
	return spec, slices.DeleteFunc(unknown, func(err error) bool {
		var at kjson.FieldError
		return errors.As(err, &at) && slices.ContainsFunc(wrong, func(reported *field.Error) bool {
			return strings.EqualFold(SpecPath.Child(at.FieldPath()).String(), reported.Field)
		})
	}), wrong
}

// neededFields are the fields by which servers are found and read, and userData, which no text may
// repeat.
var neededFields = []string{"region", "labels", "networking", "networkId", "nicIds", "allowedAddresses", "userData"}

// DecodeNeeded is DecodeProviderSpec for calls that do not create a server: it decodes only the
// fields that such calls need. A key that differs from a field's name only by case is an error if
// no key matches exactly, so that the field would stay unset; for labels it is always an error.
func DecodeNeeded(raw []byte) (spec *ProviderSpec, wrong field.ErrorList) {
	spec = &ProviderSpec{}
	if wrong = checkObject(raw); wrong != nil {
		return spec, wrong
	}
	wrong = decodeFields(raw, reflect.ValueOf(spec).Elem(), SpecPath, neededFields)
	dropNulls(spec, raw)
	return spec, wrong
}

// Decode decodes a JSON object into the value at into. wrong has an error for the first part with
// the wrong type. The error's path begins with path, which may be nil; the error never repeats a
// value, because a misplaced value may be a secret. Valid parts are decoded nevertheless. unknown
// lists the fields that the type lacks, each as a FieldError of sigs.k8s.io/json. Field names must
// match exactly.
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

// decodeFields decodes an object into a struct field by field, so that a wrong field hides no
// other. A key in another case is wrong, down to the smallest structs, but not in maps, whose keys
// are the operator's own: encoding/json, which STACKIT's own driver uses, takes such a key for the
// field, and ignoring it could drop the cluster label. only are the fields to decode for
// DecodeNeeded: there such a key is wrong if the right one is missing, and always for labels, to
// which it adds.
func decodeFields(object []byte, into reflect.Value, path *field.Path, only []string) (wrong field.ErrorList) {
	var values map[string]json.RawMessage
	if _, wrong = Decode(object, &values, path); wrong != nil {
		return wrong
	}
	keys := slices.Sorted(maps.Keys(values))
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		if only != nil && !slices.Contains(only, name) {
			continue
		}
		value := values[name]
		isSet := !isNull(value)
		part, at := into.Field(i), path.Child(name)
		isStruct := part.Kind() == reflect.Pointer && part.Type().Elem().Kind() == reflect.Struct
		if other := keyInOtherCase(keys, name); other >= 0 &&
			(only == nil || (!isSet || part.Kind() == reflect.Map) && !isNull(values[keys[other]])) {
			wrong = append(wrong,
				field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("is spelled %q: must be %q", keys[other], name)))
			if !isSet && isStruct {
				value = values[keys[other]] // may have keys in another case, too
			}
		}
		if !isNull(value) {
			wrong = append(wrong, decodePart(value, part, at, only)...)
		}
	}
	return wrong
}

// decodePart decodes the value of a field: of a struct and of a list of structs with decodeFields.
func decodePart(value []byte, into reflect.Value, path *field.Path, only []string) (wrong field.ErrorList) {
	var part reflect.Kind
	if into.Kind() == reflect.Pointer || into.Kind() == reflect.Slice {
		part = into.Type().Elem().Kind()
	}
	switch {
	case part == reflect.Struct && into.Kind() == reflect.Pointer:
		decoded := reflect.New(into.Type().Elem())
		wrong = decodeFields(value, decoded.Elem(), path, only)
		into.Set(decoded)
	case part == reflect.Struct:
		var items []json.RawMessage
		_, wrong = Decode(value, &items, path)
		into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
		for i, item := range items {
			if !isNull(item) {
				wrong = append(wrong, decodeFields(item, into.Index(i), path.Index(i), only)...)
			}
		}
	default:
		if _, wrong = Decode(value, into.Addr().Interface(), path); wrong != nil {
			if items := wrongItems(value, into.Type(), path); len(items) > 0 && len(items) <= maxWrongItems {
				wrong = items
			}
		}
	}
	return wrong
}

// maxWrongItems is how many items of one field have errors of their own.
const maxWrongItems = 10

// wrongItems returns an error for each item of a list or a map with the wrong type, for at most one more than
// maxWrongItems. The decoder's own error does not name the item: it would demand the item's type of the whole field.
func wrongItems(value []byte, of reflect.Type, path *field.Path) (wrong field.ErrorList) {
	check := func(item []byte, path *field.Path) {
		if len(wrong) > maxWrongItems { // there may be a quarter of a million
			return
		}
		_, errs := Decode(item, reflect.New(of.Elem()).Interface(), path)
		wrong = append(wrong, errs...)
	}
	var list []json.RawMessage
	var entries map[string]json.RawMessage
	switch {
	case of.Kind() == reflect.Slice && json.Unmarshal(value, &list) == nil:
		for i, item := range list {
			check(item, path.Index(i))
		}
	case of.Kind() == reflect.Map && json.Unmarshal(value, &entries) == nil:
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			check(entries[key], path.Key(key))
		}
	}
	return wrong
}

// isNull reports whether a value is not set.
func isNull(value json.RawMessage) bool { return value == nil || string(value) == "null" }

// keyInOtherCase returns the index of a key that differs from the name only by case, as in
// encoding/json; -1 if there is none.
func keyInOtherCase(keys []string, name string) int {
	return slices.IndexFunc(keys, func(key string) bool { return key != name && strings.EqualFold(key, name) })
}

// problem returns the text about a value that cannot be decoded: the type found, and ": must be"
// followed by the right type. It does not use the decoder's own error, which may repeat the value.
func problem(err error) string {
	var wrongType *json.UnmarshalTypeError
	var noBase64 base64.CorruptInputError
	isSyntax, at := kjson.SyntaxErrorOffset(err)
	switch {
	case isSyntax: // Gardener takes its text for wrong credentials
		return fmt.Sprintf("is not valid JSON at byte %d", at)
	case errors.As(err, &wrongType) && strings.HasPrefix(wrongType.Value, "number "):
		return "is a number that is too large or has a fraction: must be " + jsonType(wrongType.Type)
	case errors.As(err, &wrongType):
		return "is a JSON " + wrongType.Value + ": must be " + jsonType(wrongType.Type)
	case errors.As(err, &noBase64):
		return "is not base64: must be base64, or plain text in stringData"
	case errors.Is(err, resource.ErrFormatWrong):
		return "cannot be decoded: " + resource.ErrFormatWrong.Error()
	}
	return "cannot be decoded: a duration must be like 30s or 2h45m, in ns, us, ms, s, m and h, " +
		"a time like 2026-01-31T12:00:00Z"
}

// checkObject returns an error unless the value is a JSON object of a valid length.
func checkObject(raw []byte) field.ErrorList {
	if errs := CheckLength(len(raw), maxSpec, SpecPath); errs != nil {
		return errs
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, "is empty: must be a JSON object")}
	}
	var object map[string]json.RawMessage
	_, wrong := Decode(raw, &object, SpecPath)
	if wrong == nil && object == nil {
		return field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, "is null: must be a JSON object")}
	}
	return wrong
}

// CheckLength returns an error if a value is longer than the limit. Both lengths are in bytes.
func CheckLength(length, limit int, path *field.Path) field.ErrorList {
	if length <= limit {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has %d bytes: must have at most %d", length, limit))}
}

// dropNulls removes values that templates render for unset ones: empty objects, and map entries
// that are null. In a map of strings a decoded null looks like an empty string, which is a valid
// label: hence the raw spec.
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

// jsonType returns the JSON type for a Go type, such as "a whole number" for int64.
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

// ChildPath appends the key of an object to a path: a.b, or a[c/d] if the key is not a plain name.
func ChildPath(path *field.Path, key string) *field.Path {
	if strings.ContainsFunc(key, isSpecial) {
		return path.Key(key)
	}
	return path.Child(key)
}

func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
