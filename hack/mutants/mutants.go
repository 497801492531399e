// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

// mutant breaks a rule of the driver.
type mutant struct {
	// rule that is broken.
	rule  string
	edits []edit
}

// edit replaces a text that is in the file exactly once.
type edit struct{ file, old, new string }

const (
	create    = "pkg/provider/create.go"
	deletion  = "pkg/provider/delete.go"
	find      = "pkg/provider/find.go"
	identity  = "pkg/provider/identity.go"
	errorsGo  = "pkg/provider/errors.go"
	waits     = "pkg/provider/waits.go"
	core      = "pkg/provider/core.go"
	nics      = "pkg/provider/nics.go"
	ledger    = "pkg/provider/ledger.go"
	retry     = "pkg/spi/retry.go"
	fence     = "pkg/spi/fence.go"
	ownedFunc = "func (i identity) checkOwned(server *Server, byID bool) error {\n"
)

// mutants is the list. Each must be noticed by a test.
var mutants = []mutant{
	{"wait settle after a POST before the next", []edit{{ledger, "return e.posted.Add(settle)", "return e.posted"}}},
	{"wait settle after a predecessor may have POSTed", []edit{{"pkg/provider/provider.go", "return since.Add(*p.settle)", "return time.Time{}"}}},
	{"check that a server is ours before touching it", []edit{{identity, ownedFunc, ownedFunc + "\tif server != nil {\n\t\treturn nil\n\t}\n"}}},
	{"403 is never gone", []edit{{errorsGo, "api.StatusCode == http.StatusNotFound && api.Message", "(api.StatusCode == http.StatusNotFound || api.StatusCode == http.StatusForbidden) && api.Message"}}},
	{"a 404 of a gateway is not the API's", []edit{{errorsGo, `api.Message != "" && !aboutProject`, `!aboutProject`}}},
	{"a 404 about the project is not about a server", []edit{{errorsGo, ` && !aboutProject.MatchString(api.Message)
}`, "\n}"}}},
	{"never send a POST again that may have been accepted", []edit{{retry, "return method != http.MethodPost || isDialError(err)", "return true"}}},
	{"never send a POST again that a gateway gave up", []edit{{retry, "return method != http.MethodPost\n", "return true\n"}}},
	{"stay in the cluster's scope", []edit{
		{identity, "selector := maps.Clone(i.cluster)\n\tselector[StackitMachineLabel]", "selector := map[string]string{}\n\tselector[StackitMachineLabel]"},
		{identity, "selector := maps.Clone(i.cluster)\n\tselector[StackitMachineClassLabel]", "selector := map[string]string{}\n\tselector[StackitMachineClassLabel]"},
		{identity, "case len(i.cluster) > 0:\n\t\treturn i.cluster", "case len(i.cluster) > 0:\n\t\treturn nil"},
		{identity, "if actual, ok := server.Labels[key]; ok && actual != want {", "if actual, ok := server.Labels[key]; ok && actual != want && want == \"\" {"},
	}},
	{"a server counts by its name only where the request names it", []edit{{identity, "case !labelled && byID && server.Name == i.machine:", "case server.Name == i.machine:"}}},
	{"status by name believes one running server only", []edit{{find, "if len(servers) != 1 || servers[0].Status != statusActive {", "if len(servers) == 0 {"}}},
	{"gone needs more than one 404", []edit{{waits, "listed := l.find(ctx, selector, when{patient: true})", "if ctx.Err() == nil {\n\t\treturn nil, errGone\n\t}\n\tlisted := l.find(ctx, selector, when{patient: true})"}}},
	{"an empty list is not believed while it may lag", []edit{{create, "case len(own) == 0 && !named.began.Before(certain):", "case len(own) == 0 && !certain.IsZero() || len(own) == 0:"}}},
	{"a pause in the middle of a look-up counts", []edit{{create, "certain := known.certainFrom(c.settle, c.predecessors())", "certain := known.certainFrom(c.settle, time.Time{})"}}},
	{"no attempt is sent after a pause", []edit{{fence, "f.heldUntil = now.Add(f.hold)", "f.heldUntil = now"}}},
	{"retries of reads are reads, too", []edit{{retry, "if attempt > 1 && request.Method == http.MethodGet {", "if attempt > maxAttempts {"}}},
	{"a tick hides no pause", []edit{{fence, "\tfor {\n\t\tf.held()\n", "\tfor {\n\t\tf.mu.Lock()\n\t\tf.ticked = f.clock.Now()\n\t\tf.mu.Unlock()\n"}}},
	{"many who wait share a list a tick", []edit{{"pkg/provider/schedule.go", "crowd = 50", "crowd = 5000"}}},
	{"DeleteMachine believes \"nothing there\" only after settle", []edit{{deletion, "otherwiseKnown || !named.began.Before(d.certain)", "otherwiseKnown || len(named.value) == 0"}}},
	{"a server that is being deleted hides no other", []edit{{deletion, `serverID != "" || anyStays(servers)`, `serverID != "" || len(servers) > 0`}}},
	{"one request for a server at a time", []edit{{ledger, "if !e.posting && e.posted", "if e.posted"}}},
	{"DeleteMachine waits until the server is gone", []edit{{deletion, "for i := range servers {\n\t\tif err := c.awaitGone(", "for i := range servers[:0] {\n\t\tif err := c.awaitGone("}}},
	{"DeleteMachine takes every server of the Machine", []edit{{deletion, `if serverID != "" && d.machine.DeletionTimestamp == nil {`, `if serverID != "" {`}}},
	{"a request of the orphan collector is about one server", []edit{{deletion, `if serverID != "" && d.machine.DeletionTimestamp == nil {`, `if serverID == "never" {`}}},
	{"a deletion that failed is asked for again", []edit{{deletion, "server, err := c.awaitDeletion(ctx, serverID, proof)\n\tif err == nil {", "server, err := c.awaitDeletion(ctx, serverID, proof)\n\tif err == nil && server == nil {"}}},
	{"servers in ERROR are deleted", []edit{{create, "if err := c.discard(ctx, []Server{*server}); err != nil {\n\t\t// The fault", "if server.Status == \"\" {\n\t\t// The fault"}}},
	{"servers in ERROR are not adopted", []edit{{create, "if err == nil && !server.leaving() && server.Status != statusError {", "if err == nil && !server.leaving() {"}}},
	{"second servers are deleted", []edit{{create, "if rest := servers[1:]; len(rest) > 0 {", "if rest := servers[1:]; len(rest) > 99 {"}}},
	{"two calls never POST for one Machine", []edit{{create, "if !c.ledger.claim(c.key, seen) {", "if !c.ledger.claim(c.key, seen) && c.machine == \"\" {"}}},
	{"the ledger knows the server that was made", []edit{{create, "e.serverID, e.posting, e.posted = server.ID, false, c.inventory.clock.Now()", "e.posting, e.posted = false, c.inventory.clock.Now()"}}},
	{"a lost POST is remembered", []edit{{create, "case !outcomeUnknown(err):", "case err != nil:"}}},
	{"status tells that the server is not initialized", []edit{{core, "if !initialized {", "if !initialized && server == nil {"}}},
	{"the initialization is asked for in any state", []edit{{core, "\tc.adopt(server.ID)\n\tinitialized, err", "\tif server.Status != statusActive {\n\t\treturn response, nil\n\t}\n\tc.adopt(server.ID)\n\tinitialized, err"}}},
	{"allowed addresses are added, not replaced", []edit{{nics, "append(slices.Clone(nic.AllowedAddresses), missing...)", "missing"}}},
	{"a created server has its addresses", []edit{{create, "case err == nil && c.noteNICs(nics):", "case err == nil && (c.noteNICs(nics) || len(nics) >= 0):"}}},
	{"a failed read is not a failed machine", []edit{{waits, "\t\tdefault:\n\t\t\tklog.V(2)", "\t\tcase err != nil:\n\t\t\treturn nil, err\n\t\tdefault:\n\t\t\tklog.V(2)"}}},
	{"errors have no brackets", []edit{{errorsGo, `text = strings.NewReplacer("[", "(", "]", ")").Replace(text)`, ``}}},
	{"a token that is refused is dropped", []edit{{"pkg/spi/auth.go", "a.tokens.drop(token)", "_ = token"}}},
	{"an exhausted class is asked for again after a minute", []edit{{"pkg/provider/exhaustion.go", "found.spec != spec || !e.clock.Now().Before(found.until)", "found.spec != spec"}}},
	{"no error repeats userData", []edit{{"pkg/provider/sdk_client.go", "if !errors.As(err, &api) {\n\t\treturn err\n\t}\n\tfor", "if !errors.As(err, &api) || userData != \"\" {\n\t\treturn err\n\t}\n\tfor"}}},
}
