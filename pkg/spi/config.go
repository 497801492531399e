// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// DefaultEndpoint is the URL of the IaaS API, unless the environment overrides it.
const DefaultEndpoint = "https://iaas.api.stackit.cloud"

// defaultTokenURL is the token endpoint, unless the key or the environment overrides it. Keys from
// before 2026 name it, or none.
const defaultTokenURL = "https://service-account.api.stackit.cloud/token"

// defaultIdentityURL is the endpoint that exchanges the tokens of workload identities for access
// tokens, unless the environment overrides it.
const defaultIdentityURL = "https://accounts.stackit.cloud/oauth/v2/token"

// Environment variables that ConfigFromEnvironment reads.
const (
	// EnvAPIEndpoint and EnvIaaSEndpoint both override the URL of the IaaS API; EnvAPIEndpoint wins.
	// Gardener sets EnvIaaSEndpoint.
	EnvAPIEndpoint  = "STACKIT_API_ENDPOINT"
	EnvIaaSEndpoint = "STACKIT_IAAS_ENDPOINT"
	// EnvTokenURL overrides the URL of the token endpoint for service-account keys, including the URL
	// in a key.
	EnvTokenURL = "STACKIT_TOKEN_BASEURL"
	// EnvIdentityURL overrides the URL of the token endpoint for workload identities.
	EnvIdentityURL = "STACKIT_IDP_TOKEN_ENDPOINT"
	// EnvNoAuth disables authentication if it is true, for a local mock. It requires EnvAPIEndpoint or
	// EnvIaaSEndpoint.
	EnvNoAuth = "STACKIT_NO_AUTH"
)

// Config holds the URLs of the API and the token endpoints, and the settings of authentication.
type Config struct {
	// Endpoint is the base URL of the IaaS API; "" means DefaultEndpoint.
	Endpoint string
	// TokenURL is the URL of the token endpoint. "" means the URL in the key, whose host must be
	// below stackit.cloud; for a key without a URL it means STACKIT's default.
	TokenURL string
	// IdentityURL is the URL of the endpoint that exchanges the tokens of workload identities for
	// access tokens; "" means STACKIT's.
	IdentityURL string
	// NoAuth disables authentication: requests carry no credentials.
	NoAuth bool
}

// ConfigFromEnvironment reads the configuration from the environment, through lookup
// (os.LookupEnv). The error gives the variable, the problem and the valid values.
func ConfigFromEnvironment(lookup func(string) (string, bool)) (Config, error) {
	get := func(name string) string { value, _ := lookup(name); return value }
	name := EnvAPIEndpoint
	if get(name) == "" {
		name = EnvIaaSEndpoint
	}
	// The SDK appends paths that begin with a slash.
	endpoint := strings.TrimRight(get(name), "/")
	config := Config{Endpoint: endpoint, TokenURL: get(EnvTokenURL), IdentityURL: get(EnvIdentityURL),
		NoAuth: get(EnvNoAuth) == "true"}
	if config.NoAuth && config.Endpoint == "" {
		return Config{}, fmt.Errorf("%s=true is for a local mock: set the mock's URL in %s or %s",
			EnvNoAuth, EnvAPIEndpoint, EnvIaaSEndpoint)
	}
	return config, cmp.Or(checkURL(name, config.Endpoint, config.NoAuth),
		checkURL(EnvTokenURL, config.TokenURL, config.NoAuth), checkURL(EnvIdentityURL, config.IdentityURL, config.NoAuth))
}

// checkURL refuses http URLs, except for a mock or the local host: a token or user data could be
// read on the way.
func checkURL(name, value string, noAuth bool) error {
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" ||
		strings.Contains(value, " ") || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("%s must be an http or https URL such as %s, "+
			"without user, query, fragment and spaces", name, DefaultEndpoint)
	}
	if parsed.Scheme == "http" && !noAuth && !isLoopback(parsed.Hostname()) {
		return fmt.Errorf("%s is an http URL: must be https, unless the host is 127.0.0.1, ::1 or localhost, "+
			"or %s=true is set for a mock on another host", name, EnvNoAuth)
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// tokenEndpoint returns the URL to which the signed assertion is sent: TokenURL, else the key's
// own. STACKIT's keys name accounts.stackit.cloud/oauth/v2/token since 2026, older ones
// service-account.api.stackit.cloud/token: an exact list refused the new ones. Hosts below
// stackit.cloud include customers' applications: a tenant gains nothing there from an assertion
// signed by its own key.
func (c Config) tokenEndpoint(fromKey string) (string, error) {
	if c.TokenURL != "" {
		return c.TokenURL, nil
	}
	if fromKey == "" {
		return defaultTokenURL, nil
	}
	endpoint, err := url.Parse(fromKey) // as net/http does, which sends the request
	if err != nil || endpoint.Scheme != "https" || endpoint.User != nil || strings.ContainsAny(fromKey, "?#") ||
		!tokenHost.MatchString(strings.TrimSuffix(endpoint.Host, ":443")) {
		return "", &CredentialsError{Reason: fmt.Sprintf(
			"the service-account key's credentials.tokenEndpoint must be https://<host>/<path>, on port 443, without user, "+
				"query and fragment, the host in lower case and below stackit.cloud; if the URL is correct, set the sidecar's "+
				"environment variable %s", EnvTokenURL)}
	}
	endpoint.Host = strings.TrimSuffix(endpoint.Host, ":443")
	return endpoint.String(), nil
}

// tokenHost matches the hosts that a key may name (a name's labels: RFC 1035, 2.3.4).
var tokenHost = regexp.MustCompile(`^([a-z0-9-]{1,63}\.)+stackit\.cloud$`)

// IdentityEndpoint returns the URL to which the tokens of workload identities are sent:
// IdentityURL, or STACKIT's own URL if that is "".
func (c Config) IdentityEndpoint() string { return cmp.Or(c.IdentityURL, defaultIdentityURL) }
