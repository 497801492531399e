// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// headers are the headers of the formats that cloud-init and Ignition read (cloud-init's documentation, "User data
// formats"). Another agent in an image may read more formats, so a missing header is only a hint.
var headers = []string{"#!", "#cloud-config", "#include", "#cloud-boothook", "#part-handler", "## template:",
	"Content-Type:", "MIME-Version:", "From ", "{"}

var gzipMagic = []byte("\x1f\x8b")

// userDataText returns why user data probably has no effect on a server; "" if it looks right. It never repeats any of
// it. What is wrong behind the header, cloud-init says in the server's console log.
func userDataText(text string) string {
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	switch {
	case text == "":
		return "is empty: fine if the image wants none"
	case bytes.HasPrefix([]byte(text), gzipMagic):
		return "is compressed with gzip: the manager cannot replace placeholders in it"
	case hasHeader(text):
		return ""
	case err == nil && (hasHeader(string(decoded)) || bytes.HasPrefix(decoded, gzipMagic)):
		return "is encoded in base64, and the driver encodes it once more: use the text itself"
	default:
		return "does not begin as cloud-init or Ignition expects, such as with #cloud-config or #!: they ignore it"
	}
}

func hasHeader(text string) bool {
	return slices.ContainsFunc(headers, func(header string) bool {
		return len(text) >= len(header) && strings.EqualFold(text[:len(header)], header)
	})
}
