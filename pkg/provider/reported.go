// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// anyConcerns says whether one of the errors is about the field, a part of the field, or an
// object that the field is in.
func anyConcerns(path *field.Path, errs field.ErrorList) bool {
	return len(unrelated(field.ErrorList{{Field: path.String()}}, errs)) == 0
}

// concerning returns those that are about a field, a part of it, or an object with it in it.
func concerning(path *field.Path, errs field.ErrorList) (found field.ErrorList) {
	for _, err := range errs {
		if isWithin(err.Field, path.String()) || isWithin(path.String(), err.Field) {
			found = append(found, err)
		}
	}
	return found
}

// unrelated drops those of found that are about a field, a part of one, or an object with
// one in it, that reported is about already.
func unrelated(found, reported field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(found, func(err *field.Error) bool {
		return slices.ContainsFunc(reported, func(earlier *field.Error) bool {
			return isWithin(err.Field, earlier.Field) || isWithin(earlier.Field, err.Field)
		})
	})
}

// isWithin says whether a path is another one, or that of a part of it.
func isWithin(part, whole string) bool {
	rest, within := strings.CutPrefix(part, whole)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
