// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const someUserData = "#cloud-config\nhostname: shoot--demo--worker-1\npassword: \"s3cr<&>s3cr3t\"\ntoken: abc123.0123456789abcdef\n"

func TestShownMessage(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(someUserData))
	quoted := strconv.Quote(someUserData)
	for name, row := range map[string]struct {
		message, want string
	}{
		"nothing of it":             {"machine type is not valid", "machine type is not valid"},
		"as it is":                  {"wrong: " + someUserData[40:] + "!", "wrong: (userData)!"},
		"base64":                    {"wrong: " + encoded + "!", "wrong: (userData)!"},
		"quoted as Go does":         {"wrong: " + quoted[45:] + "!", "wrong: (userData)!"},
		"quoted as JSON":            {`wrong: "#cloud-config\nhostname: x\npassword: \"s3cr\u003c\u0026\u003es3cr3t\"\ntok`, `wrong: (userData)x(userData)`},
		"cut off":                   {"wrong: " + quoted[:40] + "...", "wrong: (userData)..."},
		"the middle of it":          {"wrong: " + encoded[30:60] + "...", "wrong: (userData)..."},
		"15 characters":             {"wrong: 0123456789abcde!", "wrong: 0123456789abcde!"},
		"16 characters":             {"wrong: 0123456789abcdef!", "wrong: (userData)!"},
		"a name that is sent":       {"no shoot--demo--worker-1 here", "no shoot--demo--worker-1 here"},
		"a name within it":          {someUserData, "(userData)shoot--demo--worker-1(userData)"},
		"a short text that is sent": {"token: abc123.0123456789abcdef", "(userData)"},
		"misleading words":          {"Conflict", "clash"},
		"cut to 4 KiB":              {strings.Repeat("x", maxMessage-1) + "ü", strings.Repeat("x", maxMessage-1) + "?"},
	} {
		t.Run(name, func(t *testing.T) {
			hide := hiding{someUserData, []string{"shoot--demo--worker-1", "token", "abc123"}}
			if got := hide.shown(row.message); got != row.want {
				t.Errorf("%q becomes %q, want %q", row.message, got, row.want)
			}
		})
	}
}

// Whatever the message and the userData: no run of userData is left that is not part of
// what the request sends besides.
func FuzzWithoutUserData(f *testing.F) {
	f.Add("wrong: "+someUserData, someUserData, "shoot--demo--worker-1")
	f.Add("wrong: "+strconv.Quote(someUserData)[:50], someUserData, "token")
	f.Add(base64.StdEncoding.EncodeToString([]byte(someUserData))[7:], someUserData, "")
	f.Add(strings.Repeat("ü", 30), strings.Repeat("ü", 40), strings.Repeat("ü", 10))
	f.Add(strings.Repeat("a", 100), strings.Repeat("a", 50), strings.Repeat("a", 20))
	f.Fuzz(func(t *testing.T, message, userData, other string) {
		if shown := (hiding{userData, []string{other}}).shown(message); !utf8.ValidString(shown) {
			t.Errorf("%q is no valid UTF-8", shown)
		}
		for _, part := range strings.Split(withoutUserData(message, userData, []string{other}), "(userData)") {
			for begin := range len(part) - minRun + 1 {
				left := part[begin : begin+minRun]
				for _, form := range formsOf(userData) {
					if bytes.Contains(form, []byte(left)) && !touches(part, begin, other) {
						t.Fatalf("%q is left of %q in %q", left, userData, part)
					}
				}
			}
		}
	})
}

// touches says whether the run that begins there has a byte of an occurrence of other.
func touches(part string, begin int, other string) bool {
	from, to := max(0, begin+1-len(other)), min(len(part), begin+minRun-1+len(other))
	return len(other) >= minRun && strings.Contains(part[from:to], other)
}

func BenchmarkWithoutUserData(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 32<<10)
	for i := range raw {
		raw[i] = byte(random.Uint32())
	}
	userData := hex.EncodeToString(raw) // 64 KiB
	for name, message := range map[string]string{
		"repeated":      userData,
		"not repeated":  strings.Repeat(hex.EncodeToString([]byte("the API refuses this for a reason")), 1000),
		"all the same":  strings.Repeat("a", 64<<10),
		"base64 of all": base64.StdEncoding.EncodeToString([]byte(userData)),
	} {
		hide := hiding{userData, []string{"shoot--demo--worker-1"}}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hide.shown(message)
			}
		})
	}
}
