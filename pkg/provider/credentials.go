// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Credentials are those that the driver opens a session with.
func Credentials(secret *apis.Secret) spi.Credentials {
	return spi.Credentials{
		ProjectID: secret.ProjectID, ServiceAccountKey: secret.ServiceAccountKey,
		ServiceAccountEmail: secret.ServiceAccountEmail, Token: secret.Token, TokenFile: secret.WorkloadIdentityTokenFile,
	}
}

// CredentialsProblem says what is wrong with the Secret's credentials by the error of opening
// a session; nil if they can be used, or one of reported is about them already. Its type is
// field.ErrorTypeRequired if there are none.
func CredentialsProblem(secret *apis.Secret, sessionErr error, reported field.ErrorList) *field.Error {
	var unusable *spi.CredentialsError
	if !errors.As(sessionErr, &unusable) || slices.ContainsFunc(apis.SecretCredentials, func(key string) bool {
		return anyConcerns(apis.SecretPath.Child(key), reported)
	}) {
		return nil
	}
	path := apis.SecretPath.Child(secret.CredentialsKey())
	if errors.Is(sessionErr, spi.ErrNoCredentials) {
		return field.Required(path, fmt.Sprintf("must be the JSON of a key, or set %s with %s or %s",
			apis.SecretServiceAccountEmail, apis.SecretToken, apis.SecretWorkloadIdentityTokenFile))
	}
	return field.Invalid(path, field.OmitValueType{}, unusable.Reason)
}
