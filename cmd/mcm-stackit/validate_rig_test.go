// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// canary is in the user data of manifests.
const canary = "the-canary"

// manifests are a Secret, a class, a Machine and a MachineDeployment that have nothing wrong, with
// a key of the cloud's. Pairs of changes replace text.
func manifests(t *testing.T, cloud *iaasmock.Cloud, changes ...string) string {
	t.Helper()
	good, err := os.ReadFile("../../pkg/operator/validate/testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inOneLine, err := json.Marshal(string(keyOf(t, cloud)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for i, changes := 0, append([]string{"KEY", string(inOneLine)}, changes...); i < len(changes); i += 2 {
		changed := strings.Replace(text, changes[i], changes[i+1], 1)
		if changed == text {
			t.Fatalf("%q is not there", changes[i])
		}
		text = changed
	}
	return text
}

// expect wants an exit code and these texts on standard output, and no secret.
func (got outcome) expect(t *testing.T, code int, says ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code %d, want %d", got.code, code)
	}
	for _, text := range says {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("stdout lacks %q", text)
		}
	}
	for _, secret := range []string{canary, "PRIVATE KEY", "eyJ"} {
		if strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("a secret was printed: %s", secret)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
	}
}
