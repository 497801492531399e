// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

type panickingSPI struct{}

func (panickingSPI) Session(spi.Credentials) (*spi.Session, error) { panic("s3cr3t") }

// TestAPanicIsAnErrorWithoutDetails, which the log has. It also sees that each method counts its failures by
// its own name, which alerts read.
func TestAPanicIsAnErrorWithoutDetails(t *testing.T) {
	for name, call := range everyCall {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.driver = provider.NewProvider(panickingSPI{})
			before := internalErrors(r, name)
			var err error
			log := logOf(t, func() { err = call(r) })
			wantCode(t, err, codes.Internal)
			if internalErrors(r, name) <= before {
				t.Error("the failure is not counted")
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q shows what the panic said", err)
			}
			if !strings.Contains(log, "panickingSPI") || !strings.Contains(log, "Driver call panicked") {
				t.Errorf("no stack in\n%s", log)
			}
		})
	}
}

// internalErrors is how many of a method's failures the manager's metric has.
func internalErrors(r *rig, method string) float64 {
	r.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.DriverFailedAPIRequests)
	return seriesOf(r.t, registry, "mcm_cloud_api_driver_requests_failed_total")["Internal "+method+" stackit"]
}

// Requests point into the manager's caches.
func TestRequestsAreNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		m := machine("m1")
		machineBefore, classBefore, secretBefore := m.DeepCopy(), r.class.DeepCopy(), r.secret.DeepCopy()
		created := r.mustCreate(m)
		if _, err := r.initialize(m); err != nil {
			t.Fatal(err)
		}
		if _, err := r.status(m); err != nil {
			t.Fatal(err)
		}
		r.list()
		gone := withID(r.deleted(m), created.ProviderID)
		goneBefore := gone.DeepCopy()
		r.mustDelete(gone)
		for name, diff := range map[string]string{
			"Machine": cmp.Diff(machineBefore, m), "deleted Machine": cmp.Diff(goneBefore, gone),
			"MachineClass": cmp.Diff(classBefore, r.class), "Secret": cmp.Diff(secretBefore, r.secret),
		} {
			if diff != "" {
				t.Errorf("%s was changed (-before +after):\n%s", name, diff)
			}
		}
	})
}

// logOf returns what is logged while run runs.
func logOf(t *testing.T, run func()) string { t.Helper(); return logAt(t, "0", run) }

// logAt is logOf at a verbosity.
func logAt(t *testing.T, verbosity string, run func()) string {
	t.Helper()
	var level klog.Level
	if err := level.Set(verbosity); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = level.Set("0") }()
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log) // klog writes under a lock
	defer klog.LogToStderr(true)
	run()
	klog.Flush()
	return log.String()
}

// A server that is busy for minutes is asked to go with each poll.
func TestAFailureThatLastsIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.makeRunning("m1")
		<-time.After(2 * time.Minute)
		r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusConflict, Duration: 5 * time.Minute})
		log := logAt(t, "2", func() { r.mustRemove(machine("m1")) })
		const line = "API call failed; retrying"
		if lines := strings.Count(log, line); lines != 1 {
			t.Errorf("%d lines say %q, want 1", lines, line)
		}
		_, fields, _ := strings.Cut(log, line)
		wantSaid(t, fields, `machine="m1"`, `machineClass="class-a"`, "status 409")
	})
}

func TestEveryCallEndsWithOneLine(t *testing.T) {
	forbidden := iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusForbidden,
		Header: http.Header{"X-Request-Id": {"req-4711"}}}
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		want  []string
	}{
		"success": {iaasmock.Fault{}, []string{
			`"GetMachineStatus"`, `outcome="OK"`, `machine="default/m1"`, `machineClass="class-a"`, "apiCalls=1", "duration=",
		}},
		"failure": {forbidden, []string{`outcome="PermissionDenied"`, `requestID="req-`, "not authorized"}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			if row.fault.Operation != "" {
				r.cloud.Inject(row.fault)
			}
			log := logOf(t, func() { _, _ = r.status(withID(machine("m1"), created.ProviderID)) })
			if lines := strings.Count(log, "outcome="); lines != 1 {
				t.Errorf("%d lines about the outcome, want 1:\n%s", lines, log)
			}
			wantSaid(t, log, row.want...)
		})
	}
}

// Whoever writes a Machine or a MachineClass must not fill the log: etcd takes a ProviderID of a megabyte, and a
// warning of 1.4 MB was seen.
func TestWhatComesFromOutsideIsCutInTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, and nothing in it is concurrent")
	}
	long := strings.Repeat("x", 400_000)
	listed := func(class, field string, value any) func(*rig) error {
		return func(r *rig) error {
			r.class.Name = class
			r.setSpec(func(spec map[string]any) { spec[field] = value })
			r.list()
			return r.listErr()
		}
	}
	created := func(field string) func(*rig) error {
		return func(r *rig) error {
			r.setSpec(func(spec map[string]any) { spec[field] = "blue" })
			r.mustCreate(machine("m1"))
			return r.createErr(machine("m2"))
		}
	}
	for name, row := range map[string]struct {
		call func(*rig) error
		once string // is logged, beside the class
	}{
		"a ProviderID": {func(r *rig) error {
			return r.statusErr(withID(machine("m1"), provider.StackitProviderName+"://"+long))
		}, ""},
		"a ProviderID of another project": {func(r *rig) error {
			return r.delete(withID(machine("m1"), "stackit://10000000-0000-4000-8000-00000000000f/"+long))
		}, ""},
		"a Machine's name":                 {func(r *rig) error { return r.remove(machine(long)) }, ""},
		"a MachineClass":                   {listed(long, "userData", ""), ""},
		"a MachineClass's unknown cluster": {listed(long, "labels", map[string]any{clusterLabel: ""}), ""},
		"a MachineClass without a cluster": {listed(long, "labels", nil), ""},
		"an unknown field":                 {created("colour"), "colour"},
		"a long unknown field":             {created(long), "unknown or duplicate fields"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			log := logOf(t, func() {
				if err := row.call(r); err != nil && len(err.Error()) > 1024 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			})
			for line := range strings.Lines(log) {
				if len(line) > 1024 {
					t.Errorf("a line has %d bytes: %.200s", len(line), line)
				}
			}
			if row.once != "" && (strings.Count(log, row.once) != 1 || !strings.Contains(log, `machineClass="class-a"`)) {
				t.Errorf("want %q once, and the class, in:\n%.2000s", row.once, log)
			}
		})
	}
}

// What an API says and what somebody writes into a class or a Machine is printed by the manager's log and by kubectl
// as it is: none of it may command a terminal, or forge a line.
func TestNothingFromOutsideCommandsATerminal(t *testing.T) {
	const hostile = "a\x1b]0;owned\x07\u009b31m\u202e\x00\nb"
	says, err := json.Marshal(map[string]any{"code": 400, "msg": hostile})
	if err != nil {
		t.Fatal(err)
	}
	inSpec := func(field string, value any) func(*rig) error {
		return func(r *rig) error {
			r.setSpec(func(spec map[string]any) { spec[field] = value })
			return r.createErr(machine("m1"))
		}
	}
	for name, call := range map[string]func(*rig) error{
		"a message of the API": func(r *rig) error {
			r.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusBadRequest, Body: string(says)})
			return r.createErr(machine("m1"))
		},
		"the reason of a server in ERROR": func(r *rig) error {
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", FinalStatus: "ERROR", ErrorMessage: hostile})
			return r.createErr(machine("m1"))
		},
		"a label's key":    inSpec("labels", map[string]any{hostile: "a"}),
		"a label's value":  inSpec("labels", map[string]any{"a": hostile}),
		"a metadata key":   inSpec("metadata", map[string]any{hostile: 1}),
		"a machine type":   inSpec("machineType", hostile),
		"an unknown field": inSpec(hostile, 1),
		"a ProviderID":     func(r *rig) error { return r.statusErr(withID(machine("m1"), hostile)) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			told := ""
			log := logAt(t, "4", func() { told = fmt.Sprint(call(r)) })
			for _, text := range append(slices.Collect(strings.Lines(log)), told) {
				text = strings.TrimSuffix(text, "\n")
				if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(text, "\t") {
					t.Errorf("%q is not one line of printable text", text)
				}
			}
		})
	}
}
