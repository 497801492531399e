// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"strings"
	"testing"
)

func TestConfigFromEnvironment(t *testing.T) {
	type env map[string]string
	for name, row := range map[string]struct {
		env  env
		want Config
		err  string
	}{
		"nothing":      {env{}, Config{}, ""},
		"API endpoint": {env{EnvAPIEndpoint: "https://a"}, Config{Endpoint: "https://a"}, ""},
		"Gardener's name": {env{EnvIaaSEndpoint: "https://a", EnvTokenURL: "https://t/x"},
			Config{Endpoint: "https://a", TokenURL: "https://t/x"}, ""},
		"both names": {env{EnvAPIEndpoint: "https://a", EnvIaaSEndpoint: "https://b"}, Config{Endpoint: "https://a"}, ""},
		"trailing slash": {env{EnvAPIEndpoint: "https://a/", EnvIaaSEndpoint: "https://a"},
			Config{Endpoint: "https://a"}, ""},
		"with a password":     {env{EnvIaaSEndpoint: "https://u:s3cr3t@a"}, Config{}, EnvIaaSEndpoint},
		"no URL":              {env{EnvIaaSEndpoint: "iaas.example"}, Config{}, EnvIaaSEndpoint},
		"workload identities": {env{EnvIdentityURL: "https://idp/x"}, Config{IdentityURL: "https://idp/x"}, ""},
		"no auth": {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "true"},
			Config{Endpoint: "http://a", NoAuth: true}, ""},
		"no auth at the cloud": {env{EnvNoAuth: "true"}, Config{}, EnvAPIEndpoint},
		"http": {env{EnvIaaSEndpoint: "http://iaas.example"}, Config{},
			EnvIaaSEndpoint + " is an http URL: must be https"},
		"http for tokens": {env{EnvTokenURL: "http://10.0.0.1/token"}, Config{},
			EnvTokenURL + " is an http URL: must be https"},
		"http without auth": {env{EnvAPIEndpoint: "http://a", EnvTokenURL: "http://a/token", EnvNoAuth: "true"},
			Config{Endpoint: "http://a", TokenURL: "http://a/token", NoAuth: true}, ""},
		"http on 127.0.0.0/8": {env{EnvAPIEndpoint: "http://127.8.9.1:80"}, Config{Endpoint: "http://127.8.9.1:80"}, ""},
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
	const (
		own  = "https://service-account.api.stackit.cloud/token"
		of26 = "https://accounts.stackit.cloud/oauth/v2/token"

		landscape = "https://service-account.api.eu01.qa.stackit.cloud/token"
	)
	for name, row := range map[string]struct {
		config   Config
		fromKey  string
		accepted string
	}{
		"none": {Config{}, "", own},
		"configured beats the key's": {Config{TokenURL: "http://127.0.0.1/token"}, "https://evil.example/token",
			"http://127.0.0.1/token"},
		"of 2025":                     {Config{}, own, own},
		"of 2026":                     {Config{}, of26, of26},
		"another landscape":           {Config{}, landscape, landscape},
		"elsewhere":                   {Config{}, "https://evil.example/oauth/v2/token", ""},
		"the domain itself":           {Config{}, "https://stackit.cloud/oauth/v2/token", ""},
		"lookalike":                   {Config{}, "https://accountsstackit.cloud/", ""},
		"another domain behind":       {Config{}, "https://accounts.stackit.cloud.evil.example/", ""},
		"in upper case":               {Config{}, "https://Accounts.stackit.cloud/", ""},
		"a host that ends with a dot": {Config{}, "https://accounts.stackit.cloud./", ""},
		"not https":                   {Config{}, "http://accounts.stackit.cloud/", ""},
		"no host":                     {Config{}, "https:///oauth/v2/token", ""},
		"another port":                {Config{}, "https://accounts.stackit.cloud:8443/", ""},
		"an address":                  {Config{}, "https://192.0.2.1/", ""},
		"a query":                     {Config{}, of26 + "?a=b", ""},
		"a fragment":                  {Config{}, of26 + "#a", ""},
		"user info":                   {Config{}, "https://user@accounts.stackit.cloud/", ""},
		"a hidden host":               {Config{}, "https://accounts.stackit.cloud@evil.example/", ""},
		"a host behind a backslash":   {Config{}, `https://evil.example\@accounts.stackit.cloud/`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.config.tokenEndpoint(row.fromKey)
			if got != row.accepted || (err == nil) != (row.accepted != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err == nil {
				return
			}
			for _, says := range []string{"credentials.tokenEndpoint", "below stackit.cloud", EnvTokenURL} {
				if !IsRefused(err) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "evil") {
					t.Errorf("%v, want a CredentialsError that names %s and nothing of the key", err, says)
				}
			}
		})
	}
}
