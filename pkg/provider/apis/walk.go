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

// Decode decodes a JSON object into what into points to. wrong has every part that has the
// wrong type, with its path below the given one, which may be nil; it never repeats a value,
// which may be a secret in the wrong place. Such a part counts as null, and all others are
// decoded: cleaned is the JSON with that. unknown has the fields that the type does not
// have, each as a FieldError of sigs.k8s.io/json. Names of fields must match exactly.
func Decode(object []byte, into any, path *field.Path) (cleaned []byte, unknown []error, wrong field.ErrorList) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, nil, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "is not valid JSON")}
	}
	walk := &walk{root: value, into: reflect.TypeOf(into).Elem()}
	wrong = walk.dropWrongTypes(nil, path, value, func() { walk.root = nil })
	cleaned, err := json.Marshal(walk.root)
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(cleaned, into, kjson.DisallowUnknownFields)
	}
	if err != nil { // No value is known that gets here.
		wrong = append(wrong, field.TypeInvalid(path, field.OmitValueType{}, "cannot be decoded"))
	}
	return cleaned, unknown, wrong
}

// maxParts is how many parts a list or an object may have that does not decode, if each of
// them is to be looked at: to find out what is wrong with 100,000 takes seconds, and to tell
// it takes minutes.
const maxParts = 256

// walk goes through an object that is decoded into a type.
type walk struct {
	root any
	into reflect.Type
}

// step is one part of the way to a value: a key of an object, or into a list.
type step struct {
	key    string
	inList bool
}

// dropWrongTypes drops all values that do not decode, and returns an error for each. It looks
// at the value that the steps lead to: as a whole, then, if that does not decode, at its
// parts.
func (w *walk) dropWrongTypes(steps []step, path *field.Path, value any, drop func()) field.ErrorList {
	err := w.decode(steps, value)
	if err == nil {
		return nil
	}
	var found field.ErrorList
	look := func(next step, path *field.Path, part any, drop func()) {
		found = append(found, w.dropWrongTypes(append(slices.Clone(steps), next), path, part, drop)...)
	}
	switch value := value.(type) {
	case map[string]any:
		if w.decode(steps, map[string]any{}) != nil {
			break // No object may stand here.
		}
		// The whole object stays: it has the fields by which a machine is found and deleted,
		// and no more that are wrong than its type has.
		if len(steps) > 0 && len(value) > maxParts {
			drop()
			return tooManyParts(path, len(value))
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			next := step{key: key}
			look(next, ChildPath(path, key), value[key], func() {
				if value[key] = nil; w.decode(append(slices.Clone(steps), next), nil) != nil {
					delete(value, key) // as of a duration, which cannot be null
				}
			})
		}
	case []any:
		if w.decode(steps, []any{}) != nil {
			break
		}
		if len(value) > maxParts {
			drop()
			return tooManyParts(path, len(value))
		}
		for i := range value {
			look(step{inList: true}, path.Index(i), value[i], func() { value[i] = nil })
		}
	}
	if len(found) > 0 {
		return found
	}
	drop()
	return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, w.problem(steps, err))}
}

func tooManyParts(path *field.Path, parts int) field.ErrorList {
	return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{},
		fmt.Sprintf("has a part of a wrong type, and too many parts to say which: %d, where %d are looked at", parts, maxParts))}
}

// decode decodes an object that has this one value, with the way to it.
func (w *walk) decode(steps []step, value any) error {
	for _, step := range slices.Backward(steps) {
		if step.inList {
			value = []any{value}
			continue
		}
		value = map[string]any{step.key: value}
	}
	object, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(object, reflect.New(w.into).Interface())
}

// forms are the texts that a type with a decoder of its own may want.
var forms = []struct{ example, name string }{
	{"1m30s", "a duration such as 1m30s"},
	{"2026-01-31T12:00:00Z", "a time such as 2026-01-31T12:00:00Z"},
	{"4Gi", "a quantity such as 4Gi"},
}

// problem says in the operator's words why the value that the steps lead to does not decode:
// what was found, and ", must be" what is right.
func (w *walk) problem(steps []step, err error) string {
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
	// The error of another decoder may repeat the value.
	for _, form := range forms {
		if w.decode(steps, form.example) == nil {
			return "cannot be decoded, must be " + form.name
		}
	}
	return "cannot be decoded"
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
