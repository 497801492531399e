// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	. "github.com/onsi/gomega"
)

// The API alone comes first: a run against one that is not what the driver needs ends there,
// after one server.
var _ = Describe("In a real project", Ordered, func() {
	Describe("the API", apiSpecs)
	Describe("the driver", driverSpecs)
})

// failures is Ginkgo's testing.T.
type failures struct{}

// Fail does nothing: RunSpecs says it, too.
func (failures) Fail() {}

// run runs the specs, and looks at the project beside them.
func (s *suite) run() error {
	current = s
	defer func() { current = nil }()
	var last Report
	suiteConfig, reporterConfig := GinkgoConfiguration()
	suiteConfig.FailFast, suiteConfig.Timeout = true, 2*s.Limits.Duration
	reporterConfig.NoColor, reporterConfig.Verbose = true, true
	formatter.ColorableStdOut = s.Out
	RegisterFailHandler(Fail)
	ReportAfterSuite("result", func(r Report) { last = r })

	watching, stop := context.WithCancel(s.guard.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(watching)
	}()
	passed := RunSpecs(failures{}, "A driver's life in the real cloud", suiteConfig, reporterConfig,
		AroundNode(func(ctx context.Context, body func(context.Context)) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(s.guard.Context(), func() { cancel(s.guard.Err()) })()
			body(ctx)
		}))
	stop()
	<-watched
	if err := s.guard.Err(); err != nil {
		return err
	}
	if passed {
		return nil
	}
	return firstFailure(last)
}

// firstFailure returns what Ginkgo has to say about the spec that failed.
func firstFailure(r Report) error {
	for _, spec := range r.SpecReports {
		if spec.Failed() {
			return fmt.Errorf("%s: %s", spec.FullText(), brief(spec.Failure.Message))
		}
	}
	return fmt.Errorf("the specs did not pass: %s", strings.Join(r.SpecialSuiteFailureReasons, ", "))
}

// brief is a text on one line: the whole of it is above.
func brief(text string) string {
	const most = 1000
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
