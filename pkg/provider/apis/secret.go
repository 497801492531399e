// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Keys of a MachineClass's Secret. The second spelling of the first two is what
// Gardener renders.
const (
	SecretProjectID              = "projectId"
	SecretProjectIDGardener      = "project-id"
	SecretServiceAccountKey      = "serviceAccountKey"
	SecretServiceAccountGardener = "serviceaccount.json"
	SecretRegion                 = "region"
	SecretUserData               = "userData"
	SecretNetworkID              = "networkId"
)

// Secret has the fields of a MachineClass's Secret: credentials and defaults.
type Secret struct {
	// ProjectID is the UUID of the STACKIT project.
	ProjectID string
	// ServiceAccountKey is the key's JSON. It must never be logged.
	ServiceAccountKey string
	// Region is the default region; a value such as "eu01-1" was split into it
	// and AvailabilityZone.
	Region string
	// AvailabilityZone is the default zone within Region, or "".
	AvailabilityZone string
	// UserData is cloud-init in plain text. It may hold bootstrap tokens and must
	// never be logged.
	UserData string
	// NetworkID is the UUID of the default network, or "".
	NetworkID string
}

// SecretPath is how errors name the Secret.
var SecretPath = field.NewPath("secret")

// zonePattern tells a zone ("eu01-1", "eu01-m") from a region ("eu01").
var zonePattern = regexp.MustCompile(`^([a-z0-9]+)-(\d+|m)$`)

// DecodeSecret reads a Secret's data. It reports two spellings that contradict
// each other; what is missing is for package validation to say.
func DecodeSecret(data map[string][]byte) (*Secret, field.ErrorList) {
	secret := &Secret{
		Region:    trimmed(data, SecretRegion),
		UserData:  string(data[SecretUserData]),
		NetworkID: trimmed(data, SecretNetworkID),
	}
	var errs field.ErrorList
	secret.ProjectID, errs = either(data, SecretProjectID, SecretProjectIDGardener, errs)
	secret.ServiceAccountKey, errs = either(data, SecretServiceAccountKey, SecretServiceAccountGardener, errs)
	if parts := zonePattern.FindStringSubmatch(secret.Region); parts != nil {
		secret.AvailabilityZone = secret.Region
		secret.Region = parts[1]
	}
	return secret, errs
}

// either reads a field that has two spellings. The values are never shown: one
// of the fields is a private key.
func either(data map[string][]byte, name, gardener string, errs field.ErrorList) (string, field.ErrorList) {
	first, second := trimmed(data, name), trimmed(data, gardener)
	if first != "" && second != "" && first != second {
		return "", append(errs, field.Invalid(SecretPath.Child(name), field.OmitValueType{},
			fmt.Sprintf("differs from %q, which means the same: set only one of them", gardener)))
	}
	if first != "" {
		return first, errs
	}
	return second, errs
}

// trimmed forgives the line break that a file or a heredoc leaves behind.
func trimmed(data map[string][]byte, key string) string {
	return strings.TrimSpace(string(data[key]))
}
