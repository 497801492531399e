// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Problem is what is wrong with a field: where, what, and what is right.
type Problem struct{ Path, Found, Remedy string }

// DecodeStrictly decodes an object into what into points to, and returns every field that
// has the wrong type or is not known. The fields that are right are decoded all the same.
func DecodeStrictly(object []byte, into any) []Problem {
	_, unknown, wrong := apis.Decode(object, into, nil)
	var problems []Problem
	for _, err := range wrong {
		problems = append(problems, WrongType(err))
	}
	return append(problems, UnknownFields(into, unknown)...)
}

// WrongType is what apis.Decode says of a part that has the wrong type.
func WrongType(err *field.Error) Problem {
	found, remedy, ok := strings.Cut(err.Detail, ", must ")
	if ok {
		remedy = "must " + remedy
	}
	return Problem{err.Field, found, remedy}
}

// UnknownFields are what apis.Decode says of fields that the type of into does not have.
func UnknownFields(into any, errs []error) []Problem {
	var problems []Problem
	for _, err := range errs {
		var at kjson.FieldError
		if !errors.As(err, &at) {
			continue
		}
		unknown := Problem{Path: at.FieldPath(), Found: "is not a known field"}
		if near := nearestField(reflect.TypeOf(into).Elem(), unknown.Path); near != "" {
			unknown.Remedy = fmt.Sprintf("did you mean %q?", near)
		}
		problems = append(problems, unknown)
	}
	return problems
}

// PathOf writes the keys of nested objects as package field does: a.b[c/d].
func PathOf(keys ...string) string {
	var path *field.Path
	for _, key := range keys {
		path = apis.ChildPath(path, key)
	}
	return path.String()
}
