// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Problem is what is wrong with a field: where, what, and what is right.
type Problem struct{ Path, Found, Remedy string }

// DecodeStrictly decodes an object into what into points to, and returns every field that
// has the wrong type or is not known. The fields that are right are decoded all the same.
func DecodeStrictly(object []byte, into any) []Problem {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []Problem{{Found: "cannot be read: " + err.Error()}}
	}
	tree := &tree{root: value, into: reflect.TypeOf(into).Elem()}
	problems := tree.dropWrongTypes(nil, value, func() { tree.root = nil })
	cleaned, err := json.Marshal(tree.root)
	if err != nil {
		return append(problems, Problem{Found: "cannot be read: " + err.Error()})
	}
	unknown, err := kjson.UnmarshalStrict(cleaned, into, kjson.DisallowUnknownFields)
	if err != nil {
		return append(problems, Problem{Found: "cannot be read: " + err.Error()})
	}
	for _, err := range unknown {
		var field kjson.FieldError
		if errors.As(err, &field) {
			problems = append(problems, unknownField(tree.into, field.FieldPath()))
		}
	}
	return problems
}

// unknownField is the problem of a field that the type does not have.
func unknownField(in reflect.Type, path string) Problem {
	unknown := Problem{Path: path, Found: "is not a known field"}
	if near := nearestField(in, path); near != "" {
		unknown.Remedy = fmt.Sprintf("did you mean %q?", near)
	}
	return unknown
}

// tree is an object that is decoded into a type.
type tree struct {
	root any
	into reflect.Type
}

// step is one part of the way to a value: a key of an object or an index of a list.
type step struct {
	key    string
	index  int
	inList bool
}

// dropWrongTypes drops all values that do not decode, and returns them. It looks at the
// value that the steps lead to: as a whole, then, if that does not decode, at its parts.
func (t *tree) dropWrongTypes(steps []step, value any, drop func()) []Problem {
	err := t.decode(steps, value)
	if err == nil {
		return nil
	}
	var found []Problem
	look := func(next step, part any, drop func()) {
		found = append(found, t.dropWrongTypes(append(slices.Clone(steps), next), part, drop)...)
	}
	switch value := value.(type) {
	case map[string]any:
		if t.decode(steps, map[string]any{}) != nil {
			break // No object may stand here.
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			look(step{key: key}, value[key], func() { value[key] = nil })
		}
	case []any:
		if t.decode(steps, []any{}) != nil {
			break
		}
		for i := range value {
			look(step{index: i, inList: true}, value[i], func() { value[i] = nil })
		}
	}
	if len(found) > 0 {
		return found
	}
	drop()
	return []Problem{typeProblem(pathText(steps), err)}
}

// decode decodes an object that has this one value, with the way to it.
func (t *tree) decode(steps []step, value any) error {
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
	return json.Unmarshal(object, reflect.New(t.into).Interface())
}

// typeProblem never repeats the value: it may be a secret in the wrong place.
func typeProblem(path string, err error) Problem {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		found := "is a JSON " + wrongType.Value
		if strings.HasPrefix(wrongType.Value, "number ") {
			found = "is a number that is too large or has a fraction"
		}
		return Problem{path, found, "must be " + apis.JSONType(wrongType.Type.String())}
	}
	var noBase64 base64.CorruptInputError
	if errors.As(err, &noBase64) {
		return Problem{path, "is not base64", "encode it, or put the text into stringData"}
	}
	return Problem{Path: path, Found: "cannot be decoded: " + err.Error()}
}

// PathOf writes the keys of nested objects as package field does: a.b[c/d].
func PathOf(keys ...string) string {
	var steps []step
	for _, key := range keys {
		steps = append(steps, step{key: key})
	}
	return pathText(steps)
}

// pathText writes steps as package field does: a.b[0]. A key that is no plain name is in
// brackets.
func pathText(steps []step) string {
	path := ""
	for _, step := range steps {
		switch {
		case step.inList:
			path += "[" + strconv.Itoa(step.index) + "]"
		case !isPlainName(step.key):
			path += "[" + step.key + "]"
		case path == "":
			path = step.key
		default:
			path += "." + step.key
		}
	}
	return path
}

func isPlainName(key string) bool {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
