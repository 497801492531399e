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
		"workload identities":  {env{EnvIdentityURL: "https://idp/x"}, Config{IdentityURL: "https://idp/x"}, ""},
		"http for identities":  {env{EnvIdentityURL: "http://idp/x"}, Config{}, EnvIdentityURL + " is an http URL, must be https"},
		"no auth":              {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "true"}, Config{Endpoint: "http://a", NoAuth: true}, ""},
		"no auth at the cloud": {env{EnvNoAuth: "true"}, Config{}, EnvAPIEndpoint},
		"no auth switched off": {env{EnvNoAuth: "false"}, Config{}, ""},
		"http":                 {env{EnvIaaSEndpoint: "http://iaas.example"}, Config{}, EnvIaaSEndpoint + " is an http URL, must be https"},
		"http for tokens":      {env{EnvTokenURL: "http://10.0.0.1/token"}, Config{}, EnvTokenURL + " is an http URL, must be https"},
		"http, lookalike":      {env{EnvAPIEndpoint: "http://127.0.0.1.example"}, Config{}, EnvNoAuth + "=true"},
		"http without auth": {env{EnvAPIEndpoint: "http://a", EnvTokenURL: "http://a/token", EnvNoAuth: "true"},
			Config{Endpoint: "http://a", TokenURL: "http://a/token", NoAuth: true}, ""},
		"http on 127.0.0.0/8": {env{EnvAPIEndpoint: "http://127.8.9.1:80"}, Config{Endpoint: "http://127.8.9.1:80"}, ""},
		"http on ::1":         {env{EnvAPIEndpoint: "http://[::1]:80"}, Config{Endpoint: "http://[::1]:80"}, ""},
		"http on localhost":   {env{EnvTokenURL: "http://localhost:80/x"}, Config{TokenURL: "http://localhost:80/x"}, ""},
		"no auth misspelt":    {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "yes"}, Config{}, EnvNoAuth},
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
	const own = "https://service-account.api.stackit.cloud/token"
	const another = "https://service-account.api.qa.stackit.cloud"
	for name, row := range map[string]struct {
		config   Config
		fromKey  string
		accepted string
	}{
		"none":                         {Config{}, "", own},
		"configured beats the key's":   {Config{TokenURL: "http://127.0.0.1/token"}, "https://evil.example/token", "http://127.0.0.1/token"},
		"STACKIT's":                    {Config{}, own, own},
		"in upper case":                {Config{}, "https://Service-Account.API.stackit.cloud/token", ""},
		"another landscape":            {Config{}, another + ":443/token", another + "/token"},
		"a host of the flag":           {Config{TokenHosts: "a.example"}, "https://a.example/token", "https://a.example/token"},
		"STACKIT's, not of the flag":   {Config{TokenHosts: "a.example"}, own, ""},
		"a customer's host":            {Config{}, "https://app.runs.stackit.cloud/token", ""},
		"any host below STACKIT's":     {Config{}, "https://accounts.stackit.cloud/token", ""},
		"two labels":                   {Config{}, "https://service-account.api.a.b.stackit.cloud/token", ""},
		"two labels, for browsers":     {Config{}, "https://service-account.api.a。b.stackit.cloud/token", ""},
		"no label":                     {Config{}, "https://service-account.api..stackit.cloud/token", ""},
		"a host that ends with a dot":  {Config{}, "https://service-account.api.stackit.cloud./token", ""},
		"another domain, for browsers": {Config{}, "https://service-account.api.stack\u0130t.cloud/token", ""},
		"a sign that means a k":        {Config{}, "https://service-account.api.stac\u212ait.cloud/token", ""},
		"elsewhere":                    {Config{}, "https://evil.example/token", ""},
		"lookalike":                    {Config{}, "https://evilservice-account.api.stackit.cloud/token", ""},
		"not https":                    {Config{}, "http://service-account.api.stackit.cloud/token", ""},
		"another port":                 {Config{}, "https://service-account.api.stackit.cloud:8443/token", ""},
		"another path":                 {Config{}, "https://service-account.api.stackit.cloud/v2/projects", ""},
		"another path, encoded":        {Config{}, "https://service-account.api.stackit.cloud/%74oken", ""},
		"a line break":                 {Config{}, own + "\n", ""},
		"a query":                      {Config{}, "https://service-account.api.stackit.cloud/token?a=b", ""},
		"an empty query":               {Config{}, "https://service-account.api.stackit.cloud/token?", ""},
		"a fragment":                   {Config{}, "https://service-account.api.stackit.cloud/token#a", ""},
		"hidden host":                  {Config{}, "https://service-account.api.stackit.cloud@evil.example/token", ""},
		"user info":                    {Config{}, "https://user@service-account.api.stackit.cloud/token", ""},
		"no URL":                       {Config{}, "://", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.config.tokenEndpoint(row.fromKey)
			if got != row.accepted || (err == nil) != (row.accepted != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err == nil {
				return
			}
			for _, says := range []string{"credentials.tokenEndpoint", "https://<host>/token", EnvTokenURL, "--" + FlagTokenHosts} {
				if !IsRefused(err) || !strings.Contains(err.Error(), says) {
					t.Errorf("%v, want a CredentialsError that names %s", err, says)
				}
			}
		})
	}
}

func TestCheckTokenHosts(t *testing.T) {
	for hosts, ok := range map[string]bool{
		DefaultTokenHosts: true, "localhost": true, "a-1.*.example": true,
		"": false, "https://a.example": false, "a.example:443": false, "a.example/token": false, "A.example": false, "a*.example": false, "a..b": false,
	} {
		if err := CheckTokenHosts(hosts); (err == nil) != ok {
			t.Errorf("%q: %v, want ok=%t", hosts, err, ok)
		}
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
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		key  string
		want Key
	}{
		"all fields": {`{"id": "00000000-0000-4000-8000-000000000001", "createdAt": "2026-01-02T03:04:05Z", ` +
			`"validUntil": "2027-01-02T03:04:05Z", "active": true, ` + required + `}`,
			Key{ID: "00000000-0000-4000-8000-000000000001", ValidUntil: end}},
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
