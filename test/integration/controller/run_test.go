// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run is the second run of this program, in the workspace. It returns what that
// prints. Nothing it has started is left when run returns, or when this process
// ends in whatever way.
func (w *workspace) run(ctx context.Context) (report string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	group, err := newProcessGroup()
	if err != nil {
		return "", err
	}
	defer group.end()
	var output bytes.Buffer
	var show io.Writer = &output
	if testing.Verbose() {
		show = io.MultiWriter(&output, os.Stdout)
	}
	command := exec.CommandContext(ctx, program, suiteFlags()...)
	command.Dir, command.Env = w.packageDir(), w.environment
	command.Stdout, command.Stderr = show, show
	group.join(command)
	err = command.Run()
	return output.String(), err
}

// suiteFlags are those of the second run: the suite alone, with the flags for
// Ginkgo that this run was given, such as -ginkgo.v.
func suiteFlags() []string {
	flags := []string{"-test.run=^TestControllers$", "-test.v", "-ginkgo.no-color"}
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(strings.TrimLeft(arg, "-"), "ginkgo.") {
			flags = append(flags, arg)
		}
	}
	return flags
}

// logs returns the ends of what the controllers have logged.
func (w *workspace) logs() string {
	const most = 20000
	var text strings.Builder
	for _, name := range []string{"mc_process.log", "mcm_process.log"} {
		content, err := os.ReadFile(filepath.Join(w.logDir(), name))
		content = content[max(0, len(content)-most):]
		_, _ = fmt.Fprintf(&text, "--- %s (%v)\n%s\n", name, err, content)
	}
	return text.String()
}
