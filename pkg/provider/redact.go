// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
)

const (
	// maxMessage is how much of a message of the API is shown, in bytes.
	maxMessage = 4 << 10
	// minRepeated is the length, in bytes, from which the beginning of userData that the API repeats
	// is hidden.
	minRepeated = 16
)

// redacted makes a message of the API fit for logs and for a Machine's status, which many may read. It
// hides userData that the message repeats from its beginning on; "" for calls that send none.
func redacted(message, userData string) string {
	message = message[:min(len(message), maxMessage)]
	message = withoutRepeated(message, formsOf(userData))
	return strings.ToValidUTF8(message, "?")
}

// withoutRepeated replaces what the message repeats of the forms, from their beginning on. Where
// several begin alike, the one that goes on longest counts.
func withoutRepeated(message string, forms []string) string {
	var text strings.Builder
	for start := 0; start < len(message); {
		repeated := 0
		for _, form := range forms {
			repeated = max(repeated, commonPrefix(message[start:], form))
		}
		if repeated < minRepeated {
			text.WriteByte(message[start])
			start++
			continue
		}
		text.WriteString("(userData)")
		start += repeated
	}
	return text.String()
}

// commonPrefix returns how many bytes two texts begin with alike.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// formsOf returns userData in the forms in which an API repeats it: as it is, as it was sent, and
// quoted, as Go and as JSON do it.
func formsOf(userData string) []string {
	asSent := base64.StdEncoding.EncodeToString([]byte(userData))
	forms := []string{userData, asSent, withoutQuotes(strconv.Quote(userData))}
	if asJSON, err := json.Marshal(userData); err == nil {
		forms = append(forms, withoutQuotes(string(asJSON)))
	}
	return forms
}

func withoutQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }
