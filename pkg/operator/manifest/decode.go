// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Problem is what is wrong with a field: where, what, and what is right.
type Problem struct{ Path, Found, Remedy string }

// DecodeStrictly decodes an object into what into points to, and returns every field that
// has the wrong type or is not known. The fields that are right are decoded all the same.
func DecodeStrictly(object []byte, into any) []Problem {
	unknown, wrong := apis.Decode(object, into, nil)
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

// IsSecret says whether the object is a Secret.
func (m *Manifest) IsSecret() bool {
	return m.Kind.Group == "" && m.Kind.Kind == "Secret"
}

// Secret decodes the manifest. stringData beats data, as in the API server.
func (m *Manifest) Secret() (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := json.Unmarshal(m.JSON, secret); err != nil {
		// The decoder's error may repeat a value.
		return nil, fmt.Errorf("%v: Secret %s/%s cannot be decoded: data must be base64, stringData text", m.Position("data"), m.Namespace, m.Name)
	}
	secret.Namespace = m.Namespace
	MergeStringData(secret)
	return secret, nil
}

// MergeStringData does what the API server does with a Secret.
func MergeStringData(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
}
