// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

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

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// reader reads variables and collects their errors. No error contains a value: project and key must
// not be shown, and one variable is easily mistaken for another.
type reader struct {
	lookup   func(string) (string, bool)
	problems []error
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

func (r *reader) optional(name string) string {
	value, _ := r.lookup(name)
	return value
}

func (r *reader) required(name, meaning string) string {
	value := r.optional(name)
	if value == "" {
		r.problem("%s is not set: %s", name, meaning)
	}
	return value
}

func (r *reader) requiredUUID(name, meaning string) string {
	value := r.required(name, meaning)
	if value != "" && !uuid.MatchString(value) {
		r.problem("%s is not a UUID in lower case: %s", name, meaning)
	}
	return value
}

// readSettings reads the settings with lookup (os.LookupEnv). forServers says that servers will be
// created: a sweep needs neither image nor machine type. The error names every variable that is missing
// or wrong, and shows no value.
func readSettings(lookup func(string) (string, bool), forServers bool) (settings, error) {
	r := &reader{lookup: lookup}
	s := settings{
		Account: api.Account{
			ProjectID: r.requiredUUID(envProjectID, "the project's UUID"),
			Region:    r.required(envRegion, `the region, such as "eu01"`),
		},
		zone:     r.optional(envZone),
		report:   cmp.Or(r.optional(envReport), "cloud-report.md"),
		sweepRun: r.optional(envRun),
		yes:      r.optional(envYes) == "1",
	}
	if forServers {
		s.imageID = r.requiredUUID(envImageID, "the UUID of an image that the servers boot")
		s.machineType = r.required(envMachineType, "a small machine type")
	}
	if s.sweepRun != "" && !api.IsRun(s.sweepRun) {
		r.problem("%s must be the name that a run has printed, such as 20261123-071100-abcd", envRun)
	}
	s.Key = r.readKey()
	config, err := spi.ConfigFromEnvironment(lookup)
	if err != nil {
		r.problem("%w", err)
	}
	if config.NoAuth {
		r.problem("%s is set: this suite tests authentication, too", spi.EnvNoAuth)
	}
	s.Endpoint, s.TokenURL = cmp.Or(config.Endpoint, spi.DefaultEndpoint), config.TokenURL
	return s, errors.Join(r.problems...)
}

// readKey reads the key from a file or from the variable itself.
func (r *reader) readKey() []byte {
	path, key := r.optional(envKeyPath), []byte(r.optional(envKey))
	switch {
	case path != "" && len(key) > 0:
		r.problem("set only one of %s and %s", envKeyPath, envKey)
		return nil
	case path == "" && len(key) == 0:
		r.problem("%s is not set: the file with a service account key; or %s, the key itself", envKeyPath, envKey)
		return nil
	case path != "":
		var err error
		if key, err = os.ReadFile(path); err != nil {
			r.problem("%s: the file cannot be read: %w", envKeyPath, errors.Unwrap(err))
			return nil
		}
	}
	if !json.Valid(key) {
		r.problem("%s or %s has no JSON, must have a service account key", envKeyPath, envKey)
	}
	return key
}

// confirmed says whether the run may begin: YES=1 is set, or somebody at a terminal types
// yes. Where nobody can be asked, or ctx ends (Ctrl-C) before the answer, the answer is no.
func (s settings) confirmed(ctx context.Context, in *os.File, out io.Writer) bool {
	switch {
	case s.yes:
		return true
	case !term.IsTerminal(int(in.Fd())):
		_, _ = fmt.Fprintf(out, "Nobody can be asked here: set %s=1 to go on.\n", envYes)
		return false
	}
	return typedYes(ctx, in, out)
}

func typedYes(ctx context.Context, in io.Reader, out io.Writer) bool {
	_, _ = fmt.Fprint(out, "Go on? Type yes: ")
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n')
		answers <- answer
	}()
	select {
	case answer := <-answers:
		return strings.TrimSpace(answer) == "yes"
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out)
		return false
	}
}
