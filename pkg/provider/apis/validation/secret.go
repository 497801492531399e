// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ValidateSecret checks the fields of a Secret that every driver call needs. It does not check the
// content of the service-account key or of the workload identity's token: package spi does.
func ValidateSecret(secret *apis.Secret, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if secret.ProjectID == "" {
		errs = append(errs, field.Required(path.Child(apis.SecretProjectID), "must be the UUID of the STACKIT project"))
	} else {
		errs = append(errs, secretUUID(secret.ProjectID, path.Child(apis.SecretProjectID))...)
	}
	return append(errs, validateIdentity(secret, path)...)
}

// validateIdentity checks that a workload identity is complete, and that there is no key as well.
func validateIdentity(secret *apis.Secret, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	email := path.Child(apis.SecretServiceAccountEmail)
	switch {
	case !secret.HasIdentity():
		return nil
	case secret.ServiceAccountKey != "":
		for _, each := range []struct{ name, value string }{
			{apis.SecretServiceAccountEmail, secret.ServiceAccountEmail}, {apis.SecretToken, secret.Token},
			{apis.SecretWorkloadIdentityTokenFile, secret.WorkloadIdentityTokenFile},
		} {
			if each.value != "" {
				errs = append(errs, field.Forbidden(path.Child(each.name),
					"must not be set beside "+apis.SecretServiceAccountKey+": remove one of the two"))
			}
		}
		return errs
	case secret.ServiceAccountEmail == "":
		errs = append(errs, field.Required(email,
			"must be the email address of the service account that trusts the workload identity"))
	case len(secret.ServiceAccountEmail) > maxMail || !serviceAccountMail.MatchString(secret.ServiceAccountEmail):
		errs = append(errs, field.Invalid(email, field.OmitValueType{}, "must be the email address of a service account"))
	}
	if secret.Token == "" && secret.WorkloadIdentityTokenFile == "" {
		errs = append(errs, field.Required(path.Child(apis.SecretToken),
			"must be the workload identity's token, or set "+apis.SecretWorkloadIdentityTokenFile))
	}
	return errs
}

// ValidateSecretNetwork checks the Secret's default network. spec must not have its defaults set
// yet: a spec with a network of its own does not use the Secret's.
func ValidateSecretNetwork(spec *apis.ProviderSpec, secret *apis.Secret, path *field.Path) field.ErrorList {
	if spec.Networking != nil || secret.NetworkID == "" {
		return nil
	}
	return secretUUID(secret.NetworkID, path.Child(apis.SecretNetworkID))
}

// secretUUID never shows the value: it may be a key in the wrong field.
func secretUUID(text string, path *field.Path) field.ErrorList {
	return invalidUnless(IsUUID(text), path, field.OmitValueType{}, uuidRule)
}
