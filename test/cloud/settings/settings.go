// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package settings reads a run's settings from the environment and asks for confirmation.
package settings

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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// Environment variables; those of package spi say where the API is.
const (
	EnvProjectID   = "STACKIT_PROJECT_ID"
	EnvRegion      = "STACKIT_REGION"
	EnvKeyPath     = "STACKIT_SERVICE_ACCOUNT_KEY_PATH"
	EnvKey         = "STACKIT_SERVICE_ACCOUNT_KEY"
	EnvImageID     = "STACKIT_IMAGE_ID"
	EnvMachineType = "STACKIT_MACHINE_TYPE"
	EnvZone        = "STACKIT_AVAILABILITY_ZONE"
	EnvReport      = "REPORT"
	EnvRun         = "RUN"
	EnvYes         = "YES"
)

// Settings are the settings of a run.
type Settings struct {
	ProjectID, Region, ImageID, MachineType string
	// Zone may be "": then the API chooses.
	Zone string
	// Endpoint is the base URL of the IaaS API; with an empty TokenURL the key's own is used.
	Endpoint, TokenURL string
	// Key is the service account key (JSON).
	Key []byte
	// Report is the report's file name.
	Report string
	// SweepRun is a run to sweep at once, whatever its age; may be "".
	SweepRun string
	// Yes skips the confirmation.
	Yes bool
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

// Read reads the settings with lookup (os.LookupEnv). forServers says that servers will be created: a
// sweep needs neither image nor machine type. The error names every variable that is missing or
// wrong, and shows no value.
func Read(lookup func(string) (string, bool), forServers bool) (Settings, error) {
	r := &reader{lookup: lookup}
	s := Settings{
		ProjectID: r.requiredUUID(EnvProjectID, "the project's UUID"),
		Region:    r.required(EnvRegion, `the region, such as "eu01"`),
		Zone:      r.optional(EnvZone),
		Report:    cmp.Or(r.optional(EnvReport), "cloud-report.md"),
		SweepRun:  r.optional(EnvRun),
		Yes:       r.optional(EnvYes) == "1",
	}
	if forServers {
		s.ImageID = r.requiredUUID(EnvImageID, "the UUID of an image that the servers boot")
		s.MachineType = r.required(EnvMachineType, "a small machine type")
	}
	if s.SweepRun != "" && !mark.IsRun(s.SweepRun) {
		r.problem("%s must be the name that a run has printed, such as 20261123-071100-abcd", EnvRun)
	}
	s.Key = r.readKey()
	config, err := spi.ConfigFromEnvironment(lookup)
	if err != nil {
		r.problem("%w", err)
	}
	if config.NoAuth {
		r.problem("%s is set: this suite tests authentication, too", spi.EnvNoAuth)
	}
	s.Endpoint, s.TokenURL = config.Endpoint, config.TokenURL
	if s.Endpoint == "" {
		s.Endpoint = spi.DefaultEndpoint
	}
	return s, errors.Join(r.problems...)
}

// readKey reads the key from a file or from the variable itself.
func (r *reader) readKey() []byte {
	path, key := r.optional(EnvKeyPath), []byte(r.optional(EnvKey))
	switch {
	case path != "" && len(key) > 0:
		r.problem("set only one of %s and %s", EnvKeyPath, EnvKey)
		return nil
	case path == "" && len(key) == 0:
		r.problem("%s is not set: the file with a service account key; or %s, the key itself", EnvKeyPath, EnvKey)
		return nil
	case path != "":
		var err error
		if key, err = os.ReadFile(path); err != nil {
			r.problem("%s: the file cannot be read: %w", EnvKeyPath, errors.Unwrap(err))
			return nil
		}
	}
	if !json.Valid(key) {
		r.problem("%s or %s has no JSON, must have a service account key", EnvKeyPath, EnvKey)
	}
	return key
}

// Confirmed says whether the run may begin: YES=1 is set, or somebody at a terminal types
// yes. Where nobody can be asked, or ctx ends (Ctrl-C) before the answer, the answer is no.
func (s Settings) Confirmed(ctx context.Context, in *os.File, out io.Writer) bool {
	switch {
	case s.Yes:
		return true
	case !term.IsTerminal(int(in.Fd())):
		_, _ = fmt.Fprintf(out, "Nobody can be asked here: set %s=1 to go on.\n", EnvYes)
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
