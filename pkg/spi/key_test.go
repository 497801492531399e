// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Files pass editors, shells and base64 on their way into a Secret. No error repeats anything of them.
func TestWhatIsNoKeyIsNamed(t *testing.T) {
	r := newRig(t)
	good := string(r.key)
	// with is the key with other fields, of its credentials if they have them; nil leaves one out.
	with := func(changes map[string]any) string {
		var key map[string]any
		if err := json.Unmarshal(r.key, &key); err != nil {
			t.Fatal(err)
		}
		credentials, _ := key["credentials"].(map[string]any)
		for name, value := range changes {
			in := key
			if _, ok := credentials[name]; ok {
				in = credentials
			}
			if in[name] = value; value == nil {
				delete(in, name)
			}
		}
		return asJSON(t, key)
	}
	parsed, err := parseKey(good)
	if err != nil {
		t.Fatal(err)
	}
	private := privateKey(parsed)
	lines := strings.Split(private, "\n")
	withPEM := func(text string) string { return with(map[string]any{"privateKey": text}) }
	pemOf := func(kind, line string) string {
		return withPEM(strings.Replace(strings.ReplaceAll(private, "PRIVATE KEY", kind), "\n", "\n"+line, 1))
	}
	utf16 := func(text string) string { return strings.ReplaceAll(text, "", "\x00")[1:] }
	encoded := base64.StdEncoding.EncodeToString
	const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	inner := strings.Count(good, "\n") // the line before the last
	for name, row := range map[string]struct{ key, says string }{
		"spaces":                {" \n", "is not the JSON that STACKIT issues for a key: use"},
		"another text":          {"s3cr3t", "is not the JSON that STACKIT issues for a key: use"},
		"a number":              {"1", "is not the JSON that STACKIT issues for a key"},
		"base64":                {encoded(r.key), "is encoded in base64: use the JSON itself"},
		"base64 in lines":       {strings.Join(strings.SplitAfter(encoded(r.key), "A"), "\r\n"), "is encoded in base64"},
		"words that base64 has": {"example-key", "is not the JSON that STACKIT issues"},
		"base64 of a bracket":   {"W1", "is not the JSON that STACKIT issues"},
		"base64 of bytes":       {encoded([]byte("s3cr3t\x00\x01\xff")), "is not the JSON that STACKIT issues"},
		"bytes":                 {"\x1f\x8b\x08\x00s3cr3t", "is not the JSON that STACKIT issues"},
		"base64 for URLs":       {base64.RawURLEncoding.EncodeToString(r.key), "is encoded in base64"},
		"base64 twice":          {encoded([]byte(encoded(r.key))), "is encoded in base64"},
		"base64 of the PEM":     {encoded([]byte(private)), "is encoded in base64"},
		"base64 of UTF-16":      {encoded([]byte("\xff\xfe" + utf16(good))), "is encoded in base64"},
		"the PEM":               {private, "is a PEM file, not a key with its credentials: use"},
		"a byte order mark":     {"\ufeff" + good, "begins with a byte order mark"},
		"UTF-16":                {"\xff\xfe" + utf16(good), "is UTF-16 text"},
		"UTF-16, big endian":    {"\xfe\xff" + utf16(good), "is UTF-16 text"},
		"UTF-16 without a mark": {utf16(good), "is UTF-16 text"},
		"JSON in a string":      {asJSON(t, good), "is a quoted string"},
		"a shell's quotes":      {"'" + good + "'", "is a quoted string"},
		"quotes around JSON":    {`"` + good + `"`, "is a quoted string"},
		"a path":                {"/path/to/key", "is the path of a file"},
		"a path of home":        {"~/sa-key.json", "is the path of a file"},
		"a path nearby":         {"./key", "is the path of a file"},
		"a path of a variable":  {"$HOME/sa", "is the path of a file"},
		"a path of a share":     {`\\srv\share\sa`, "is the path of a file"},
		"a path with slashes":   {"C:/Users/me/key", "is the path of a file"},
		"a file's name":         {"sa-key-2026.json\n", "is the path of a file"},
		"a path of Windows":     {`C:\Users\me\key`, "is the path of a file"},
		"a URL of a file":       {"file:///path/to/key", "is the path of a file"},
		"curl's @":              {"@key", "is the path of a file"},
		"a token":               {"eyJhbGciOiJSUzUxMiJ9.eyJpc3MiOiJhIn0.s3cr3t", "is a token, not a key"},
		"YAML":                  {"id: s3cr3t\ncredentials:\n  iss: s3cr3t\n", "is YAML, not JSON"},
		"a trailing comma": {strings.TrimSuffix(good, "\n}") + ",\n}",
			fmt.Sprintf("a trailing comma at the end of its line %d:", inner)},
		"a comma within":      {strings.Replace(good, "\n  }", ",\n  }", 1), "a trailing comma at the end of its line"},
		"a comma that is not": {strings.Replace(good, ",\n", "\n", 1), "is not JSON: syntax error in its line 3:"},
		"a comment":           {"{ // s3cr3t\n" + good[1:], "is not JSON: syntax error in its line 1:"},
		"more behind it":      {good + "\n" + good, "is not JSON: syntax error in its line"},
		"a comment behind a comma": {strings.Replace(good, ",\n", ",\n// s3cr3t\n", 1),
			"is not JSON: syntax error in its line 3:"},
		"a name without quotes": {strings.Replace(good, `"active"`, "active", 1), "is not JSON: syntax error in its line"},
		"line breaks in a text": {strings.Replace(good, `\n`, "\n", 1),
			"is not JSON: a string is cut off at the end of its line"},
		"two commas":     {strings.Replace(good, ",\n", ",,\n", 1), "is not JSON: syntax error in its line 2:"},
		"half of it":     {good[:len(good)/2], "is truncated JSON"},
		"a bracket":      {"{", "is truncated JSON"},
		"another object": {`{"key":` + good + `}`, "is nested inside another object"},
		"a list":         {"[" + good + "]", "is nested inside another object"},
		"a Secret": {asJSON(t, map[string]any{"kind": "Secret", "stringData": map[string]any{"serviceAccountKey": good}}),
			"is nested inside another object"},
		"its credentials alone": {asJSON(t, parsed.Credentials), `is only the "credentials" of a key: use`},
		"no credentials":        {`{"id":"` + id + `"}`, `has no "credentials": use`},
		"null":                  {"null", "is not the JSON that STACKIT issues for a key"},
		"nothing in it": {`{"id":"` + id + `","credentials":{"sub":"` + id + `","aud":"s3cr3t"}}`,
			"lacks credentials.iss, credentials.kid, credentials.privateKey: use the whole file"},
		"an id that is no UUID": {with(map[string]any{"id": "s3cr3t"}),
			"has a field that cannot be read: id and credentials.sub must be UUIDs"},
		"a date that is none":         {with(map[string]any{"validUntil": "s3cr3t"}), "createdAt and validUntil dates"},
		"credentials that are a text": {`{"credentials":"s3cr3t"}`, "has a value of the wrong type in credentials: use"},
		"without private key": {with(map[string]any{"privateKey": nil}),
			"lacks credentials.privateKey: use the whole file"},
		"without the user's own": {with(map[string]any{"privateKey": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.privateKey: you generated the key pair, so STACKIT does not have the private key; " +
				"add it to this field, in PEM form"},
		"without the user's own, and more": {
			with(map[string]any{"privateKey": nil, "kid": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.kid, credentials.privateKey: use the whole file"},
		"the user's own without kid": {with(map[string]any{"kid": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.kid: use the whole file"},
		"a private key that is a number": {with(map[string]any{"privateKey": 1}),
			"has a value of the wrong type in credentials.privateKey: use"},
		"a path for a private key":    {withPEM(`C:\keys\new.pem`), "cannot be used: must be an RSA key in PEM form"},
		"a private key that is empty": {withPEM(""), "lacks credentials.privateKey"},
		"line breaks escaped twice": {withPEM(strings.ReplaceAll(private, "\n", `\n`)),
			`escaped twice: must be \n in the JSON, not \\n`},
		"spaces for line breaks": {withPEM(strings.Join(lines, " ")), "is damaged PEM"},
		"no last line":           {withPEM(strings.Join(lines[:len(lines)-2], "\n")), "is damaged PEM"},
		"an encrypted private key": {pemOf("ENCRYPTED PRIVATE KEY", ""),
			"is encrypted: must be an RSA key in PEM form without a passphrase"},
		"one encrypted as of old": {pemOf("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,s3cr3t\n\n"),
			"is encrypted"},
		"a public key":              {pemOf("PUBLIC KEY", ""), "is PEM of another type: must be the RSA private key"},
		"a private key without PEM": {withPEM("s3cr3t"), "cannot be used: must be an RSA key in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: row.key})
			if !IsRefused(err) || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got %v, want a CredentialsError that says %q", err, row.says)
			}
			// The last one is Gardener's word for a login that failed.
			for _, secret := range []string{"s3cr3t", lines[1][:16], "invalid character"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v repeats %q", err, secret)
				}
			}
		})
	}
	if tokens := r.cloud.CallCounts()["Token"]; tokens != 0 {
		t.Errorf("%d tokens were asked for", tokens)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestALongKeyIsRefusedBeforeItIsParsed(t *testing.T) {
	for name, key := range map[string]string{"text": strings.Repeat("s3cr3t", 150_000),
		"brackets": strings.Repeat("[", 900_000)} {
		r := newRig(t)
		_, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key})
		if !IsRefused(err) || !strings.Contains(err.Error(), "has 900000 bytes: must have at most 16384") {
			t.Errorf("900 kB of %s: got %v, want a CredentialsError that names both lengths", name, err)
		}
	}
}

// A private key that is no RSA key is refused when it is read, one that cannot sign (its numbers belong
// to no key, or are too few bits for a signature) when it signs. Neither counts as a token endpoint that is down.
func TestAPrivateKeyThatCannotBeUsedIsRefused(t *testing.T) {
	small := func(bits int) []byte {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		return x509.MarshalPKCS1PrivateKey(key)
	}
	elliptic := func() []byte {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	t.Setenv("GODEBUG", "rsa1024min=0") // to make a key that is too small
	const notUsable, cannotSign = "cannot be used: must be an RSA key in PEM form", "cannot sign"
	for name, row := range map[string]struct {
		der  []byte
		says string
	}{
		"no DER": {[]byte("s3cr3t"), notUsable}, "an elliptic curve's": {elliptic(), notUsable},
		"512 bits": {small(512), cannotSign},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			key := withPrivateKey(t, r.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: row.der})))
			start := time.Now()
			session, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key})
			if err == nil {
				err = list(t.Context(), session)
			}
			if !IsRefused(err) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want a CredentialsError that says %q", err, row.says)
			}
			if took := time.Since(start); took > 0 {
				t.Errorf("it was tried again: it took %s", took)
			}
			if calls := r.cloud.CallCounts(); len(calls) > 0 {
				t.Errorf("there were calls: %v", calls)
			}
		})
	}
}

// withPrivateKey returns the service-account key with another private key.
func withPrivateKey(t *testing.T, key []byte, private string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(key, &fields); err != nil {
		t.Fatal(err)
	}
	fields["credentials"].(map[string]any)["privateKey"] = private
	return asJSON(t, fields)
}

// 200 rotations of a key kept its text 200 times for an hour.
func TestNoTextOfAKeyIsKept(t *testing.T) {
	r := newRig(t)
	r.session()
	before := heapInUse()
	for i := range 200 {
		key := string(r.key) + strings.Repeat(" ", maxKey-len(r.key)-i)
		if _, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heapInUse()) - int64(before); grown > 2<<20 {
		t.Errorf("200 keys take %d KiB", grown>>10)
	}
	runtime.KeepAlive(r)
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Whatever a Secret holds in place of a key is refused, and nothing panics.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		`{"credentials":{"iss":"a@b","kid":"c","privateKey":"-----BEGIN PRIVATE KEY-----\\n"}}`, "{\"a\":1,\n}", "[[",
		"{\"a\":\"\n\"}", "\xff\xfe{\x00", "\ufeff{}", `"{}"`, "e30=", "C:\\a", "ey.a.b", "credentials:",
		"-----BEGIN", "{}{}", " ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := parseKey(text); err == nil {
			if err := checkPEM(privateKey(key)); err != nil && !IsRefused(err) {
				t.Error(err)
			}
		} else if !IsRefused(err) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("got %v, want a CredentialsError of one line", err)
		}
		_ = checkPEM(text)
	})
}
