// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package deleteserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// requestTimeout is how long a deletion is asked for, and how long one is waited for that need not
	// have been accepted.
	requestTimeout = time.Minute
	// goneTimeout is how long one is waited for that was; the driver's own is not longer.
	goneTimeout = 10 * time.Minute
)

// Delete deletes the servers that are left (ToDelete), and reports each when its outcome is known;
// report is called by one goroutine at a time.
func (p *Plan) Delete(ctx context.Context, report func(*Server)) {
	p.wire.deletions = map[string]*deletion{}
	// A driver each: it waits with the newest session that it has opened for a project.
	drivers := map[*account.Account]*provider.Provider{}
	for _, at := range p.accounts {
		drivers[at] = &provider.Provider{SPI: p.access.Sessions}
	}
	servers := p.ToDelete()
	for _, server := range servers {
		begun := &deletion{Server: server, plan: p, driver: drivers[server.At]}
		begun.ctx, begun.cancel = context.WithCancelCause(ctx)
		begun.sent.Store(server.Shown.IsDeleting())
		p.wire.deletions[serverPath(server)] = begun
	}
	var reporting sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, server := range servers {
		group.Go(func() error {
			deletion := p.wire.deletions[serverPath(server)]
			defer deletion.cancel(nil)
			deletion.run(ctx)
			reporting.Lock()
			defer reporting.Unlock()
			report(server)
			return nil
		})
	}
	_ = group.Wait()
}

// serverPath ends the path of the requests about a server.
func serverPath(server *Server) string {
	return fmt.Sprintf("/projects/%s/regions/%s/servers/%s", server.At.Session.ProjectID, server.At.Region, server.ID)
}

// deletion is that of one server.
type deletion struct {
	*Server
	plan   *Plan
	driver *provider.Provider
	// ctx ends with the deletion. A look that refuses a DELETE ends it, too, and is its cause: no
	// other DELETE is sent.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// sent says that a DELETE was sent, and may have been accepted whatever the answer, or that the
	// server was shown DELETING.
	sent atomic.Bool
}

// run asks for the deletion, and waits until the server is proved gone: at last by reads that know of no
// deletion, and so take longest to believe that it is.
func (d *deletion) run(ctx context.Context) {
	failed, sent, isRefused := d.ask(), d.sent.Load(), d.ctx.Err() != nil
	switch {
	case ctx.Err() != nil, failed != nil && !sent && !isRefused:
		d.endOf(ctx, failed)
		return
	case isRefused && !sent:
		d.end(Refused, "%v", failed)
		return
	case isRefused:
		failed = fmt.Errorf("a DELETE may have been accepted, and no other was sent: %w", failed)
	}
	if errors.Is(failed, errLate) {
		failed = d.wait(ctx, goneTimeout)
	} else if failed != nil && d.wait(ctx, requestTimeout) == nil {
		failed = nil
	}
	switch {
	case failed != nil:
	case sent:
		failed = d.wait(ctx, goneTimeout)
	default: // an API may show an empty project for longer than proofs take
		failed = errors.New("no DELETE was sent")
	}
	d.endOf(ctx, failed)
}

// errLate says that the deletion has begun, and has not ended yet.
var errLate = errors.New("its deletion takes long")

// ask asks for the deletion, again and again as the driver does. nil means that the driver has seen it
// gone, which is no proof: it may not be the Machine's any more.
func (d *deletion) ask() error {
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	_, err := d.driver.DeleteMachine(ctx, d.request())
	answer, _ := status.FromError(err)
	switch refused := context.Cause(d.ctx); {
	case refused != nil:
		return refused
	case ctx.Err() != nil && d.sent.Load():
		return errLate
	case err != nil && answer.Code() == codes.FailedPrecondition: // the driver's rule of whose it is
		d.cancel(errors.New(answer.Message()))
		return context.Cause(d.ctx)
	default:
		return err
	}
}

func (d *deletion) wait(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return d.driver.WaitUntilServerDeleted(ctx, d.At.Session.ProjectID, d.At.Region, d.ID)
}

// endOf says what became of the server: it is proved gone, or that failed with err.
func (d *deletion) endOf(ctx context.Context, err error) {
	if ctx.Err() != nil {
		if d.end(Unknown, "interrupted, no DELETE was accepted"); d.sent.Load() {
			d.end(Unknown, "interrupted, a DELETE may have been accepted")
		}
		return
	}
	if err == nil {
		d.end(Gone, "")
		return
	}
	failure := err.Error()
	if answer, ok := status.FromError(err); ok {
		failure = answer.Message()
	}
	switch server, err := d.At.Server(ctx, d.ID); {
	case err == nil:
		d.end(StillThere, "it is %s: %s", server.Status, failure)
	case provider.IsNotFound(err):
		d.end(Unknown, "a read does not show it, which proves nothing: %s", failure)
	default:
		d.end(Unknown, "%v; %s", d.At.Failure(err), failure)
	}
}

// request is that of a Machine of which its name and ProviderID are known, so that the driver
// deletes this one server and looks for no other. The class may be gone, so one is made of what the
// server's labels say: the driver compares them once more.
func (d *deletion) request() *driver.DeleteMachineRequest {
	cluster := account.ClusterLabels(d.Shown.Labels)
	spec, _ := json.Marshal(apis.ProviderSpec{Region: d.At.Region, Labels: cluster}) // never fails: texts alone
	return &driver.DeleteMachineRequest{
		Machine: &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: d.Shown.Name, CreationTimestamp: metav1.NewTime(d.Shown.CreatedAt)},
			Spec:       v1alpha1.MachineSpec{ProviderID: providerid.Format(d.At.Session.ProjectID, d.ID)},
		},
		MachineClass: &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: d.Shown.Labels[provider.StackitMachineClassLabel]},
			ProviderSpec: runtime.RawExtension{Raw: spec},
		},
		Secret: d.At.Secret,
	}
}

// wire is the transport of all sessions of the command. Right before each attempt of a DELETE it looks
// whether the server still is to be deleted: after all that may take long, such as the retries and
// limits of the session's chain.
type wire struct {
	next http.RoundTripper
	// deletions are those under way, by the path of their server. It does not change while there
	// are any.
	deletions map[string]*deletion
}

// dateKey is of a context's *time.Time, which is set to the Date of the answer.
type dateKey struct{}

// read reads a server, with the Date of the answer that shows it.
func read(ctx context.Context, at *account.Account, id string) (*provider.Server, time.Time, error) {
	var date time.Time
	server, err := at.Server(context.WithValue(ctx, dateKey{}, &date), id)
	return server, date, err
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodPost: // POSTs ask for access tokens: a deletion has no other
		response, err := w.next.RoundTrip(request)
		if date, wanted := request.Context().Value(dateKey{}).(*time.Time); wanted && err == nil {
			*date = spi.Date(response.Header)
		}
		return response, err
	}
	path := request.URL.Path
	deletion, ok := w.deletions[path[max(0, strings.Index(path, "/projects/")):]]
	if !ok || request.Method != http.MethodDelete {
		return nil, fmt.Errorf("%s %s is about no server to be deleted", request.Method, path)
	}
	answer, err := deletion.look(request)
	if err != nil {
		deletion.cancel(err) // first: the chain repeats a request after an error alone
	}
	if answer != nil || err != nil {
		return answer, err
	}
	deletion.sent.Store(true)
	return w.next.RoundTrip(request)
}

// look returns an error unless the server still is as it was shown, and nobody needs it. For one that
// is being deleted, or that a read does not show, it answers in the API's place: nothing is sent, and
// the wait decides.
func (d *deletion) look(request *http.Request) (*http.Response, error) {
	server, date, err := read(request.Context(), d.At, d.ID)
	switch {
	case provider.IsNotFound(err):
		return answer(request, http.StatusNotFound, `{"code":404,"msg":"server not found"}`), nil
	case err != nil:
		return nil, fmt.Errorf("it could not be read once more: %w", d.At.Failure(err))
	case server.Name != d.Shown.Name || !server.CreatedAt.Equal(d.Shown.CreatedAt),
		!maps.Equal(server.Labels, d.Shown.Labels), !maps.Equal(server.Metadata, d.Shown.Metadata):
		return nil, errors.New("it has changed since it was shown: run this again")
	case server.IsDeleting():
		d.sent.Store(true)
		return answer(request, http.StatusNoContent, ""), nil
	}
	known, err := d.plan.facts(request.Context())
	if err != nil {
		return nil, err
	}
	if reason := d.plan.refusal(server, date, known); reason != "" {
		return nil, errors.New(reason)
	}
	return nil, nil
}

// answer is one in the API's form.
func answer(request *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
