// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// ticket marks the one request that a fault is meant for.
type ticket struct{}

// carryOut lets the cloud answer the request, after a look whether the process may
// ask for that.
func (w *world) carryOut(request *http.Request, c call, u callFault) (*http.Response, error) {
	served := request.Clone(context.WithValue(request.Context(), ticket{}, c.number))
	w.lookEmpty(0, u.hiccup)
	if u.trouble != nil {
		fault := u.trouble.fault
		if fault.OtherServer != "" {
			fault.OtherServer = w.anothers(c)
		}
		fault.Count = 1
		fault.Match = func(r *http.Request) bool { return r.Context().Value(ticket{}) == c.number }
		defer w.cloud.Inject(fault)()
		w.met(u.trouble)
	}
	w.mayAsk(c, request)
	var before []iaasmock.Server
	if c.operation == opCreate {
		before = w.cloud.Servers()
	}
	if refusal := w.refuseElsewhere(request, c); refusal != nil {
		return refusal, nil
	}
	response, err := serve(w.cloud, served)
	if c.operation == opCreate {
		w.nameNew(before, c)
	}
	w.log("%s %s", c, outcome(u, response, err))
	if request.Method != http.MethodGet {
		w.check()
	}
	return response, err
}

// carryOutLate does so once the sender has given up.
func (w *world) carryOutLate(request *http.Request, c call, late time.Duration) {
	w.log("%s will be carried out %s later", c, late)
	w.late.Go(func() {
		_ = spi.Sleep(context.Background(), w.clock, late)
		// Nobody waits for the answer, which a fault may hold back for ever.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), time.Minute)
		defer cancel()
		request := request.Clone(ctx)
		if response, err := w.carryOut(request, c, callFault{}); err == nil {
			_ = response.Body.Close()
		}
	})
}

func outcome(u callFault, response *http.Response, err error) string {
	text := ""
	if u.trouble != nil {
		text = "(" + u.trouble.name + ") "
	}
	if err != nil {
		return text + "-> " + err.Error()
	}
	return text + "-> " + response.Status
}

// nameNew gives the servers their names that were not there before.
func (w *world) nameNew(before []iaasmock.Server, c call) {
	known := map[string]bool{}
	for _, server := range before {
		known[server.ID] = true
	}
	for _, server := range w.cloud.Servers() {
		if !known[server.ID] && w.trace.name(server.ID) == "" {
			w.trace.named(server.ID)
			who := ownerOf(&server)
			w.checkElsewhere(who, c)
			w.log("%s is made for %s of %s", server.ID, who.machine, who.cluster)
		}
	}
}
