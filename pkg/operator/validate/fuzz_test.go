// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/resource"
)

// FuzzRun gives Run any text: it must not panic, and each finding must be one line with a
// place in the text.
func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"../../../samples/*.yaml", "testdata/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	for _, spec := range []string{"null", "[]", "{labels: null, bootVolume: null, networking: {nicIds: [null]}, metadata: {a: null}}", `{"": 0}`} {
		f.Add("apiVersion: machine.sapcloud.io/v1alpha1\nkind: MachineClass\nmetadata: null\nsecretRef: null\nnodeTemplate: null\nproviderSpec: " + spec)
	}
	for _, kind := range []string{"Machine", "MachineDeployment"} {
		for _, spec := range []string{"null", "{}", "{class: null, selector: null, template: null, strategy: null}"} {
			f.Add("apiVersion: machine.sapcloud.io/v1alpha1\nkind: " + kind + "\nspec: " + spec)
		}
	}
	f.Add("apiVersion: v1\nkind: Secret\ndata: null\nstringData: {a: null}")
	f.Add("apiVersion: v1\nkind: List\nitems: &a [*a]")
	f.Add("apiVersion: v1\nkind: List\nitems: [null, [], {<<: {kind: Secret, apiVersion: v1}}]\n...\n%YAML 1.1\n--- {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		result, err := Run(t.Context(), offline(), Options{Stdin: strings.NewReader(text), Files: resource.FilenameOptions{Filenames: []string{"-"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range result.Findings {
			if strings.ContainsAny(found.String(), "\n\r\x1b") {
				t.Errorf("more than a line: %q", found)
			}
			if found.Subject != "manifests" && (found.Position == nil || found.Position.Line < 1 || found.Position.Column < 1) {
				t.Errorf("no position: %q", found)
			}
		}
	})
}
