// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// maxMessage limits the shown part of a message of the API, in bytes.
	maxMessage = 4 << 10
	// minSecret is the length of the shortest value that is replaced, in bytes: "a" is in every text.
	minSecret = 8
)

// tokens matches bootstrap tokens and JWTs.
var tokens = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\beyJ[\w-]+\.[\w-]+\.[\w-]*`)

// redacted returns a text from outside that is safe for logs and for a Machine's status, which many can
// read: one printable line of limited length, without tokens and without the secrets' exact values, as
// they are or in base64.
func redacted(text string, secrets ...string) string {
	for _, secret := range secrets {
		for _, form := range []string{strings.TrimSpace(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
			if len(form) >= minSecret {
				text = strings.ReplaceAll(text, form, "(redacted)")
			}
		}
	}
	return printable(tokens.ReplaceAllString(text[:min(len(text), maxMessage)], "(token)"))
}

// shownKeys are the keys of a Secret whose values texts may show.
var shownKeys = []string{apis.SecretProjectID, apis.SecretProjectIDGardener, apis.SecretServiceAccountEmail,
	apis.SecretRegion, apis.SecretNetworkID}

// secretsIn returns the values of a Secret that no text may show.
func secretsIn(secret *corev1.Secret) (values []string) {
	if secret == nil {
		return nil
	}
	for key, value := range secret.Data {
		if !slices.Contains(shownKeys, key) {
			values = append(values, string(value))
		}
	}
	return values
}

// printable returns a text from outside as one line without control characters: the manager's log and kubectl
// show it unchanged, so it could command a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
}
