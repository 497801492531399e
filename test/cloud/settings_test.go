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

func right(t *testing.T) map[string]string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(`{"id":"secret-of-the-key"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		envProjectID: someUUID, envRegion: "eu01", envImageID: someUUID,
		envMachineType: "c2i.1", envKeyPath: key,
	}
}

func read(variables map[string]string, forServers bool) (settings, error) {
	return readSettings(func(name string) (string, bool) { value, ok := variables[name]; return value, ok }, forServers)
}

func TestRightSettings(t *testing.T) {
	variables := right(t)
	s, err := read(variables, true)
	if err != nil || s.ProjectID != someUUID || string(s.Key) != `{"id":"secret-of-the-key"}` || s.Endpoint != "https://iaas.api.stackit.cloud" || s.yes {
		t.Errorf("%+v, %v", s, err)
	}
	delete(variables, envImageID)
	delete(variables, envMachineType)
	if _, err := read(variables, false); err != nil {
		t.Errorf("a sweep needs no image: %v", err)
	}
	variables[envKey], variables[envKeyPath] = `{"id":"direct"}`, ""
	if s, err := read(variables, false); err != nil || string(s.Key) != `{"id":"direct"}` {
		t.Errorf("%s, %v", s.Key, err)
	}
}

func TestAllThatIsMissingIsNamed(t *testing.T) {
	_, err := read(nil, true)
	for _, name := range []string{envProjectID, envRegion, envImageID, envMachineType, envKeyPath} {
		if !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}

func TestWhatIsWrongIsNamedWithoutItsValue(t *testing.T) {
	for name, row := range map[string]struct{ variable, value, want string }{
		"project":        {envProjectID, "SECRET-PROJECT", envProjectID + " is not a UUID"},
		"image":          {envImageID, strings.ToUpper(someUUID), envImageID + " is not a UUID in lower case"},
		"no key file":    {envKeyPath, "/SECRET/of/mine", envKeyPath + ": the file cannot be read"},
		"two keys":       {envKey, "SECRET", "set only one of"},
		"http":           {"STACKIT_IAAS_ENDPOINT", "http://SECRET.example.com", "must be https"},
		"authentication": {"STACKIT_NO_AUTH", "true", "STACKIT_NO_AUTH"},
		"run":            {envRun, "SECRET;", envRun + " must be the name"},
		"cluster":        {envRun, "SECRET", envRun + " must be the name"},
	} {
		t.Run(name, func(t *testing.T) {
			variables := maps.Clone(right(t))
			variables[row.variable] = row.value
			_, err := read(variables, true)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "secret-of-the-key") {
				t.Errorf("shows the value: %v", err)
			}
		})
	}
}

func TestCtrlCIsNoYes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, terminal := io.Pipe()
	defer func() { _ = terminal.Close() }()
	cancel()
	if typedYes(ctx, silent, io.Discard) {
		t.Error("nobody has typed yes")
	}
}

func TestOnlyYesIsYes(t *testing.T) {
	for answer, want := range map[string]bool{"yes\n": true, "y\n": false, "": false, "no\n": false, "yes, please\n": false} {
		var out strings.Builder
		if typedYes(t.Context(), strings.NewReader(answer), &out) != want {
			t.Errorf("%q is not %t", answer, want)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	var out strings.Builder
	if (settings{}).confirmed(t.Context(), null, &out) || !strings.Contains(out.String(), "YES=1") {
		t.Errorf("where nobody can be asked: %q", out.String())
	}
	if !(settings{yes: true}).confirmed(t.Context(), null, &out) {
		t.Error("YES=1 is a yes")
	}
}
