// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

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

// DecodeProviderSpec decodes the JSON of MachineClass.providerSpec. wrong has at most one error of
// decoding: the JSON is larger than 512 KiB, has a syntax error, or has a part of the wrong type, of
// which only the first is named. Else it has an error for each key that differs from a field's name
// only by case. unknown lists all other unknown fields and the duplicate ones, each as a FieldError
// of sigs.k8s.io/json. A null leaves its field unset.
func DecodeProviderSpec(raw []byte) (spec *ProviderSpec, unknown []error, wrong field.ErrorList) {
	spec = &ProviderSpec{}
	unknown, wrong = decodeFields(raw, spec)
	return spec, unknown, wrong
}

// DecodeNeeded decodes only the fields that calls need which do not create a server. wrong is about
// region and labels, by which servers are found: their types, and keys that differ from theirs only
// by case. network is the same for networking, which few of these calls need.
func DecodeNeeded(raw []byte) (spec *ProviderSpec, wrong, network field.ErrorList) {
	var scope struct {
		Region string            `json:"region"`
		Labels map[string]string `json:"labels"`
	}
	var connection struct {
		Networking *Networking `json:"networking"`
	}
	// Without these values less is waited for, and less is cut out of texts.
	var rest struct {
		AllowedAddresses []string `json:"allowedAddresses"`
		UserData         string   `json:"userData"`
	}
	if _, wrong = decodeFields(raw, &scope); wrong == nil {
		_, network = decodeFields(raw, &connection)
		_, _ = Decode(raw, &rest, SpecPath)
	}
	return &ProviderSpec{Region: scope.Region, Labels: scope.Labels, Networking: connection.Networking,
		AllowedAddresses: rest.AllowedAddresses, UserData: rest.UserData}, wrong, network
}

// decodeFields decodes a ProviderSpec into a struct with some or all of its fields.
func decodeFields(raw []byte, into any) (unknown []error, wrong field.ErrorList) {
	if wrong = CheckLength(len(raw), maxSpec, SpecPath); wrong != nil {
		return nil, wrong
	}
	if string(bytes.TrimSpace(raw)) == "null" {
		return nil, field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, "is null: must be a JSON object")}
	}
	problems, wrong := Decode(raw, into, SpecPath)
	known := fieldsOf(reflect.TypeOf(into), "")
	for _, problem := range problems {
		var at kjson.FieldError
		if errors.As(problem, &at) {
			if other := otherCase(at.FieldPath(), known); other != nil {
				wrong = append(wrong, other)
				continue
			}
		}
		unknown = append(unknown, problem)
	}
	return unknown, wrong
}

// Decode decodes a JSON object into the value at into. wrong has an error for the first part with the
// wrong type, with the decoder's text. The error's path begins with path, which may be nil, and ends
// with the field, not with the item of a list or map. Other parts are decoded nevertheless. unknown
// lists the fields that the type lacks and the duplicate ones, each as a FieldError of
// sigs.k8s.io/json. Field names must match exactly.
func Decode(object []byte, into any, path *field.Path) (unknown []error, wrong field.ErrorList) {
	unknown, err := kjson.UnmarshalStrict(object, into)
	if err == nil {
		return unknown, nil
	}
	text := err.Error()
	if isSyntax, at := kjson.SyntaxErrorOffset(err); isSyntax { // Gardener takes the decoder's text for wrong credentials
		text = fmt.Sprintf("is not valid JSON at byte %d", at)
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		path = path.Child(wrongType.Field)
	}
	return nil, field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, text)}
}

// fieldsOf returns the paths of all fields of a struct and its parts, without the indexes of lists.
func fieldsOf(of reflect.Type, prefix string) (paths []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		paths = append(append(paths, prefix+name), fieldsOf(of.Field(i).Type, prefix+name+".")...)
	}
	return paths
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// otherCase returns an error if the path of a key differs from that of a known field only by case, as
// encoding/json compares them: STACKIT's own driver takes such a key for the field, and ignoring it
// could drop the cluster label.
func otherCase(path string, known []string) *field.Error {
	for _, name := range known {
		if bare := listIndex.ReplaceAllString(path, ""); bare != name && strings.EqualFold(bare, name) {
			text := fmt.Sprintf("is spelled %q: must be %q", path, name)
			return field.Invalid(SpecPath.Child(name), field.OmitValueType{}, text)
		}
	}
	return nil
}

// CheckLength returns an error if a value is longer than the limit. Both lengths are in bytes.
func CheckLength(length, limit int, path *field.Path) field.ErrorList {
	if length <= limit {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("has %d bytes: must have at most %d", length, limit))}
}
