// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Keys of a MachineClass's Secret. Two keys have a second spelling, which Gardener uses: project-id
// for projectId, and serviceaccount.json for serviceAccountKey.
const (
	SecretProjectID              = "projectId"
	SecretProjectIDGardener      = "project-id"
	SecretServiceAccountKey      = "serviceAccountKey"
	SecretServiceAccountGardener = "serviceaccount.json"
	SecretServiceAccountEmail    = "serviceAccountEmail"
	SecretToken                  = "token"
	SecretRegion                 = "region"
	SecretUserData               = "userData"
	SecretNetworkID              = "networkId"
)

// SecretIdentity lists the keys of a workload identity, SecretCredentials all keys with credentials
// of the service account.
var (
	SecretIdentity    = []string{SecretServiceAccountEmail, SecretToken}
	SecretCredentials = append([]string{SecretServiceAccountKey}, SecretIdentity...)
)

// Secret holds the fields of a MachineClass's Secret: credentials and defaults.
type Secret struct {
	// ProjectID is the UUID of the project. Required. Gardener's spelling of this field is project-id.
	ProjectID string `key:"projectId"`
	// ServiceAccountKey is the JSON of a service-account key, at most 16 KiB, including its RSA private
	// key of 2,048 to 4,096 bits. Required without a workload identity, invalid with one. Gardener's
	// spelling of this field is serviceaccount.json. It must never be logged.
	ServiceAccountKey string `key:"serviceAccountKey"`
	// ServiceAccountEmail is the email address of the service account that trusts the workload
	// identity. Required for a workload identity.
	ServiceAccountEmail string `key:"serviceAccountEmail"`
	// Token is the workload identity's token, a JWT of at most 16 KiB. Required for a workload
	// identity. It must never be logged.
	Token string `key:"token"`
	// Region is the default region, such as eu01. The value eu01-1 sets region eu01 and, if that is
	// the region in use, the default zone eu01-1.
	Region string `key:"region"`
	// AvailabilityZone is the default zone within Region, from the key region; "" if that has no zone.
	AvailabilityZone string `key:"-"`
	// UserData is the cloud-init data in plain text; the driver sends it in base64. It may be empty, but
	// the key must exist. The API document states no limit, but OpenStack, on which the API is built,
	// accepts at most 65535 bytes of base64, which is 49149 bytes of text. It may hold bootstrap tokens
	// and must never be logged.
	UserData string `key:"userData"`
	// NetworkID is the UUID of the default network. Optional.
	NetworkID string `key:"networkId"`
}

// SecretPath is the path of the Secret in errors.
var SecretPath = field.NewPath("secret")

// zonePattern matches a zone ("eu01-1", "eu01-m"), but not a region ("eu01").
var zonePattern = regexp.MustCompile(`^([a-z0-9]+)-(\d+|m)$`)

// RegionOfZone returns the region of a zone: eu01 for eu01-1. It returns "" for a text that does not look like a zone.
func RegionOfZone(zone string) string {
	if parts := zonePattern.FindStringSubmatch(zone); parts != nil {
		return parts[1]
	}
	return ""
}

// DecodeSecret decodes a Secret's data, without the line breaks that a file or a heredoc leaves behind.
// It returns errors for userData of more than 256 KiB, and for two spellings of a key with different
// values. No error shows a value. Missing fields are left to package validation.
func DecodeSecret(data map[string][]byte) (secret *Secret, errs field.ErrorList) {
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	either := func(key, gardener string) string {
		if text(key) != "" && text(gardener) != "" && text(key) != text(gardener) {
			errs = append(errs, field.Invalid(SecretPath.Child(key), field.OmitValueType{},
				fmt.Sprintf("differs from %q, which has the same meaning: set only one of them", gardener)))
		}
		return cmp.Or(text(key), text(gardener))
	}
	secret = &Secret{
		ProjectID:           either(SecretProjectID, SecretProjectIDGardener),
		ServiceAccountKey:   either(SecretServiceAccountKey, SecretServiceAccountGardener),
		ServiceAccountEmail: text(SecretServiceAccountEmail),
		Token:               text(SecretToken),
		Region:              text(SecretRegion),
		NetworkID:           text(SecretNetworkID),
	}
	if wrong := CheckLength(len(data[SecretUserData]), MaxUserData, SecretPath.Child(SecretUserData)); wrong != nil {
		errs = append(errs, wrong...)
	} else {
		secret.UserData = string(data[SecretUserData])
	}
	if region := RegionOfZone(secret.Region); region != "" {
		secret.Region, secret.AvailabilityZone = region, secret.Region
	}
	return secret, errs
}

// HasIdentity reports whether any field of a workload identity is set.
func (s *Secret) HasIdentity() bool {
	return s.ServiceAccountEmail != "" || s.Token != ""
}

// CredentialsKey returns the key of the credential in use: token or serviceAccountKey. Without any
// credentials it returns serviceAccountKey.
func (s *Secret) CredentialsKey() string {
	if s.Token != "" {
		return SecretToken
	}
	return SecretServiceAccountKey
}
