// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// SpecPath is how errors name the ProviderSpec: by its field of the MachineClass.
var SpecPath = field.NewPath("providerSpec")

// DecodeProviderSpec reads the JSON of MachineClass.providerSpec. Every field is
// decoded by itself, so that errs names each one that has the wrong type, not only
// the first. unknown names the fields the driver does not know and those given
// twice: the caller decides whether they matter. A null in a field means that it
// is not set.
func DecodeProviderSpec(raw []byte) (spec *ProviderSpec, unknown []string, errs field.ErrorList) {
	fields, unknown, err := decodeObject(raw)
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, err.Error())}
	}
	spec = &ProviderSpec{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		strict, err := decodeField(name, fields[name], spec)
		unknown = append(unknown, strict...)
		if err != nil {
			errs = append(errs, field.Invalid(SpecPath.Child(name), field.OmitValueType{}, typeProblem(err)))
		}
	}
	dropNulls(spec, fields["labels"])
	return spec, unknown, errs
}

// decodeObject splits the top level, and refuses what is no JSON object.
func decodeObject(raw []byte) (fields map[string]json.RawMessage, twice []string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil, errors.New("is empty, must be a JSON object")
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			return nil, nil, fmt.Errorf("is a JSON %s, must be a JSON object", wrongType.Value)
		}
		return nil, nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	if fields == nil {
		return nil, nil, errors.New("is null, must be a JSON object")
	}
	strict, err := kjson.UnmarshalStrict(raw, &map[string]any{}, kjson.DisallowDuplicateFields)
	return fields, texts(strict), err
}

// decodeField decodes one top-level field into spec; the detour over an object
// of one field lets the decoder find it by its tag. It is Kubernetes' decoder: it
// knows fields by their exact names only, and names those it does not know.
func decodeField(name string, value json.RawMessage, spec *ProviderSpec) (strict []string, err error) {
	object, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil, err
	}
	unknown, err := kjson.UnmarshalStrict(object, spec, kjson.DisallowUnknownFields)
	if err == nil {
		return texts(unknown), nil
	}
	// The standard decoder finds the same, with an error that can be read by code.
	if standard := json.Unmarshal(object, &ProviderSpec{}); standard != nil {
		err = standard
	}
	return nil, err
}

func texts(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// typeProblem says in the operator's words what the JSON package found. The
// value itself is left out: it may be a secret in the wrong place.
func typeProblem(err error) string {
	var wrongType *json.UnmarshalTypeError
	if !errors.As(err, &wrongType) {
		return err.Error()
	}
	where := ""
	if _, nested, ok := strings.Cut(wrongType.Field, "."); ok {
		where = nested + " "
	}
	return fmt.Sprintf("%sis a JSON %s, must be %s", where, wrongType.Value, JSONType(wrongType.Type.String()))
}

// JSONType names the JSON that a Go type is decoded from in the operator's words, such as
// "a whole number" for int64.
func JSONType(goType string) string {
	switch {
	case goType == "string":
		return "a string"
	case goType == "[]uint8": // the data of a Secret
		return "base64 in a string"
	case goType == "bool":
		return "true or false"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	default:
		return "an object"
	}
}

// dropNulls removes what templates render for values that are not set: objects
// with nothing in them, and map entries that are null. In a map of strings a decoded null looks like an empty
// string, which a label may well be: hence the raw labels.
func dropNulls(spec *ProviderSpec, rawLabels json.RawMessage) {
	if spec.Networking != nil && spec.Networking.NetworkID == "" && len(spec.Networking.NICIDs) == 0 {
		spec.Networking = nil
	}
	if spec.BootVolume != nil && spec.BootVolume.Source != nil && *spec.BootVolume.Source == (BootVolumeSource{}) {
		spec.BootVolume.Source = nil
	}
	isNull := func(_ string, value any) bool { return value == nil }
	maps.DeleteFunc(spec.Metadata, isNull)
	var labels map[string]any
	if err := json.Unmarshal(rawLabels, &labels); err != nil {
		return // absent, or reported already
	}
	maps.DeleteFunc(spec.Labels, func(key, _ string) bool { return isNull(key, labels[key]) })
}
