// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"golang.org/x/time/rate"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// inMemory serves requests without a network, so that synctest's time can pass.
type inMemory struct{ cloud http.Handler }

func (m inMemory) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		cause := recover()
		if abort, ok := cause.(error); ok && errors.Is(abort, http.ErrAbortHandler) { // a reset connection
			response, err = nil, cmp.Or(request.Context().Err(), io.ErrUnexpectedEOF)
		} else if cause != nil {
			panic(cause)
		}
	}()
	served := request.Clone(request.Context())
	if served.Body == nil {
		served.Body = http.NoBody // as a server has it
	}
	answer := httptest.NewRecorder()
	m.cloud.ServeHTTP(answer, served)
	return answer.Result(), nil
}

// The manager passes a context without a deadline: every call has its own.
func TestEveryCallEnds(t *testing.T) {
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		call  func(*rig) error
		after time.Duration
	}{
		"CreateMachine whose server never boots": {iaasmock.Fault{Operation: "CreateServer", NeverBoots: true},
			func(r *rig) error { _, err := r.create(machine("m1")); return err }, 5 * time.Minute},
		"DeleteMachine whose server never goes": {iaasmock.Fault{Operation: "DeleteServer", NeverGone: true},
			func(r *rig) error { r.mustCreate(machine("m1")); return r.delete(r.deleted(machine("m1"))) }, 10 * time.Minute},
		"GetMachineStatus of a silent API": {iaasmock.Fault{Operation: "ListServers", Delay: 24 * time.Hour},
			func(r *rig) error { _, err := r.status(machine("m1")); return err }, 2 * time.Minute},
		"ListMachines of a silent API": {iaasmock.Fault{Operation: "ListServers", Delay: 24 * time.Hour},
			func(r *rig) error {
				_, err := r.driver.ListMachines(context.Background(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
				return err
			}, 2 * time.Minute},
		"InitializeMachine of a silent API": {iaasmock.Fault{Operation: "ListServers", Delay: 24 * time.Hour},
			func(r *rig) error { _, err := r.initialize(machine("m1")); return err }, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRigInMemory(t)
				r.cloud.Inject(row.fault)
				start := time.Now()
				wantCode(t, row.call(r), codes.DeadlineExceeded)
				if took := time.Since(start); took < row.after || took > row.after+time.Minute {
					t.Errorf("ended after %s, want %s", took, row.after)
				}
			})
		})
	}
}

// newRigInMemory is a rig for use within synctest.
func newRigInMemory(t testing.TB, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithoutAuthentication(), iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
	}, options...)...)
	r := &rig{t: t, cloud: cloud, api: watched(t, cloud)}
	r.driver = provider.NewProvider(r.inMemorySessions(),
		provider.WithActingSince(func() time.Time { return time.Now().Add(-time.Hour) }))
	r.makeInputs()
	return r
}

func (r *rig) inMemorySessions() *spi.PluginSPIImpl {
	return &spi.PluginSPIImpl{
		Config:    spi.Config{Endpoint: "http://iaas.invalid", NoAuth: true},
		Limiter:   rate.NewLimiter(50, 100),
		Transport: inMemory{r.api},
	}
}

func TestACallWithoutAContext(t *testing.T) {
	r := newRig(t)
	request := &driver.GetMachineStatusRequest{Machine: machine("m1"), MachineClass: r.class, Secret: r.secret}
	_, err := r.driver.GetMachineStatus(nil, request) //nolint:staticcheck // what a careless caller does
	wantCode(t, err, codes.NotFound)
}

func TestWaitUntil(t *testing.T) {
	r := newRig(t)
	p, ok := r.driver.(*provider.Provider)
	if !ok {
		t.Fatalf("NewProvider returns a %T", r.driver)
	}
	wait := func(of func(context.Context, string, string, string) error, id string) error {
		return of(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id)
	}
	wantCode(t, wait(p.WaitUntilServerRunning, "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"), codes.FailedPrecondition)
	r.list() // opens a session
	id := r.makeServer("m1", nil)
	if err := wait(p.WaitUntilServerRunning, id); err != nil {
		t.Fatal(err)
	}
	if r.onlyServer().Status != iaasmock.StatusActive {
		t.Error("not running yet")
	}
	if err := r.delete(machine("m1")); err != nil {
		t.Fatal(err)
	}
	if err := wait(p.WaitUntilServerDeleted, id); err != nil {
		t.Fatal(err)
	}
	wantCode(t, wait(p.WaitUntilServerRunning, id), codes.NotFound)
}
