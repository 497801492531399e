// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someUUID = "10000000-0000-4000-8000-00000000abcd"

// right returns settings for a run, with changes.
func right(t *testing.T, changes map[string]string) map[string]string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(`{"id":"secret-of-the-key"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		envProjectID: someUUID, envRegion: "eu01", envImageID: someUUID, envMachineType: "c2i.1", envKeyPath: key,
	}
	maps.Copy(variables, changes)
	return variables
}

func read(variables map[string]string, forServers bool) (settings, error) {
	return readSettings(func(name string) (string, bool) { value, ok := variables[name]; return value, ok }, forServers)
}

func TestRightSettings(t *testing.T) {
	s, err := read(right(t, nil), true)
	if err != nil || s.projectID != someUUID || s.key != `{"id":"secret-of-the-key"}` ||
		s.config.Endpoint != "https://iaas.api.stackit.cloud" || s.yes {
		t.Errorf("%+v, %v", s, err)
	}
	sweep := map[string]string{envImageID: "", envMachineType: "", envKey: `{"id":"direct"}`, envKeyPath: ""}
	if s, err := read(right(t, sweep), false); err != nil || s.key != `{"id":"direct"}` {
		t.Errorf("a sweep needs no image: %v", err)
	}
}

func TestWhatIsWrongIsNamedWithoutItsValue(t *testing.T) {
	for name, row := range map[string]struct{ variable, value, want string }{
		"no project":     {envProjectID, "", envProjectID + " is not set"},
		"no region":      {envRegion, "", envRegion + " is not set"},
		"no image":       {envImageID, "", envImageID + " is not set"},
		"no type":        {envMachineType, "", envMachineType + " is not set"},
		"no key":         {envKeyPath, "", "set " + envKeyPath + " to the path"},
		"no key file":    {envKeyPath, "/SECRET/of/mine", envKeyPath + ": the file cannot be read"},
		"two keys":       {envKey, "SECRET", "set only one of"},
		"http":           {"STACKIT_IAAS_ENDPOINT", "http://SECRET.example.com", "must be https"},
		"authentication": {"STACKIT_NO_AUTH", "true", "STACKIT_NO_AUTH"},
		"run":            {envRun, "SECRET", envRun + " is not the name of a run"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(right(t, map[string]string{row.variable: row.value}), true)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "secret-of-the-key") {
				t.Errorf("shows the value: %v", err)
			}
		})
	}
}

func TestOnlyYesIsYes(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, terminal := io.Pipe()
	defer func() { _ = terminal.Close() }()
	if (settings{}).confirmed(interrupted, silent, io.Discard) {
		t.Error("Ctrl-C is no yes")
	}
	for answer, want := range map[string]bool{"yes\n": true, "y\n": false, "": false, "yes, please\n": false} {
		if (settings{}).confirmed(t.Context(), strings.NewReader(answer), io.Discard) != want {
			t.Errorf("%q is not %t", answer, want)
		}
	}
}
