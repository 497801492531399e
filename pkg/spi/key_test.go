// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
)

// The decoder's words, with a hint for base64 and for a path. No error repeats anything of the key.
func TestWhatIsNoKeyIsRefused(t *testing.T) {
	r := newRig(t)
	good := string(r.key)
	parsed, err := parseKey(good)
	if err != nil {
		t.Fatal(err)
	}
	private := *parsed.Credentials.PrivateKey
	const notIssued = "is not the JSON that STACKIT issues for a key: "
	for name, row := range map[string]struct{ key, says string }{
		"another text":          {"s3cr3t", notIssued + "unexpected character 's' looking for beginning of value (at"},
		"the PEM":               {private, notIssued + "unexpected character"},
		"base64":                {base64.StdEncoding.EncodeToString(r.key), "is encoded in base64: use the JSON itself"},
		"base64 of bytes":       {base64.StdEncoding.EncodeToString([]byte("s3cr3t\x00")), notIssued},
		"a path":                {"/path/to/key", "is the path of a file: use the file's content"},
		"a path of home":        {"~/sa-key", "is the path of a file"},
		"a file's name":         {"sa-key-2026.json\n", "is the path of a file"},
		"half of it":            {good[:len(good)/2], notIssued + "unexpected end of JSON input"},
		"a trailing comma":      {strings.TrimSuffix(good, "\n}") + ",\n}", "looking for beginning of object key string"},
		"a list":                {"[" + good + "]", notIssued + "cannot unmarshal array: use"},
		"a number":              {"7357.1", notIssued + "cannot unmarshal number: use"},
		"no credentials":        {`{"id":"` + testServer + `"}`, notIssued + `it has no "credentials": use`},
		"another type":          {`{"credentials":{"iss":7357.1}}`, notIssued + "cannot unmarshal number credentials.iss"},
		"an id that is no UUID": {`{"id":"s3cr3t"}`, notIssued + "id and credentials.sub must be UUIDs"},
		"a date that is none":   {`{"validUntil":"s3cr3t"}`, "validUntil a date"},
		"nothing in it": {`{"credentials":{"aud":"s3cr3t"}}`,
			"lacks credentials.iss, credentials.kid, credentials.privateKey: use the whole file"},
		"a private key that is empty": {withPrivateKey(t, r.key, ""), "lacks credentials.privateKey: use the whole file"},
		"a path for a private key":    {withPrivateKey(t, r.key, "/s3cr3t.pem"), "must be an RSA key in PEM form"},
		"a key of an elliptic curve":  {withPrivateKey(t, r.key, ellipticKey(t)), "must be an RSA key in PEM form"},
		"blanks in the PEM":           {withPrivateKey(t, r.key, strings.ReplaceAll(private, "\n", " ")), "an RSA key"},
		"900 kB of text":              {strings.Repeat("s3cr3t", 150_000), "has 900000 bytes: must have at most 16384"},
		"900 kB of brackets":          {strings.Repeat("[", 900_000), "has 900000 bytes: must have at most 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: row.key})
			if !IsRefused(err) || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got %v, want a CredentialsError that says %q", err, row.says)
			}
			// The last one is Gardener's word for a login that failed.
			for _, secret := range []string{"s3cr3t", "7357", strings.Split(private, "\n")[1][:16], "invalid character"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v repeats %q", err, secret)
				}
			}
		})
	}
}

// ellipticKey returns a private key that is no RSA key, in PEM form.
func ellipticKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// withPrivateKey returns the service-account key with another private key.
func withPrivateKey(t *testing.T, key []byte, private string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(key, &fields); err != nil {
		t.Fatal(err)
	}
	fields["credentials"].(map[string]any)["privateKey"] = private
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whatever a Secret holds in place of a key is refused, and nothing panics.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		`{"credentials":{"iss":"a@b","kid":"c","privateKey":"-----BEGIN PRIVATE KEY-----\\n"}}`, "{\"a\":1,\n}", "[[",
		"\xff\xfe{\x00", `"{}"`, "e30=", "/a", "{}{}", " ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, err := keyExchange(Config{}, text)
		if err != nil && (!IsRefused(err) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) {
			t.Errorf("got %v, want a CredentialsError of one line", err)
		}
	})
}
