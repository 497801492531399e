// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/witness"
)

// current is the suite whose specs run. Ginkgo's specs are made before it is.
var current *suite

// suite is one run.
type suite struct {
	Options

	name    string
	guard   *guard.Guard
	witness *witness.Witness
	door    *guard.Door
	// api goes through the door.
	api *api.Client

	mu sync.Mutex
	// belongings are the NICs and volumes of the run's servers, each with its server.
	belongings map[belonging]string
	rows       []report.Row
}

// belonging is a NIC or a volume.
type belonging struct{ kind, id string }

func newSuite(ctx context.Context, o Options, name string) (*suite, error) {
	s := &suite{Options: o, name: name, guard: guard.New(ctx, o.Limits), belongings: map[belonging]string{}}
	s.witness = witness.New(name, o.Settle, func(text string) {
		s.say("FOUND: %s", text)
		s.guard.Stop(errors.New(text))
	})
	var err error
	if s.door, err = guard.Open(s.guard, o.Settings.Endpoint, s.witness); err != nil {
		return nil, err
	}
	s.api, err = api.New(o.Settings, s.door.URL())
	return s, err
}

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

// note adds a row to the report.
func (s *suite) note(assumption, seen string, where ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := report.Row{Assumption: assumption, Seen: seen, Where: where}
	if !slices.ContainsFunc(s.rows, func(other report.Row) bool { return other.Assumption == assumption && other.Seen == seen }) {
		s.rows = append(s.rows, row)
	}
}

func (s *suite) noted() []report.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// eventually waits for something that one boot, deletion or other matter of the API decides.
func (s *suite) eventually(ctx context.Context, actual any) AsyncAssertion {
	return Eventually(ctx, actual).WithTimeout(s.Patience).WithPolling(s.Poll)
}
