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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
)

// Environment variables; those of package spi say where the API is.
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

// settings are the settings of a run.
type settings struct {
	api.Account

	imageID, machineType string
	// zone may be "": then the API chooses.
	zone string
	// report is the report's file name.
	report string
	// sweepRun is a run to sweep at once, whatever its age; may be "".
	sweepRun string
	// yes skips the confirmation.
	yes bool
}

// readSettings reads the settings with lookup (os.LookupEnv). forServers says that servers will be
// created: a sweep needs neither image nor machine type. The error names every variable that is missing
// or wrong. It contains no value: one variable is easily mistaken for another.
func readSettings(lookup func(string) (string, bool), forServers bool) (settings, error) {
	var problems []error
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	required := func(name, meaning string) string {
		value := get(name)
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is not set: %s", name, meaning))
		}
		return value
	}
	s := settings{
		Account: api.Account{
			ProjectID: required(envProjectID, "the project's UUID"),
			Region:    required(envRegion, `the region, such as "eu01"`),
		},
		zone: get(envZone), report: cmp.Or(get(envReport), "cloud-report.md"),
		sweepRun: get(envRun), yes: get(envYes) == "1",
	}
	if forServers {
		s.imageID = required(envImageID, "the UUID of an image that the servers boot")
		s.machineType = required(envMachineType, "a small machine type")
	}
	if s.sweepRun != "" && !api.IsRun(s.sweepRun) {
		problems = append(problems, fmt.Errorf("%s must be what a run has printed, such as 20261123-071100-abcd", envRun))
	}
	key, err := readKey(get(envKeyPath), get(envKey))
	s.Key = key
	config, configErr := spi.ConfigFromEnvironment(lookup)
	problems = append(problems, err, configErr)
	if config.NoAuth {
		problems = append(problems, fmt.Errorf("%s is set: this suite tests authentication, too", spi.EnvNoAuth))
	}
	s.Endpoint, s.TokenURL = cmp.Or(config.Endpoint, spi.DefaultEndpoint), config.TokenURL
	return s, errors.Join(problems...)
}

// readKey reads the key from a file, or takes it as it is. What is no key, the client refuses.
func readKey(path, key string) ([]byte, error) {
	switch {
	case path != "" && key != "":
		return nil, fmt.Errorf("set only one of %s and %s", envKeyPath, envKey)
	case path == "" && key == "":
		return nil, fmt.Errorf("%s is not set: the file with a service account key; or %s, the key", envKeyPath, envKey)
	case key != "":
		return []byte(key), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: the file cannot be read: %w", envKeyPath, errors.Unwrap(err))
	}
	return content, nil
}

// confirmed says whether the run may begin: YES=1 is set, or somebody types yes. Where nobody can be asked,
// or ctx ends (Ctrl-C) before the answer, the answer is no.
func (s settings) confirmed(ctx context.Context, in io.Reader, out io.Writer) bool {
	if s.yes {
		return true
	}
	_, _ = fmt.Fprintf(out, "Go on? Type yes (nobody is asked with %s=1): ", envYes)
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
