// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks the driver's rules one by one, and prints for each the test that notices. It fails
// if no test notices a broken rule. The driver's files do not change: tests run with a broken copy, by -overlay.
//
// noticed.txt has the names of an earlier run. A run tries that test first, which takes seconds, and all
// others only if it passes. It writes the file anew after each mutant, so that a run that is interrupted keeps its
// names, and a diff shows which rule is noticed elsewhere.
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
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "break only the rules whose text, as in mutants.go, contains this; empty means all")
	flag.Parse()
	if err := run(*only, "hack/mutants/noticed.txt"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(only, file string) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	tests := readNoticed(string(content))
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		errs []error
		next = make(chan int)
	)
	// One compiles while the tests of another run.
	for range 2 {
		work.Go(func() {
			for i := range next {
				m, start := &mutants[i], time.Now()
				mu.Lock()
				before := tests[m.rule]
				mu.Unlock()
				test, err := m.noticed(filepath.Join(dir, fmt.Sprint(i)), before)
				if err == nil && test == (aTest{}) {
					err = errors.New("NO TEST NOTICES")
				}
				mu.Lock()
				tests[m.rule] = test
				if err = errors.Join(err, os.WriteFile(file, []byte(writeNoticed(tests)), 0o600)); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", m.rule, err))
				}
				mu.Unlock()
				fmt.Printf("%3d %-62s %s (%s)\n", i+1, m.rule, test.name, time.Since(start).Round(time.Second))
			}
		})
	}
	for i := range mutants {
		if strings.Contains(mutants[i].rule, only) {
			next <- i
		}
	}
	close(next)
	work.Wait()
	return errors.Join(errs...)
}

// aTest has the path of its package and its own name, that of the innermost test.
type aTest struct{ pkg, name string }

// readNoticed reads lines of a rule, a package and a test, separated by tabs.
func readNoticed(content string) map[string]aTest {
	tests := map[string]aTest{}
	for line := range strings.Lines(content) {
		if parts := strings.Split(strings.TrimSpace(line), "\t"); len(parts) == 3 {
			tests[parts[0]] = aTest{pkg: parts[1], name: parts[2]}
		}
	}
	return tests
}

func writeNoticed(tests map[string]aTest) string {
	var content strings.Builder
	for _, m := range mutants {
		if test := tests[m.rule]; test.name != "" {
			fmt.Fprintf(&content, "%s\t%s\t%s\n", m.rule, test.pkg, test.name)
		}
	}
	return content.String()
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
			return "", fmt.Errorf("%q occurs %d times in %s: must occur once: correct the edit in hack/mutants/mutants.go",
				e.old, n, e.file)
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

// noticed returns the test of before if it fails with the mutant, or else the first that does; none if
// all pass. The tests of the broken package come first, the slowest last.
func (m *mutant) noticed(dir string, before aTest) (aTest, error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return aTest{}, err
	}
	simulation := []string{"./test/simulation", "-seeds=150", "-nth=7"}
	runs := [][]string{
		{"./" + filepath.Dir(m.edits[0].file)},
		{"./pkg/provider/...", "./pkg/spi"},
		append(simulation, "-run=Life|Preset|Seeds$|ListsFail"),
	}
	if before.name != "" {
		first := []string{before.pkg}
		if before.pkg == simulation[0] {
			first = simulation
		}
		runs = append([][]string{append(first, "-run="+exactly(before.name))}, runs...)
	}
	for _, args := range runs {
		args = append([]string{"test", "-vet=off", "-failfast", "-timeout=4m", "-overlay=" + overlay}, args...)
		cmd := exec.CommandContext(context.Background(), "go", args...)
		// The compiler spends a quarter of its time on freeing memory that it could keep for its few seconds.
		cmd.Env = append(os.Environ(), "GOGC=400")
		output, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &exit):
			return aTest{}, err
		}
		if test := failedTest(string(output)); test.name != "" {
			return test, nil
		}
		return aTest{}, fmt.Errorf("go test failed, but its output names no test that failed:\n%s", output)
	}
	return aTest{}, nil
}

// exactly is the pattern for -run that only this test matches, a part for each level.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

const module = "github.com/stackitcloud/machine-controller-manager-provider-stackit"

var (
	failed        = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	timedOut      = regexp.MustCompile(`(?m)^panic: test timed out after .*\n\s+running tests:\n\s+(\S+)`)
	failedPackage = regexp.MustCompile(`(?m)^FAIL\t` + module + `(\S+)\t`)
)

// failedTest is the innermost test that failed first, or that did not end.
func failedTest(output string) aTest {
	var name string
	end := 0
	for _, at := range failed.FindAllStringSubmatchIndex(output, -1) {
		if found := output[at[2]:at[3]]; strings.HasPrefix(found, name) {
			name, end = found, at[1]
		}
	}
	if at := timedOut.FindStringSubmatchIndex(output); name == "" && at != nil {
		name, end = output[at[2]:at[3]], at[1]
	}
	if pkg := failedPackage.FindStringSubmatch(output[end:]); name != "" && pkg != nil {
		return aTest{pkg: "." + pkg[1], name: name}
	}
	return aTest{}
}
