// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

const (
	// maxMessage limits the shown part of a message of the API, in bytes.
	maxMessage = 4 << 10
	// minRepeated is how many bytes of userData a message must repeat to be withheld, minProse the
	// same for letters and full stops alone: scripts and the API both write "could not be found".
	minRepeated = 16
	minProse    = 32
	// minKnown is the length of the shortest value that counts as known, in bytes: "a" is in every
	// text.
	minKnown = 4
	// withheld replaces a message that repeats userData: it may contain a password anywhere.
	withheld = "(withheld: it repeats userData)"
)

// redacted returns a message of the API that is safe for logs and for a Machine's status, which
// many can read: it is truncated, shows no token, and is withheld completely if it repeats userData
// of the server's spec. The Machine's name, UUIDs and the spec's other values do not count, because
// userData often contains them, and messages must name them. A nil spec has no userData.
func redacted(message, name string, spec *apis.ProviderSpec) string {
	message = message[:min(len(message), maxMessage)]
	if spec != nil && repeatsUserData(message, spec.UserData, append(valuesOf(spec), name)) {
		return withheld
	}
	return printable(tokens.ReplaceAllString(message, "(token)"))
}

// repeatsUserData reports whether the message repeats userData, as text in any quotes or as base64,
// apart from UUIDs and the values.
func repeatsUserData(message, userData string, values []string) bool {
	if message == "" || strings.TrimSpace(userData) == "" {
		return false
	}
	text, isKnown := plain(message, knownBytes(message, values))
	form, _ := plain(userData, make([]bool, len(userData)))
	forms := []string{form}
	for i := range min(3, len(userData)) { // base64 encodes three bytes at a time
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(userData[i:])))
	}
	return slices.ContainsFunc(forms, func(form string) bool { return repeats(text, form, isKnown) })
}

// plain removes blanks, line breaks, quotes and backslashes, and the letters of escaped line
// breaks, with their bytes' flags: Go, JSON and Python quote differently.
func plain(text string, flags []bool) (string, []bool) {
	var left strings.Builder
	var ofLeft []bool
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i+1 < len(text) && strings.IndexByte("nrt", text[i+1]) >= 0 {
				i++
			}
		case ' ', '\t', '\n', '\r', '"', '\'', '`':
		default:
			left.WriteByte(text[i])
			ofLeft = append(ofLeft, flags[i])
		}
	}
	return left.String(), ofLeft
}

// repeats reports whether the message has minRepeated consecutive bytes of the form of userData, or
// all of a shorter form. Known bytes within them do not count.
func repeats(message, form string, isKnown []bool) bool {
	size := min(len(form), minRepeated)
	if size == 0 {
		return false
	}
	isRepeated := shared(message, form, size)
	unknown, isProse, end := 0, true, 0 // end is where the repeated text ends that the byte at i belongs to
	for i := range len(message) {
		if i+size <= len(message) && isRepeated[message[i:i+size]] {
			end = i + size
		}
		switch {
		case i >= end:
			unknown, isProse = 0, true
		case !isKnown[i]:
			unknown++
			isProse = isProse && isOfProse(message[i])
		}
		if unknown >= size && (!isProse || unknown >= minProse || size < minRepeated) {
			return true
		}
	}
	return false
}

func isOfProse(b byte) bool { return b == '.' || b|0x20 >= 'a' && b|0x20 <= 'z' }

// shared returns the texts of the given size that occur in both the message and the form of
// userData.
func shared(message, form string, size int) map[string]bool {
	isShared := map[string]bool{}
	for i := range len(message) - size + 1 {
		isShared[message[i:i+size]] = false
	}
	for i := range len(form) - size + 1 {
		if _, ok := isShared[form[i:i+size]]; ok {
			isShared[form[i:i+size]] = true
		}
	}
	return isShared
}

var (
	uuids = regexp.MustCompile(`(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	// tokens matches bootstrap tokens and JWTs.
	tokens = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\beyJ[\w-]+\.[\w-]+\.[\w-]*`)
)

// knownBytes reports for each byte of a message whether it belongs to a UUID, or to one of the
// values.
func knownBytes(message string, values []string) []bool {
	isKnown := make([]bool, len(message))
	mark := func(start, end int) {
		for i := start; i < end; i++ {
			isKnown[i] = true
		}
	}
	for _, place := range uuids.FindAllStringIndex(message, -1) {
		mark(place[0], place[1])
	}
	for _, value := range values {
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

// valuesOf returns the texts of a spec, including keys of labels and metadata, but not its
// userData.
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
	slices.Sort(values)
	return slices.Compact(values)
}
