// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const someUserData = "#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr<&>s3cr3t\"\ntoken: abc123.0123456789abcdef\n"

func TestRedactedMessage(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(someUserData))
	quoted := strconv.Quote(someUserData)
	for name, row := range map[string]struct {
		message, want string
	}{
		"nothing of it":     {"machine type is not valid", "machine type is not valid"},
		"as it is":          {"wrong: " + someUserData + "!", "wrong: (userData)!"},
		"base64":            {"wrong: " + encoded + "!", "wrong: (userData)!"},
		"quoted as Go does": {"wrong: " + quoted + "!", `wrong: "(userData)"!`},
		"quoted as JSON":    {`wrong: "#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr\u003c\u0026\u003es3cr3t\"\ntok`, `wrong: "(userData)`},
		"cut off":           {"wrong: " + quoted[:40] + "...", `wrong: "(userData)...`},
		"twice":             {someUserData + " and " + encoded, "(userData) and (userData)"},
		"15 characters":     {"wrong: " + someUserData[:15] + "!", "wrong: " + someUserData[:15] + "!"},
		"16 characters":     {"wrong: " + someUserData[:16] + "!", "wrong: (userData)!"},
		"a name within it":  {"no shoot--demo--worker-1 here", "no shoot--demo--worker-1 here"},
		"misleading words":  {"Conflict", "clash"},
		"cut to 4 KiB":      {strings.Repeat("x", maxMessage-1) + "ü", strings.Repeat("x", maxMessage-1) + "?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redacted(row.message, someUserData); got != row.want {
				t.Errorf("%q becomes %q, want %q", row.message, got, row.want)
			}
		})
	}
}

// Whatever the message and the userData: the beginning of userData is not left.
func FuzzRedacted(f *testing.F) {
	f.Add("wrong: "+someUserData, someUserData)
	f.Add("wrong: "+strconv.Quote(someUserData)[:50], someUserData)
	f.Add(strings.Repeat("ü", 30), strings.Repeat("ü", 40))
	f.Add(strings.Repeat("a", 100), strings.Repeat("a", 50))
	f.Fuzz(func(t *testing.T, message, userData string) {
		text := withoutRepeated(message, []string{userData})
		if len(userData) >= minRepeated && strings.Contains(strings.ReplaceAll(text, "(userData)", "\x00"), userData[:minRepeated]) {
			t.Errorf("%q is left of %q", userData[:minRepeated], text)
		}
		if got := redacted(message, userData); !utf8.ValidString(got) {
			t.Errorf("%q is no valid UTF-8", got)
		}
	})
}
