// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API document describes labels in prose only, and without the slash that servers carry in
// practice ("kubernetes.io/machine"): hence it is allowed here.
var (
	labelKey   = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_./]*)?[A-Za-z0-9]$`)
	labelValue = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)
)

const (
	// MaxLabel is the maximum length of a label's key and value, in bytes.
	MaxLabel            = 63
	reservedLabelPrefix = "stackit-"
)

// ValidateLabels checks the labels of a server. It may have at most 256. Each key and each value must have
// the API's form and at most MaxLabel bytes, and no key may have the prefix stackit-, which STACKIT reserves.
func ValidateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := tooMany(len(labels), path)
	if errs != nil {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, reservedLabelPrefix) {
			errs = append(errs, field.Forbidden(path.Key(key), "the prefix stackit- is reserved by STACKIT: use another one"))
		} else if len(key) > MaxLabel || !labelKey.MatchString(key) {
			errs = append(errs, field.Invalid(path.Key(key), key, fmt.Sprintf(
				"a label's key must be 1 to %d letters, digits, '-', '_', '.' and '/', "+
					"starting and ending with a letter or digit", MaxLabel)))
		}
		if value := labels[key]; len(value) > MaxLabel || !labelValue.MatchString(value) {
			errs = append(errs, field.Invalid(path.Key(key), value, fmt.Sprintf(
				"a label's value must be at most %d letters, digits, '-', '_' and '.', "+
					"starting and ending with a letter or digit", MaxLabel)))
		}
	}
	return errs
}

// ValidateClusterLabels checks the labels that distinguish a cluster's servers from others. Their
// values must not be empty: a template without the cluster's name renders the same empty value for
// every cluster, and all their servers would seem to belong to one cluster.
func ValidateClusterLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := tooMany(len(labels), path)
	if errs != nil {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if labels[key] == "" {
			errs = append(errs, field.Required(path.Key(key), "identifies the cluster that owns the servers: must not be empty"))
		}
	}
	return errs
}

// ValidateMachineName checks a Machine's name, which becomes the server's name and the value of a
// label. The API refuses longer names.
func ValidateMachineName(name string, path *field.Path) field.ErrorList {
	isValid := len(name) <= maxServerName && serverName.MatchString(name)
	return invalidUnless(isValid, path, name, fmt.Sprintf("becomes the server's name and a label: must be "+
		"1 to %d letters, digits, '-' and '.'; shorten the name of the Machine or MachineDeployment", maxServerName))
}

// ValidateMachineClassName checks a MachineClass's name, which becomes the value of a server's
// label.
func ValidateMachineClassName(name string, path *field.Path) field.ErrorList {
	isValid := name != "" && len(name) <= MaxLabel && labelValue.MatchString(name)
	return invalidUnless(isValid, path, name, fmt.Sprintf(
		"becomes a label of the server: must be 1 to %d letters, digits, '-' and '.'", MaxLabel))
}

var (
	metadataKey  = regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`)
	metadataLine = regexp.MustCompile(`^[^\r\n]*$`)
)

const maxMetadataValue = 255

func validateMetadata(metadata map[string]any, path *field.Path) field.ErrorList {
	errs := tooMany(len(metadata), path)
	if errs != nil {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !metadataKey.MatchString(key) {
			errs = append(errs, field.Invalid(path.Key(key), key,
				"a metadata key must be 1 to 255 letters, digits, spaces and '-_:.'"))
		}
		switch value := metadata[key].(type) {
		case string:
			if len([]rune(value)) > maxMetadataValue || !metadataLine.MatchString(value) {
				errs = append(errs, field.Invalid(path.Key(key), field.OmitValueType{},
					"a metadata value must be one line of at most 255 characters"))
			}
		case bool, int64, float64:
		default:
			errs = append(errs, field.Invalid(path.Key(key), field.OmitValueType{},
				"a metadata value must be a string, a number, true or false"))
		}
	}
	return errs
}
