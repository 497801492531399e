// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks the driver's rules one by one and names the test that
// notices. It fails if no test does. The working tree does not change: the broken
// file is an overlay while a test runs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "break only the rules whose text contains this")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(only string) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	survivors := 0
	for i, m := range mutants {
		if !strings.Contains(m.rule, only) {
			continue
		}
		start := time.Now()
		overlay, err := m.overlay(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", m.rule, err)
		}
		caught, err := noticed("./"+filepath.Dir(m.edits[0].file), overlay)
		if err != nil {
			return fmt.Errorf("%s: %w", m.rule, err)
		}
		if caught == "" {
			survivors++
			caught = "NOBODY NOTICES"
		}
		fmt.Printf("%2d %-62s %s (%s)\n", i+1, m.rule, caught, time.Since(start).Round(time.Second))
	}
	if survivors > 0 {
		return fmt.Errorf("%d broken rules go unnoticed", survivors)
	}
	return nil
}

// overlay writes the broken files and the file that go's -overlay takes.
func (m *mutant) overlay(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	broken := map[string]string{}
	for _, e := range m.edits {
		text, ok := broken[e.file]
		if !ok {
			source, err := os.ReadFile(e.file)
			if err != nil {
				return "", err
			}
			text = string(source)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("%q is %d times in %s, must be once: bring the list up to date", e.old, n, e.file)
		}
		broken[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range broken {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o600)
}

// noticed returns the first test that fails with the overlay; "" if none does. The tests of the
// broken package come first, the slowest last.
func noticed(broken, overlay string) (string, error) {
	for _, args := range [][]string{
		{broken},
		{"./pkg/provider/...", "./pkg/spi"},
		{"./test/simulation", "-run", "Life|Preset|Seeds$|ListsFail", "-seeds=150", "-nth=7"},
	} {
		args = append([]string{"test", "-vet=off", "-failfast", "-timeout=8m", "-overlay=" + overlay}, args...)
		output, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &exit):
			return "", err
		}
		if name := failedTest(string(output)); name != "" {
			return name, nil
		}
		return "", fmt.Errorf("the tests do not run:\n%s", output)
	}
	return "", nil
}

var (
	failed   = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	timedOut = regexp.MustCompile(`panic: test timed out`)
)

// failedTest is the innermost test that failed first.
func failedTest(output string) string {
	name := ""
	for _, match := range failed.FindAllStringSubmatch(output, -1) {
		if strings.HasPrefix(match[1], name) {
			name = match[1]
		}
	}
	if name == "" && timedOut.MatchString(output) {
		return "a test does not end"
	}
	return name
}
