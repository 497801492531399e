// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// maxMessage is how much of a message of the API is shown, in bytes.
	maxMessage = 4 << 10
	// minRepeated is how many bytes of userData a message must repeat to be withheld.
	minRepeated = 16
	// minKnown is the length of the shortest value that counts as known, in bytes: "a" stands in every text.
	minKnown = 4
	// withheld takes the place of a message that repeats userData: it may hold a password anywhere.
	withheld = "(withheld: it repeats userData)"
)

// redacted makes a message of the API fit for logs and for a Machine's status, which many may read: it is cut, and
// withheld as a whole if it repeats userData of the spec that the server was made with. name is the Machine's. A nil
// spec has no userData.
func redacted(message, name string, spec *apis.ProviderSpec) string {
	message = message[:min(len(message), maxMessage)]
	if spec != nil && message != "" {
		isKnown := knownBytes(message, name, spec)
		for _, form := range formsOf(spec.UserData) {
			if repeats(message, form, isKnown) {
				return withheld
			}
		}
	}
	return strings.ToValidUTF8(message, "?")
}

// repeats reports whether the message has minRepeated bytes in a row of the form of userData, or all of a shorter
// one. Known bytes within them do not count.
func repeats(message, form string, isKnown []bool) bool {
	size := min(len(form), minRepeated)
	if size == 0 {
		return false
	}
	isRepeated := map[string]bool{} // by the texts of that size in the message
	for i := range len(message) - size + 1 {
		isRepeated[message[i:i+size]] = false
	}
	for i := range len(form) - size + 1 {
		if _, ok := isRepeated[form[i:i+size]]; ok {
			isRepeated[form[i:i+size]] = true
		}
	}
	unknown, end := 0, 0 // end is where the repeated text ends that the byte at i belongs to
	for i := range len(message) {
		if i+size <= len(message) && isRepeated[message[i:i+size]] {
			end = i + size
		}
		switch {
		case i >= end:
			unknown = 0
		case !isKnown[i]:
			unknown++
		}
		if unknown >= size {
			return true
		}
	}
	return false
}

// formsOf returns userData in the forms in which an API repeats it: as it is, as it was sent, and with escapes, as
// JSON, Go and Python write a text of many short lines.
func formsOf(userData string) []string {
	encoded := base64.StdEncoding.EncodeToString([]byte(userData))
	userData = strings.TrimSpace(userData) // a short one counts without its line break
	escaped := strconv.Quote(userData)
	return []string{userData, encoded, escaped[1 : len(escaped)-1]}
}

var uuids = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// knownBytes reports for each byte of a message whether it belongs to a UUID, the Machine's name or a value of the spec
// other than userData. userData often names them, and so must a message about them.
func knownBytes(message, name string, spec *apis.ProviderSpec) []bool {
	isKnown := make([]bool, len(message))
	mark := func(start, end int) {
		for i := start; i < end; i++ {
			isKnown[i] = true
		}
	}
	for _, place := range uuids.FindAllStringIndex(message, -1) {
		mark(place[0], place[1])
	}
	for _, value := range append(valuesOf(spec), name) {
		for start := 0; len(value) >= minKnown; {
			found := strings.Index(message[start:], value)
			if found < 0 {
				break
			}
			start += found + len(value)
			mark(start-len(value), start)
		}
	}
	return isKnown
}

// valuesOf returns the texts of a spec, keys of labels and metadata among them, but not its userData.
func valuesOf(spec *apis.ProviderSpec) (values []string) {
	others := *spec
	others.UserData = ""
	var decoded any
	if raw, err := json.Marshal(others); err == nil {
		_ = json.Unmarshal(raw, &decoded)
	}
	var collect func(any)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			values = append(values, value)
		case []any:
			for _, item := range value {
				collect(item)
			}
		case map[string]any:
			for key, item := range value {
				values = append(values, key)
				collect(item)
			}
		}
	}
	collect(decoded)
	return values
}
