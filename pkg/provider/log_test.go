// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// logOf returns what is logged while run runs.
func logOf(t *testing.T, run func()) string {
	t.Helper()
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log) // klog writes under a lock
	defer klog.LogToStderr(true)
	run()
	klog.Flush()
	return log.String()
}

func TestEveryCallEndsWithOneLine(t *testing.T) {
	r := newRig(t)
	r.mustCreate(machine("m1"))
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		want  []string
	}{
		"success": {iaasmock.Fault{}, []string{`"GetMachineStatus"`, `outcome="OK"`, `machine="default/m1"`, `machineClass="class-a"`, "apiCalls=1", "duration="}},
		"failure": {iaasmock.Fault{Operation: "GetServer", Count: 1, Status: http.StatusForbidden, Header: http.Header{"X-Request-Id": {"req-4711"}}},
			[]string{`outcome="PermissionDenied"`, `requestID="req-`, "not authorized"}},
	} {
		t.Run(name, func(t *testing.T) {
			if row.fault.Operation != "" {
				r.cloud.Inject(row.fault)
			}
			log := logOf(t, func() { _, _ = r.status(machine("m1")) })
			if lines := strings.Count(log, "outcome="); lines != 1 {
				t.Errorf("%d lines about the outcome, want 1:\n%s", lines, log)
			}
			for _, want := range row.want {
				if !strings.Contains(log, want) {
					t.Errorf("%q is not in\n%s", want, log)
				}
			}
		})
	}
}

func TestAPanicLeavesItsStackInTheLog(t *testing.T) {
	r := newRig(t)
	r.driver = provider.NewProvider(panickingSPI{})
	log := logOf(t, func() {
		_, err := r.status(machine("m1"))
		wantCode(t, err, codes.Internal)
	})
	if !strings.Contains(log, "panickingSPI") || !strings.Contains(log, "A driver call panicked") {
		t.Errorf("no stack in\n%s", log)
	}
}
