// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// FuzzValidate gives Validate any text: it must not panic, and each finding must be one
// line with a place in the text.
func FuzzValidate(f *testing.F) {
	for _, pattern := range []string{"../../../samples/*.yaml", "../../../cmd/mcm-stackit/testdata/validate/*.yaml"} {
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
	f.Fuzz(func(t *testing.T, text string) {
		manifests, broken, err := manifest.Read(t.Context(), []string{manifest.Stdin}, strings.NewReader(text), "default")
		if err != nil || len(broken) > 0 {
			return
		}
		access := &account.Access{Sessions: &spi.PluginSPIImpl{}, Manifests: manifests, Namespace: "default"}
		result, err := Run(t.Context(), access, Options{})
		if err != nil {
			return
		}
		for _, finding := range result.Findings {
			if strings.ContainsAny(finding.String(), "\n\r\x1b") {
				t.Errorf("more than a line: %q", finding)
			}
			if finding.Position == nil || finding.Position.Line < 1 || finding.Position.Column < 1 {
				t.Errorf("no position: %q", finding)
			}
		}
	})
}
