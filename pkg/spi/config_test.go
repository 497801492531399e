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
		"nothing":      {env{}, Config{}, ""},
		"API endpoint": {env{EnvAPIEndpoint: "https://a"}, Config{Endpoint: "https://a"}, ""},
		"Gardener's name": {env{EnvIaaSEndpoint: "https://a", EnvTokenURL: "https://t/x"},
			Config{Endpoint: "https://a", TokenURL: "https://t/x"}, ""},
		"both and equal": {env{EnvAPIEndpoint: "https://a", EnvIaaSEndpoint: "https://a"},
			Config{Endpoint: "https://a"}, ""},
		"both and different": {env{EnvAPIEndpoint: "https://a", EnvIaaSEndpoint: "https://b"}, Config{}, EnvIaaSEndpoint},
		"trailing slash": {env{EnvAPIEndpoint: "https://a/", EnvIaaSEndpoint: "https://a"},
			Config{Endpoint: "https://a"}, ""},
		"with a password":     {env{EnvIaaSEndpoint: "https://u:s3cr3t@a"}, Config{}, EnvIaaSEndpoint},
		"with a query":        {env{EnvTokenURL: "https://a?b=c"}, Config{}, EnvTokenURL},
		"with a space":        {env{EnvIaaSEndpoint: "https://a/ "}, Config{}, EnvIaaSEndpoint},
		"no host":             {env{EnvIaaSEndpoint: "https://:443"}, Config{}, EnvIaaSEndpoint},
		"no URL":              {env{EnvIaaSEndpoint: "iaas.example"}, Config{}, EnvIaaSEndpoint},
		"token URL no URL":    {env{EnvTokenURL: "token"}, Config{}, EnvTokenURL},
		"workload identities": {env{EnvIdentityURL: "https://idp/x"}, Config{IdentityURL: "https://idp/x"}, ""},
		"http for identities": {env{EnvIdentityURL: "http://idp/x"}, Config{},
			EnvIdentityURL + " is an http URL: must be https"},
		"no auth": {env{EnvAPIEndpoint: "http://a", EnvNoAuth: "true"},
			Config{Endpoint: "http://a", NoAuth: true}, ""},
		"no auth at the cloud": {env{EnvNoAuth: "true"}, Config{}, EnvAPIEndpoint},
		"no auth switched off": {env{EnvNoAuth: "false"}, Config{}, ""},
		"http": {env{EnvIaaSEndpoint: "http://iaas.example"}, Config{},
			EnvIaaSEndpoint + " is an http URL: must be https"},
		"http for tokens": {env{EnvTokenURL: "http://10.0.0.1/token"}, Config{},
			EnvTokenURL + " is an http URL: must be https"},
		"http, lookalike": {env{EnvAPIEndpoint: "http://127.0.0.1.example"}, Config{}, EnvNoAuth + "=true"},
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
	const (
		own  = "https://service-account.api.stackit.cloud/token"
		of26 = "https://accounts.stackit.cloud/oauth/v2/token"
		flag = "a.example,b.*.example"

		landscape = "https://service-account.api.eu01.qa.stackit.cloud/token"
		foundry   = "https://sa-prod.apps.01.cf.eu01.stackit.cloud/token"
	)
	label := strings.Repeat("a", 63)
	for name, row := range map[string]struct {
		config   Config
		fromKey  string
		accepted string
	}{
		"none": {Config{}, "", own},
		"configured beats the key's": {Config{TokenURL: "http://127.0.0.1/token"}, "https://evil.example/token",
			"http://127.0.0.1/token"},
		"of 2025":              {Config{}, own, own},
		"of 2026":              {Config{}, of26, of26},
		"with the port":        {Config{}, "https://accounts.stackit.cloud:443/oauth/v2/token", of26},
		"another landscape":    {Config{}, landscape, landscape},
		"a Cloud Foundry host": {Config{}, foundry, foundry},
		"no path":              {Config{}, "https://accounts.stackit.cloud", "https://accounts.stackit.cloud"},
		"another path": {Config{}, "https://accounts.stackit.cloud/a/%2F/b@c:1",
			"https://accounts.stackit.cloud/a/%2F/b@c:1"},
		"a path with two slashes": {Config{}, "https://accounts.stackit.cloud//evil.example/a",
			"https://accounts.stackit.cloud//evil.example/a"},
		"in punycode": {Config{}, "https://xn--bcher-kva.stackit.cloud/",
			"https://xn--bcher-kva.stackit.cloud/"},
		"the scheme in upper case": {Config{}, "HTTPS://accounts.stackit.cloud/oauth/v2/token", of26},
		"a label of 63 letters": {Config{}, "https://" + label + ".stackit.cloud/",
			"https://" + label + ".stackit.cloud/"},
		"of the flag":                 {Config{TokenHosts: flag}, "https://a.example/token", "https://a.example/token"},
		"of a * of the flag":          {Config{TokenHosts: flag}, "https://b.eu.example:443/x/y", "https://b.eu.example/x/y"},
		"STACKIT's beside the flag":   {Config{TokenHosts: flag}, of26, of26},
		"old and beside the flag":     {Config{TokenHosts: "service-account.api.stackit.cloud"}, of26, of26},
		"one label for two of a *":    {Config{TokenHosts: flag}, "https://b.c.eu.example/", ""},
		"no label for a *":            {Config{TokenHosts: flag}, "https://b..example/", ""},
		"64 letters for a *":          {Config{TokenHosts: flag}, "https://b." + label + "a.example/", ""},
		"below a host of the flag":    {Config{TokenHosts: flag}, "https://c.a.example/", ""},
		"a dot of the flag is one":    {Config{TokenHosts: flag}, "https://aaexample/", ""},
		"another port of the flag's":  {Config{TokenHosts: flag}, "https://a.example:8443/", ""},
		"http of the flag's":          {Config{TokenHosts: flag}, "http://a.example/", ""},
		"elsewhere":                   {Config{}, "https://evil.example/oauth/v2/token", ""},
		"the domain itself":           {Config{}, "https://stackit.cloud/oauth/v2/token", ""},
		"lookalike":                   {Config{}, "https://accountsstackit.cloud/", ""},
		"another domain behind":       {Config{}, "https://accounts.stackit.cloud.evil.example/", ""},
		"another top level":           {Config{}, "https://accounts.stackit.cloudy/", ""},
		"a dot that is no dot":        {Config{}, "https://accounts.stackitacloud/", ""},
		"in upper case":               {Config{}, "https://Accounts.stackit.cloud/", ""},
		"the domain in upper case":    {Config{}, "https://accounts.STACKIT.cloud/", ""},
		"a host that ends with a dot": {Config{}, "https://accounts.stackit.cloud./", ""},
		"no label":                    {Config{}, "https://.stackit.cloud/", ""},
		"an empty label":              {Config{}, "https://accounts..stackit.cloud/", ""},
		"a label of 64 letters":       {Config{}, "https://" + label + "a.stackit.cloud/", ""},
		"a name of 254 letters":       {Config{}, "https://aa" + strings.Repeat(".a", 119) + ".stackit.cloud/", ""},
		"a name of 253 letters": {Config{}, "https://a" + strings.Repeat(".a", 119) + ".stackit.cloud/",
			"https://a" + strings.Repeat(".a", 119) + ".stackit.cloud/"},
		"a full stop for browsers":     {Config{}, "https://accounts\u3002stackit.cloud/", ""},
		"another domain, for browsers": {Config{}, "https://accounts.stack\u0130t.cloud/", ""},
		"a sign that means a k":        {Config{}, "https://accounts.stac\u212ait.cloud/", ""},
		"a soft hyphen":                {Config{}, "https://accounts.stackit\u00ad.cloud/", ""},
		"an underscore":                {Config{}, "https://a_b.stackit.cloud/", ""},
		"not https":                    {Config{}, "http://accounts.stackit.cloud/", ""},
		"no scheme":                    {Config{}, "accounts.stackit.cloud/oauth/v2/token", ""},
		"no host":                      {Config{}, "https:///oauth/v2/token", ""},
		"no slashes":                   {Config{}, "https:accounts.stackit.cloud/oauth/v2/token", ""},
		"slashes alone":                {Config{}, "//accounts.stackit.cloud/oauth/v2/token", ""},
		"another port":                 {Config{}, "https://accounts.stackit.cloud:8443/", ""},
		"no port behind the colon":     {Config{}, "https://accounts.stackit.cloud:/", ""},
		"two ports":                    {Config{}, "https://accounts.stackit.cloud:443:443/", ""},
		"a port with a zero":           {Config{}, "https://accounts.stackit.cloud:0443/", ""},
		"an encoded port":              {Config{}, "https://accounts.stackit.cloud%3A443/", ""},
		"an address":                   {Config{}, "https://192.0.2.1/", ""},
		"an IPv6 address":              {Config{}, "https://[2001:db8::1]/", ""},
		"a zone of an IPv6 address":    {Config{}, "https://[fe80::1%25a.stackit.cloud]/", ""},
		"brackets":                     {Config{}, "https://[accounts.stackit.cloud]/", ""},
		"a line break":                 {Config{}, of26 + "\n", ""},
		"a space":                      {Config{}, " " + of26, ""},
		"a query":                      {Config{}, of26 + "?a=b", ""},
		"an empty query":               {Config{}, of26 + "?", ""},
		"a fragment":                   {Config{}, of26 + "#a", ""},
		"an empty fragment":            {Config{}, of26 + "#", ""},
		"user info":                    {Config{}, "https://user@accounts.stackit.cloud/", ""},
		"empty user info":              {Config{}, "https://@accounts.stackit.cloud/", ""},
		"a hidden host":                {Config{}, "https://accounts.stackit.cloud@evil.example/", ""},
		"a hidden host, with a port":   {Config{}, "https://accounts.stackit.cloud:443@evil.example/", ""},
		"a host behind a backslash":    {Config{}, `https://evil.example\@accounts.stackit.cloud/`, ""},
		"a backslash for a slash":      {Config{}, `https://evil.example\.stackit.cloud/`, ""},
		"backslashes for slashes":      {Config{}, `https:\\accounts.stackit.cloud/`, ""},
		"an encoded slash in the host": {Config{}, "https://evil.example%2F.stackit.cloud/", ""},
		"an encoded host":              {Config{}, "https://%61ccounts.stackit.cloud/", ""},
		"an encoded NUL":               {Config{}, "https://evil.example%00.stackit.cloud/", ""},
		"no URL":                       {Config{}, "://", ""},
		"a blank":                      {Config{}, " ", ""},
		"an empty list of the flag":    {Config{TokenHosts: ","}, "https:///token", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.config.tokenEndpoint(row.fromKey)
			if got != row.accepted || (err == nil) != (row.accepted != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err == nil {
				return
			}
			for _, says := range []string{"credentials.tokenEndpoint", "below stackit.cloud", EnvTokenURL,
				"--" + FlagTokenHosts} {
				if !IsRefused(err) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "evil") {
					t.Errorf("%v, want a CredentialsError that names %s and nothing of the key", err, says)
				}
			}
		})
	}
}

func TestCheckTokenHosts(t *testing.T) {
	label := strings.Repeat("a", 63)
	for hosts, ok := range map[string]bool{
		"": true, "localhost": true, "a-1.*.example": true, "*": true, label + ".example": true,
		// The default before every host below stackit.cloud counted.
		"service-account.api.stackit.cloud,service-account.api.*.stackit.cloud": true,
		"https://a.example": false, "a.example:443": false, "a.example/token": false, "A.example": false, "a*.example": false,
		"a..b":       false,
		"a.example,": false, "a.example, b.example": false, label + "a.example": false,
	} {
		if err := CheckTokenHosts(hosts); (err == nil) != ok {
			t.Errorf("%q: %v, want ok=%t", hosts, err, ok)
		}
	}
}

func TestInspectKey(t *testing.T) {
	const (
		required = `"credentials": {"iss": "a@b", "kid": "c", ` +
			`"sub": "00000000-0000-4000-8000-000000000002", "privateKey": "d"}`
		project = "00000000-0000-4000-8000-000000000003"
	)
	end := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		key  string
		want Key
	}{
		"all fields": {`{"id": "00000000-0000-4000-8000-000000000001", "createdAt": "2026-01-02T03:04:05Z", ` +
			`"validUntil": "2027-01-02T03:04:05Z", "active": true, ` + required + `}`,
			Key{ID: "00000000-0000-4000-8000-000000000001", ValidUntil: end}},
		"with a project":                {`{"projectId": "` + project + `", ` + required + `}`, Key{ProjectID: project}},
		"with no text as project":       {`{"projectId": 1, "active": false, ` + required + `}`, Key{Inactive: true}},
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
