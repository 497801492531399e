// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ValidateSecret checks the fields of a Secret that every driver call needs. The
// service-account key itself is judged where it is used: by package spi, which
// also knows when none is needed.
func ValidateSecret(secret *apis.Secret, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if secret.ProjectID == "" {
		errs = append(errs, field.Required(path.Child(apis.SecretProjectID), "must be the UUID of the STACKIT project"))
	} else {
		errs = append(errs, secretUUID(secret.ProjectID, path.Child(apis.SecretProjectID))...)
	}
	return errs
}

// ValidateSecretNetwork checks the Secret's default network, if the spec (before
// its defaults are set) leaves the network to it.
func ValidateSecretNetwork(spec *apis.ProviderSpec, secret *apis.Secret, path *field.Path) field.ErrorList {
	if spec.Networking != nil || secret.NetworkID == "" {
		return nil
	}
	return secretUUID(secret.NetworkID, path.Child(apis.SecretNetworkID))
}

// secretUUID never shows the value: it may be a key that was put in the wrong
// field.
func secretUUID(text string, path *field.Path) field.ErrorList {
	if !IsUUID(text) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, uuidRule)}
	}
	return nil
}
