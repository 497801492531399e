// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// SpecPath is how errors name the ProviderSpec: by its field of the MachineClass.
var SpecPath = field.NewPath("providerSpec")

// DecodeProviderSpec reads the JSON of MachineClass.providerSpec. errs names every part that
// has the wrong type, with its path; it is as if it were not set. unknown names the fields
// the driver does not know and those given twice, each as a FieldError of sigs.k8s.io/json:
// the caller decides whether they matter. A null in a field means that it is not set.
func DecodeProviderSpec(raw []byte) (spec *ProviderSpec, unknown []error, errs field.ErrorList) {
	twice, err := checkObject(raw)
	if err != nil {
		return nil, nil, field.ErrorList{field.Invalid(SpecPath, field.OmitValueType{}, err.Error())}
	}
	spec = &ProviderSpec{}
	cleaned, unknown, errs := Decode(raw, spec, SpecPath)
	dropNulls(spec, cleaned)
	return spec, append(twice, unknown...), errs
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
		return nil, fmt.Errorf("is not valid JSON: %w", err)
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
		return // labels that cannot be decoded are not in raw
	}
	maps.DeleteFunc(spec.Labels, func(key, _ string) bool { return isNull(key, labels.Labels[key]) })
}
