// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// newTestProbes returns the probes of a run with a network.
func newTestProbes(t *testing.T, m *mock) *probes {
	t.Helper()
	r, err := quickOptions(m.settings).newRun(newRunName(time.Now()), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.makeNetwork(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &probes{run: r}
}

// While the API is down, each probe that sends a request is not told.
func TestProbesOfAnAPIThatIsDown(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	p := newTestProbes(t, m)
	p.patience = 100 * time.Millisecond
	m.fault(t, `{"operation":"IaaS","status":503}`)
	p.askAll(t.Context())
	if len(p.report.rows) != len(p.all()) {
		t.Errorf("%d rows", len(p.report.rows))
	}
	for _, row := range p.report.rows {
		isKnown := strings.HasPrefix(row.question, "Claims") || strings.HasPrefix(row.question, "Headers")
		if strings.Contains(row.seen, notTold) == isKnown {
			t.Errorf("%s: %s", row.question, row.seen)
		}
	}
}

// What the API answers is told, whatever it is.
func TestProbeAnswers(t *testing.T) {
	t.Parallel()
	const refusal = `{"operation":"CreateServer","status":409,"body":"{\"code\":409,\"msg\":\"no 10.0.0.1 of a@b.de\"}"}`
	for name, row := range map[string]struct {
		fault string
		ask   func(*probes) string
		want  string
	}{
		"a server that is shown late": {`{"operation":"ListServers","emptyList":true,"count":3}`, func(p *probes) string {
			return p.selector(t.Context())
		}, " s after the answer to its POST"},
		"no labels in lists": {`{"operation":"CreateServer","dropLabels":true}`, func(p *probes) string {
			p.first, _ = p.create(t.Context(), "first", nil)
			return p.labelsInLists(t.Context())
		}, "0 shown, 1 was sent"},
		"a DELETE that is refused": {`{"operation":"DeleteServer","status":409,"count":1}`, func(p *probes) string {
			p.first, _ = p.create(t.Context(), "first", nil)
			return p.deleteCreating(t.Context()) + p.getDeleted(t.Context())
		}, `refused: 409 {"code":409,"msg":"Conflict"}not told: no DELETE of the server was accepted`},
		"a POST that is refused": {refusal, func(p *probes) string {
			return p.manyLabels(t.Context())
		}, `refused: 409 {"code":409,"msg":"no (hidden) of (hidden)"}`},
		"a server that was refused": {refusal, func(p *probes) string {
			return p.selector(t.Context()) + p.labelsInLists(t.Context())
		}, `not told: its POST: refused: 409 {"code":409,"msg":"no (hidden) of (hidden)"}` + errNoServer},
		"a volume that stays": {keepsVolumes, func(p *probes) string {
			made, err := p.create(t.Context(), "error", nil)
			if err != nil {
				return err.Error()
			}
			return p.volumeAfterDelete(t.Context(), made)
		}, "with a boot volume that stays without the server"},
		"another server's answer": {`{"operation":"CreateServer","otherServer":"database"}`, func(p *probes) string {
			return p.manyLabels(t.Context())
		}, "not told: the answer to the POST shows no ID, or a server with another name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t, iaasmock.WithBootDuration(time.Hour), iaasmock.WithDeleteDuration(0))
			m.makeServer(t, "database", iaasmock.DefaultNetworkID, "")
			before := m.ids()
			p := newTestProbes(t, m)
			m.fault(t, row.fault)
			if seen := row.ask(p); !strings.Contains(seen, row.want) {
				t.Errorf("%s; want %s", seen, row.want)
			}
			if _, err := p.finish(t.Context()); err != nil {
				t.Error(err)
			}
			m.expectOnly(t, before)
		})
	}
}

// Keys, tokens, addresses and IDs are in no row and no exchange.
func TestRedact(t *testing.T) {
	for _, secret := range []string{
		"4b9a3c5e-1d2f-4a6b-8c7d-9e0f1a2b3c4d", "4B9A3C5E1D2F4A6B8C7D9E0F1A2B3C4D", "eyJhbGciOi.eyJpc3MiOi.c2ln", "eyJhbGci",
		"me@sa.stackit.cloud", "10.0.0.7", "fa:16:3e:00:01:02", "2001:db8::1", "2001:db8:0:0:0:0:0:1",
		"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
	} {
		if text := redact("a " + secret + " b"); text != "a (hidden) b" {
			t.Errorf("%s: %s", secret, text)
		}
	}
	if text := redact("503 at 12:30:45 for eu01-m, c2i.2"); strings.Contains(text, "hidden") {
		t.Error(text)
	}
}
