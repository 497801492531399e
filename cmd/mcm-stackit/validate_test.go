// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The samples as a repository has them say which key is a placeholder; CI takes that for fine.
func TestValidateSamples(t *testing.T) {
	got := invocation{args: []string{"validate", "-f", "../../samples"}}.run(t)
	got.expect(t, 1)
	expectGolden(t, "validate-samples.txt", got.stdout+got.stderr)
	samples := []string{"validate", "-f", "../../samples/machine-class.yaml,../../samples/machine-class-minimal.yaml",
		"-f", "../../samples/machine.yaml"}
	invocation{args: samples}.run(t).
		expect(t, 2, "stackit-worker: secretRef: Secret default/stackit-credentials is not in the files: "+
			"its content cannot be checked; add")
	invocation{args: append(samples, "--allow-missing-secret")}.run(t).
		expect(t, 0, "Checked 1 Machine, 2 MachineClasses, with 2 hints: nothing is wrong.\n")
	invocation{args: []string{"validate", "-f", "../../samples", "--allow-missing-secret"}}.run(t).
		expect(t, 0, "is a placeholder (replace-me)", ": nothing is wrong.\n")
}

// From files to the API: what is printed where, and how it ends.
func TestValidateJourney(t *testing.T) {
	cloud, env := startMock(t)
	text := manifests(t)
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "below"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"good.yaml": text, "values.yaml": "replicas: 1\n", "kustomization.yaml": "resources: [good.yaml]\n",
		"below/broken.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nmetadata: {name: y}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) outcome {
		return invocation{args: append([]string{"validate"}, args...), env: env, stdin: text}.run(t)
	}
	const checked = "Checked 1 Machine, 1 MachineClass, 1 MachineDeployment, 1 Secret"
	run("-f", "-").expect(t, 0, checked+": nothing is wrong.\n")
	run("-k", folder).expect(t, 0, checked+": nothing is wrong.\n")
	run("-f", folder).expect(t, 0, "/values.yaml:1:1: manifest: lacks apiVersion or kind: skipped\n",
		checked+", with 2 hints: nothing is wrong.\n")
	broken := run("-f", folder, "-R")
	broken.expect(t, 1, "/below/broken.yaml:4:1: manifest: this key is set twice; remove one\n")
	if !strings.Contains(broken.stderr, checked+", with 2 hints: 1 wrong, 0 could not be checked.\n") {
		t.Errorf("stderr has no summary: %s", broken.stderr)
	}

	run("-f", "-", "--online").expect(t, 0, checked+": nothing is wrong.\n")
	cloud.Inject(iaasmock.Fault{Operation: "GetImage", Status: 403})
	run("-f", "-", "--online").expect(t, 0,
		"not checked: image 30000000-0000-4000-8000-000000000001 (no permission for iaas.image.get)\n")
}

// canary is in the user data of manifests.
const canary = "the-canary"

// manifests are a Secret, a class, a Machine and a MachineDeployment that have nothing wrong, with
// the key of each mock.
func manifests(t *testing.T) string {
	t.Helper()
	good, err := os.ReadFile("../../pkg/operator/validate/testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(good), "KEY", strconv.Quote(string(key)), 1)
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
