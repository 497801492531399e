// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Environment variables, in addition to those with the URLs, which package spi reads.
const (
	envProjectID   = "STACKIT_PROJECT_ID"
	envRegion      = "STACKIT_REGION"
	envKeyPath     = "STACKIT_SERVICE_ACCOUNT_KEY_PATH"
	envKey         = "STACKIT_SERVICE_ACCOUNT_KEY"
	envImageID     = "STACKIT_IMAGE_ID"
	envMachineType = "STACKIT_MACHINE_TYPE"
	envZone        = "STACKIT_AVAILABILITY_ZONE"
	envReport      = "REPORT"
	envRun         = "RUN"
	envYes         = "YES"
)

// settings are what the environment sets.
type settings struct {
	projectID, region string
	// key is the service-account key (JSON).
	key    string
	config spi.Config

	imageID, machineType string
	// zone may be "": then the API chooses one.
	zone string
	// report is the report's file name.
	report string
	// sweepRun is a run to sweep whatever its age; it may be "".
	sweepRun string
	// yes skips the confirmation.
	yes bool
}

// readSettings reads the settings with lookup (os.LookupEnv). A sweep (forServers is false) needs neither
// image nor machine type. The error names every variable that is missing or wrong, and contains no value:
// variables are easily mistaken for each other.
func readSettings(lookup func(string) (string, bool), forServers bool) (settings, error) {
	var problems []error
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	required := func(name, meaning string) string {
		value := get(name)
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is not set: must be %s", name, meaning))
		}
		return value
	}
	s := settings{
		projectID: required(envProjectID, "the project's UUID"),
		region:    required(envRegion, `the region, such as "eu01"`),
		zone:      get(envZone), report: cmp.Or(get(envReport), "cloud-report.md"),
		sweepRun: get(envRun), yes: get(envYes) == "1",
	}
	if forServers {
		s.imageID = required(envImageID, "the UUID of an image that the servers boot")
		s.machineType = required(envMachineType, "a small machine type")
	}
	if s.sweepRun != "" && !isRunName(s.sweepRun) {
		problems = append(problems,
			fmt.Errorf("%s is not the name of a run: must be as a run has printed it, such as 20261123-071100-abcd", envRun))
	}
	var keyErr, configErr error
	s.key, keyErr = readKey(get(envKeyPath), get(envKey))
	s.config, configErr = spi.ConfigFromEnvironment(lookup)
	problems = append(problems, keyErr, configErr)
	if s.config.NoAuth {
		problems = append(problems,
			fmt.Errorf("%s is set: must be unset, since this suite tests authentication, too", spi.EnvNoAuth))
	}
	s.config.Endpoint = cmp.Or(s.config.Endpoint, spi.DefaultEndpoint)
	return s, errors.Join(problems...)
}

// readKey returns the key of the file at path, or key itself. A session refuses what is no key.
func readKey(path, key string) (string, error) {
	switch {
	case path != "" && key != "":
		return "", fmt.Errorf("set only one of %s and %s", envKeyPath, envKey)
	case path == "" && key == "":
		return "", fmt.Errorf("no service-account key: set %s to the path of a key file, or %s to the key itself",
			envKeyPath, envKey)
	case key != "":
		return key, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: the file cannot be read: %w", envKeyPath, errors.Unwrap(err))
	}
	return string(content), nil
}

// confirmed reports whether the run may begin: YES=1 is set, or the user types yes. End of input and the
// end of ctx (Ctrl-C) mean no.
func (s settings) confirmed(ctx context.Context, in io.Reader, out io.Writer) bool {
	if s.yes {
		return true
	}
	_, _ = fmt.Fprintf(out, "Go on? Type yes (%s=1 skips this question): ", envYes)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n')
		answers <- answer
	}()
	select {
	case answer := <-answers:
		return strings.TrimSpace(answer) == "yes"
	case <-ctx.Done():
		return false
	}
}
