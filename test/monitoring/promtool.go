// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// RuleFile is the name of the alerts in a Promtool's folder, for the rule_files of a test.
const RuleFile = "rules.yaml"

// Promtool is Prometheus' tool for rules, with a folder that holds the alerts as RuleFile.
type Promtool struct{ path, folder string }

// NewPromtool finds promtool, which make builds as bin/promtool, and writes the alerts to the
// folder.
func NewPromtool(folder string) (*Promtool, error) {
	root, err := localenv.Root()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, "bin", "promtool")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("promtool is missing, run 'make bin/promtool': %w", err)
	}
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	return &Promtool{path: path, folder: folder}, os.WriteFile(filepath.Join(folder, RuleFile), rules, 0o600)
}

// Write writes a file into the folder.
func (p *Promtool) Write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(p.folder, name), content, 0o600)
}

// Run runs promtool in the folder and returns what it prints, which is also in the error.
func (p *Promtool) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = p.folder
	output, err := cmd.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("promtool %q: %w:\n%s", args, err, output)
	}
	return string(output), nil
}
