// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfigFromEnvironment(t *testing.T) {
	type env map[string]string
	for name, row := range map[string]struct {
		env  env
		want Config
		err  string
	}{
		"nothing":              {env{}, Config{}, ""},
		"API endpoint":         {env{EnvAPIEndpoint: "https://a"}, Config{Endpoint: "https://a"}, ""},
		"Gardener's name":      {env{EnvIaaSEndpoint: "https://a", EnvTokenURL: "https://t/x"}, Config{Endpoint: "https://a", TokenURL: "https://t/x"}, ""},
		"both and equal":       {env{EnvAPIEndpoint: "https://a", EnvIaaSEndpoint: "https://a"}, Config{Endpoint: "https://a"}, ""},
		"both and different":   {env{EnvAPIEndpoint: "https://a", EnvIaaSEndpoint: "https://b"}, Config{}, EnvIaaSEndpoint},
		"trailing slash":       {env{EnvAPIEndpoint: "https://a/", EnvIaaSEndpoint: "https://a"}, Config{Endpoint: "https://a"}, ""},
		"with a password":      {env{EnvIaaSEndpoint: "https://u:s3cr3t@a"}, Config{}, EnvIaaSEndpoint},
		"with a query":         {env{EnvTokenURL: "https://a?b=c"}, Config{}, EnvTokenURL},
		"no URL":               {env{EnvIaaSEndpoint: "iaas.example"}, Config{}, EnvIaaSEndpoint},
		"token URL no URL":     {env{EnvTokenURL: "token"}, Config{}, EnvTokenURL},
		"no auth":              {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "true"}, Config{Endpoint: "http://a", NoAuth: true}, ""},
		"no auth at the cloud": {env{EnvNoAuth: "true"}, Config{}, EnvAPIEndpoint},
		"no auth switched off": {env{EnvNoAuth: "false"}, Config{}, ""},
		"no auth misspelt":     {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "yes"}, Config{}, EnvNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ConfigFromEnvironment(func(name string) (string, bool) { value, ok := row.env[name]; return value, ok })
			if row.err == "" && err != nil || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
				t.Fatalf("error is %v, want one that names %q", err, row.err)
			}
			if err == nil && got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestTokenEndpoint(t *testing.T) {
	for name, row := range map[string]struct {
		configured, fromKey, want string
		refused                   bool
	}{
		"default":                {"", "", defaultTokenURL, false},
		"configured beats key":   {"http://127.0.0.1/token", "https://evil.example/token", "http://127.0.0.1/token", false},
		"the key's, STACKIT":     {"", "https://accounts.stackit.cloud/token", "https://accounts.stackit.cloud/token", false},
		"the key's, elsewhere":   {"", "https://evil.example/token", "", true},
		"the key's, lookalike":   {"", "https://evilstackit.cloud/token", "", true},
		"the key's, not https":   {"", "http://accounts.stackit.cloud/token", "", true},
		"the key's, hidden host": {"", "https://a.stackit.cloud@evil.example/token", "", true},
		"the key's, user info":   {"", "https://user@a.stackit.cloud/token", "", true},
		"the key's, no URL":      {"", "://", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tokenEndpoint(row.configured, row.fromKey)
			if got != row.want || (err != nil) != row.refused || (row.refused && !strings.Contains(err.Error(), EnvTokenURL)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestParseKeyRefusesWhatCannotWork(t *testing.T) {
	for name, row := range map[string]struct{ key, says string }{
		"nothing":        {"", "missing"},
		"no JSON":        {"s3cr3t", "not the JSON"},
		"no credentials": {`{"id":"d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"}`, `no "credentials"`},
		"nothing in it": {`{"id":"d61a8564-c8dd-4ffb-bc15-143e7d0c85ed","credentials":{"sub":"d61a8564-c8dd-4ffb-bc15-143e7d0c85ed","aud":"s3cr3t"}}`,
			"credentials.iss, credentials.kid, credentials.privateKey"},
		"id no UUID": {`{"id":"s3cr3t"}`, "not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseKey(row.key)
			if !IsRefused(err) || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v, want a CredentialsError that says %q and shows nothing of the key", err, row.says)
			}
		})
	}
}

func TestInspectKey(t *testing.T) {
	const required = `"credentials": {"iss": "a@b", "kid": "c", "sub": "00000000-0000-4000-8000-000000000002", "privateKey": "d"}`
	created, end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		key  string
		want Key
	}{
		"all fields": {`{"id": "00000000-0000-4000-8000-000000000001", "createdAt": "2026-01-02T03:04:05Z", "validUntil": "2027-01-02T03:04:05Z", "active": true, ` + required + `}`,
			Key{ID: "00000000-0000-4000-8000-000000000001", CreatedAt: created, ValidUntil: end}},
		"inactive":                      {`{"active": false, ` + required + `}`, Key{Inactive: true}},
		"no field that is not required": {`{` + required + `}`, Key{}},
		"null fields":                   {`{"validUntil": null, "active": null, ` + required + `}`, Key{}},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Issuer, row.want.TokenEndpoint = "a@b", defaultTokenURL
			if row.want.ID == "" {
				row.want.ID = "00000000-0000-0000-0000-000000000000"
			}
			got, err := Config{}.InspectKey(row.key)
			if err != nil {
				t.Fatal(err)
			}
			if *got != row.want {
				t.Errorf("got %+v, want %+v", *got, row.want)
			}
		})
	}
	var refused *CredentialsError
	if _, err := (Config{}).InspectKey("null"); !errors.As(err, &refused) {
		t.Errorf("got %v, want a CredentialsError", err)
	}
}
