// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// goodSecret and goodClass have nothing wrong; %s is for a key, in one line.
const (
	goodSecret = `apiVersion: v1
kind: Secret
metadata: {name: credentials}
stringData:
  projectId: 10000000-0000-4000-8000-000000000001
  region: eu01
  networkId: 20000000-0000-4000-8000-000000000001
  userData: "#cloud-config the-canary"
  serviceAccountKey: %s
---
`
	goodClass = `apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: worker}
provider: stackit
secretRef: {name: credentials, namespace: default}
providerSpec:
  machineType: c2i.2
  imageId: 30000000-0000-4000-8000-000000000001
  bootVolume: {size: 20}
  labels: {kubernetes.io/cluster: one}
---
`
	goodMachine = `apiVersion: machine.sapcloud.io/v1alpha1
kind: Machine
metadata: {name: single}
spec: {class: {kind: MachineClass, name: worker}}
---
`
	goodDeployment = `apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: pool}
spec:
  replicas: 2
  selector: {matchLabels: {pool: a}}
  template:
    metadata: {labels: {pool: a}}
    spec: {class: {kind: MachineClass, name: worker}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
---
`
)

// canary is in the user data of goodSecret.
const canary = "the-canary"

// manifests are the good ones with a key of the cloud's. Pairs of changes replace text.
func manifests(t *testing.T, cloud *iaasmock.Cloud, changes ...string) string {
	t.Helper()
	key := keyOf(t, cloud)
	inOneLine, err := json.Marshal(string(key))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(goodSecret, inOneLine) + goodClass + goodMachine + goodDeployment
	for i := 0; i < len(changes); i += 2 {
		changed := strings.Replace(text, changes[i], changes[i+1], 1)
		if changed == text {
			t.Fatalf("%q is not there", changes[i])
		}
		text = changed
	}
	return text
}

// without are changes that take a manifest away.
func without(manifest string) []string { return []string{manifest, ""} }

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
	if strings.Contains(got.stdout+got.stderr, canary) || strings.Contains(got.stdout+got.stderr, "PRIVATE KEY") {
		t.Error("a secret was printed")
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
	}
}

// copySamples copies the samples, with a key of the cloud's in the Secret.
func copySamples(t *testing.T, cloud *iaasmock.Cloud, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS("../../samples")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(to, "secret.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var secret map[string]any
	if err := yaml.Unmarshal(text, &secret); err != nil {
		t.Fatal(err)
	}
	key := keyOf(t, cloud)
	secret["stringData"].(map[string]any)["serviceAccountKey"] = string(key)
	if text, err = yaml.Marshal(secret); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
