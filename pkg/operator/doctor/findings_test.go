// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// shown are the lines of code that were on the way to a Finding.
var shown sync.Map

// noting is a Doctor's Report that notes these lines.
func noting(next func(report.Finding)) func(report.Finding) {
	return func(found report.Finding) {
		callers := make([]uintptr, 32)
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
		for frame, more := frames.Next(); more; frame, more = frames.Next() {
			shown.Store(fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line), true)
		}
		if next != nil {
			next(found)
		}
	}
}

// reports finds the lines that report a Finding.
var reports = regexp.MustCompile(`\w\.(fine|hint|wrong|unknown|unread|report)\(`)

// Every Finding that a check can report is one of a test's, if all tests run.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, filter := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(filter).Value.String() != "" {
			os.Exit(code)
		}
	}
	if code == 0 {
		code = notShown()
	}
	os.Exit(code)
}

// notShown prints the lines with a Finding that no test shows, and returns the exit code.
func notShown() (code int) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for i, line := range strings.Split(string(source), "\n") {
			at := fmt.Sprintf("%s:%d", file, i+1)
			if _, isShown := shown.Load(at); !isShown && !strings.HasSuffix(file, "_test.go") && reports.MatchString(line) {
				code = 1
				fmt.Fprintf(os.Stderr, "%s: no test shows this finding: %s\n", at, strings.TrimSpace(line))
			}
		}
	}
	return code
}
