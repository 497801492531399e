// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// DefaultEndpoint is where the IaaS API is, unless the environment overrides it.
const DefaultEndpoint = "https://iaas.api.stackit.cloud"

// Environment variables that ConfigFromEnvironment reads.
const (
	// EnvAPIEndpoint and EnvIaaSEndpoint (the name that Gardener sets) override
	// the URL of the IaaS API.
	EnvAPIEndpoint  = "STACKIT_API_ENDPOINT"
	EnvIaaSEndpoint = "STACKIT_IAAS_ENDPOINT"
	// EnvTokenURL overrides the URL of the token endpoint.
	EnvTokenURL = "STACKIT_TOKEN_BASEURL"
	// EnvNoAuth switches authentication off: for a local mock.
	EnvNoAuth = "STACKIT_NO_AUTH"
)

// Config says where the API is and how to authenticate.
type Config struct {
	// Endpoint is the base URL of the IaaS API; "" means DefaultEndpoint.
	Endpoint string
	// TokenURL is the URL of the token endpoint; "" means the key's own, if it
	// belongs to STACKIT, else STACKIT's default.
	TokenURL string
	// NoAuth sends no credentials.
	NoAuth bool
}

// ConfigFromEnvironment reads the configuration with lookup (os.LookupEnv). The
// error names the variable, what is wrong and what is right.
func ConfigFromEnvironment(lookup func(string) (string, bool)) (Config, error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	// The SDK appends paths that begin with a slash.
	endpoint, iaasEndpoint := strings.TrimRight(get(EnvAPIEndpoint), "/"), strings.TrimRight(get(EnvIaaSEndpoint), "/")
	if endpoint != "" && iaasEndpoint != "" && endpoint != iaasEndpoint {
		return Config{}, fmt.Errorf("%s and %s mean the same but differ: set only one of them", EnvAPIEndpoint, EnvIaaSEndpoint)
	}
	name := EnvAPIEndpoint
	if endpoint == "" {
		name, endpoint = EnvIaaSEndpoint, iaasEndpoint
	}
	config := Config{Endpoint: endpoint, TokenURL: get(EnvTokenURL)}
	for _, variable := range []struct{ name, value string }{{name, config.Endpoint}, {EnvTokenURL, config.TokenURL}} {
		if err := checkURL(variable.name, variable.value); err != nil {
			return Config{}, err
		}
	}
	if noAuth := get(EnvNoAuth); noAuth != "" {
		var err error
		if config.NoAuth, err = strconv.ParseBool(noAuth); err != nil {
			return Config{}, fmt.Errorf("%s is %q, must be true or false", EnvNoAuth, noAuth)
		}
	}
	if config.NoAuth && config.Endpoint == "" {
		return Config{}, fmt.Errorf("%s=true is for a local mock: set %s or %s, too", EnvNoAuth, EnvAPIEndpoint, EnvIaaSEndpoint)
	}
	return config, nil
}

func checkURL(name, value string) error {
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" ||
		parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("%s must be an http or https URL such as %s, without user, query and fragment", name, DefaultEndpoint)
	}
	return nil
}
