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
	reads     = "pkg/provider/reads.go"
	create    = "pkg/provider/create.go"
	deletion  = "pkg/provider/delete.go"
	status    = "pkg/provider/status.go"
	ownership = "pkg/provider/ownership.go"
	errorsGo  = "pkg/provider/errors.go"
	openstack = "pkg/provider/openstack.go"
	gone      = "pkg/provider/gone.go"
	waitGo    = "pkg/provider/wait.go"
	core      = "pkg/provider/core.go"
	request   = "pkg/provider/request.go"
	providers = "pkg/provider/provider.go"
	nics      = "pkg/provider/nics.go"
	sdkClient = "pkg/provider/sdk_client.go"
	ledger    = "pkg/provider/internal/ledger/ledger.go"
	coalesce  = "pkg/provider/internal/coalesce/coalesce.go"
	retry     = "pkg/spi/retry.go"
	pace      = "pkg/spi/pace.go"
	fence     = "pkg/spi/fence.go"
	identity  = "pkg/spi/identity.go"
	keyGo     = "pkg/spi/key.go"
	console   = "pkg/provider/console.go"
	metricsGo = "pkg/provider/metrics.go"
	ownedFunc = "func (i identity) checkOwned(server *Server, byID bool) error {\n"
)

// mutants is the list. Each must be noticed by a test.
var mutants = []mutant{
	{"wait settle after a POST before the next", []edit{{ledger, "ended.Add(e.settle); settled.After", "ended; settled.After"}}},
	{"wait settle after a predecessor may have POSTed", []edit{{providers, "return since.Add(*p.settle)", "return time.Time{}"}}},
	{"check that a server is ours before touching it", []edit{{ownership, ownedFunc, ownedFunc + "\tif server != nil {\n\t\treturn nil\n\t}\n"}}},
	{"403 is never gone", []edit{{errorsGo, "e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusGone", "e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusForbidden"}}},
	{"a server's ID is a UUID", []edit{{sdkClient, "!validation.IsUUID(server.GetId())", "server.GetId() == \"\" || validation.IsUUID(\"\")"}}},
	{"a 404 of a gateway is not the API's", []edit{{errorsGo, `e.Message != "" && !aboutProject`, `!aboutProject`}}},
	{"a 404 about the project is not about a server", []edit{{errorsGo, ` && !aboutProject.MatchString(e.Message)
}`, "\n}"}}},
	{"never send a POST again that may have been accepted", []edit{{retry, "(method != http.MethodPost || isDialError(err))", "method != \"\""}}},
	{"never send a POST again that a gateway gave up", []edit{{retry, "return method != http.MethodPost\n", "return true\n"}}},
	{"stay in the cluster's scope", []edit{
		{ownership, "maps.Copy(selector, i.cluster)\n\tselector[StackitMachineLabel]", "selector[StackitMachineLabel]"},
		{ownership, "maps.Copy(selector, i.cluster)\n\tselector[StackitMachineClassLabel]", "selector[StackitMachineClassLabel]"},
		{ownership, "case len(i.cluster) > 0:\n\t\treturn i.cluster", "case len(i.cluster) > 0:\n\t\treturn nil"},
		{ownership, "if actual, ok := server.Labels[key]; ok && actual != want {", "if actual, ok := server.Labels[key]; ok && actual != want && want == \"\" {"},
	}},
	{"a server counts by its name only where the request names it", []edit{{ownership, "case !labelled && byID && server.Name == i.machine,", "case server.Name == i.machine,"}}},
	{"an empty look-up is not believed while lists may lag", []edit{{create, "if search.conclusive(named) {", "if named.began.IsZero() || true {"}}},
	{"DeleteMachine believes \"nothing there\" only once it is certain", []edit{{deletion, "if search.conclusive(found) {", "if found.began.IsZero() || true {"}}},
	{"one request for a server at a time", []edit{{ledger, "claimed = !e.posting && e.claims", "claimed = e.claims"}}},
	{"two calls never POST for one Machine", []edit{{create, "if !c.ledger.Claim(c.key, seen) {", "if !c.ledger.Claim(c.key, seen) && c.machine == \"\" {"}}},
	{"the ledger knows the server that was made", []edit{{ledger, "e.posting, e.open[serverID] = false, now\n\t\te.setServer(serverID)", "e.posting, e.open[serverID] = false, now"}}},
	{"a lost POST is remembered", []edit{{create, "end := c.ledger.OutcomeUnknown", "end := c.ledger.Refused"}}},
	{"DeleteMachine waits until the server is gone", []edit{{deletion, "errs[i] = p.awaitGone(ctx)", "_ = p"}}},
	{"DeleteMachine takes every server of the Machine", []edit{{core, "if err = c.deleteAll(ctx); err == nil {", "if err = c.deleteNamed(ctx); err == nil {"}}},
	{"a request without a deletionTimestamp is about one server", []edit{{core, "err = c.deleteNamed(ctx)\n", "err = c.deleteAll(ctx)\n"}}},
	{"a deletion that failed is asked for again", []edit{{gone, "case a.retried:", "case a.progress != notAsked:"}}},
	{"a deletion is never given up silently", []edit{{gone, "case a.retried:\n\t\treturn giveUp", "case a.retried:\n\t\treturn waitOn"}}},
	{"what a list shows of a stuck deletion may be old", []edit{{gone, "case seen.listed && !a.getsFail:", "case false:"}}},
	{"servers in ERROR are deleted", []edit{{create, "\tc.discard(ctx, p)\n", "\t_ = c.discard\n"}}},
	{"second servers are deleted", []edit{{create, "c.second = servers[i+1:]", "c.second = nil"}}},
	{"a stuck deletion is asked for again by CreateMachine", []edit{{create, "slices.Concat(c.second, c.deleting)", "c.second"}}},
	{"allowed addresses are added, not replaced", []edit{{nics, "append(slices.Clone(nic.AllowedAddresses), missing...)", "missing"}}},
	{"a created server has its addresses", []edit{{nics, "complete() bool { return len(n.addresses) > 0 && n.allowed }", "complete() bool { return n.allowed }"}}},
	{"a failed read is not a failed machine", []edit{{waitGo, "\tif errors.As(err, &api) {\n\t\tw.failed", "\tif err != nil {\n\t\treturn err\n\t}\n\tif errors.As(err, &api) {\n\t\tw.failed"}}},
	{"errors have no brackets", []edit{{errorsGo, `text = strings.NewReplacer("[", "(", "]", ")").Replace(text)`, ``}}},
	{"a token that is refused is dropped", []edit{{"pkg/spi/auth.go", "a.tokens.drop(token)", "_ = token"}}},
	{"a late 401 drops no newer token", []edit{{"pkg/spi/auth.go", "if t.token == refused {", "if t.token != \"\" || refused == \"\" {"}}},
	{"the writes of all sessions wait behind one of them", []edit{{"pkg/spi/spi.go", "writers: s.writers}", "writers: make(chan struct{}, 1)}"}}},
	{"an exhausted class is asked for again after a minute", []edit{{"pkg/provider/errors.go", "exhaustedFor = time.Minute", "exhaustedFor = time.Hour"}}},
	{"no error repeats userData", []edit{{request, "if repeated < minRepeated {", "if repeated < 1<<20 {"}}},
	{"no error repeats quoted userData", []edit{{request, "withoutQuotes(strconv.Quote(userData))", "strconv.Quote(userData)"}, {request, "withoutQuotes(string(asJSON))", "string(asJSON)"}}},
	{"codes are decided on the API's whole message", []edit{{sdkClient, "translated.shown = redacted(translated.Message, userData)", "translated.shown = redacted(translated.Message, userData)\n\ttranslated.Message = translated.shown"}}},
	{"many who wait share a list", []edit{{coalesce, "if s.batch > g.policy.Singles ||", "if s.batch > 100*g.policy.Singles ||"}}},
	{"the longest waiting decides how it is read", []edit{{coalesce, "return s.batch > 0 && !isReadSingly, nil", "_ = isReadSingly\n\t\treturn s.batch > 0, nil"}}},
	{"nobody gets what a read shows that began before", []edit{{coalesce, "if w.asked.After(began) {", "if w.asked.After(began.Add(time.Hour)) {"}}},

	// What was a defect once, in the order in which it was found.
	{"a young server is not believed gone: status", []edit{{status, "case server == nil && c.clock.Now().Before(p.absence.noPostBefore):", "case server == nil:\n\t\t\treturn errGone\n\t\tcase false:"}}},
	{"a young server is not believed gone: proof", []edit{{gone, "return a.deletingListed || !began.Before(a.noPostBefore)", "return true"}, {gone, "seen.listed && !seen.began.Before(a.noPostBefore))", "seen.listed)"}}},
	{"gone needs more than one read", []edit{{gone, "return a.proves(&before, seen)", "_ = before\n\treturn true"}}},
	{"empty lists alone are no proof", []edit{{gone, "a.row.byOthers = seen.listed && seen.others", "a.row.byOthers = seen.listed"}, {gone, "case seen.others && a.listsAlone(seen.began) &&", "case a.listsAlone(seen.began) &&"}}},
	{"one failing list stops nobody", []edit{{coalesce, "if g.failures == 0 { // what", "if g.failures >= 0 { // what"}}},
	{"the next list waits longer after each that failed", []edit{{coalesce, "g.failures++\n", "g.failures = 1\n"}}},
	{"no attempt is sent after a pause", []edit{{fence, "f.heldUntil = now.Add(f.hold)", "f.heldUntil = now"}}},
	{"retries of reads are reads, too", []edit{{pace, "held := shared.begun > 0\n", "held := false\n"}}},
	{"reads that were held back take turns", []edit{{pace, "\t\theld = true\n", ""}}},
	{"the limit begins at 1", []edit{{pace, "k.refusal = 1, 0, errTooMany", "k.refusal = maxInFlight, 0, errTooMany"}}},
	{"a kind without an attempt loses its limit", []edit{{pace, "now.Sub(k.lastSent) >= limitTTL", "k.lastSent.IsZero()"}}},
	{"a failure halves the limit", []edit{{pace, "max(k.limit/2, 1)", "max(k.limit-1, 1)"}}},
	{"any other answer doubles the limit", []edit{{pace, "min(2*k.limit, maxInFlight)", "min(k.limit+1, maxInFlight)"}}},
	{"a pause follows a failure at limit 1", []edit{{pace, "if a.limit == 1 {", "if a.limit == 0 {"}}},
	{"the pause doubles", []edit{{pace, "max(2*k.pause, firstPause)", "firstPause"}}},
	{"any other answer halves the next pause", []edit{{pace, "maxInFlight), k.pause/2", "maxInFlight), 0"}}},
	{"pauses are random", []edit{{pace, "(least + p.jitter()/2)", "(least + 0.5)"}}},
	{"hanging requests stop counting after 5 s", []edit{{pace, "inFlightTTL = 5 * time.Second", "inFlightTTL = time.Hour"}}},
	{"hanging requests count for half of a long pause", []edit{{pace, "max(inFlightTTL, k.pause/2)", "inFlightTTL"}}},
	{"no request waits for longer than a minute", []edit{{pace, "left := maxPaceWait - shared.waited", "left := maxPaceWait"}}},
	{"what takes longer than a request may wait is not waited for", []edit{{pace, "case left <= 0, tooLong:", "case left <= 0:"}}},
	{"a caller that left says nothing about the API", []edit{{pace, "!isNotSent(err) && request.Context().Err() == nil", "!isNotSent(err)"}}},
	{"Retry-After pauses its kind only", []edit{{pace, `name := request.Method + " " + serviceOf(request)`, `name := request.Method[:0]`}}},
	{"a POST that was not sent is refused", []edit{{errorsGo, "case errors.As(err, &notSent), errors", "case errors.As(err, &notSent) && false, errors"}}},
	{"failed token fetches come ever more rarely", []edit{{"pkg/spi/auth.go", "t.retryAt = t.clock.Now().Add(t.pause)", "t.retryAt = t.clock.Now()"}}},
	{"a tick hides no pause", []edit{{fence, "\tfor {\n\t\tf.tick()\n", "\tfor {\n\t\tf.mu.Lock()\n\t\tf.ticked = f.clock.Now()\n\t\tf.mu.Unlock()\n"}}},
	{"clocks may differ by ten seconds", []edit{{providers, "created.Before(since.Add(clockSkew))", "created.Before(since)"}}},
	{"a read that hangs holds up nobody", []edit{{coalesce, "single.holdsUntil = now.Add(g.policy.Patience)", "single.holdsUntil = now.Add(time.Hour)"}}},
	{"CreateMachine sees to the allowed addresses", []edit{{create, "connected, err := p.connect(ctx, p.id)", "connected, _, err := p.readConnection(ctx, p.id)\n\tconnected.allowed = true"}}},
	{"status without addresses is not OK", []edit{{core, "case !connected.complete():", "case false:"}}},
	{"status without a ProviderID is never Uninitialized", []edit{{status, `if id == "" || !c.knownConnection(id).complete() {`, `if id == "" {`}}},
	{"an invalid cluster label hides no server", []edit{{request, "|| len(validation.ValidateLabels(in.identity.cluster, nil)) > 0", ""}}},
	{"where the cluster is unknown no look-up answers", []edit{
		{reads, "if c.clusterUnknown {", "if c.clusterUnknown && c.machine == \"\" {"}, {core, "if c.unlabelable || c.clusterUnknown {", "if c.unlabelable {"}}},
	{"items may be null", []edit{{sdkClient, "case items == nil && additional == nil:", "case items == nil:"}}},
	{"a class of another provider makes no server", []edit{{request, `if class.Provider != "" && class.Provider != StackitProviderName {`, `if class.Provider == "never" {`}}},
	{"one POST a call", []edit{{create, "if c.lost != nil {", "if c.lost != nil && c.machine == \"\" {"}}},
	{"a POST is closed once its server is gone", []edit{{ledger, "\t\tdelete(e.open, serverID)\n\t\tif e.ServerID", "\t\tif e.ServerID"}}},
	{"a list shows a server once", []edit{{reads, "isAgain && server.ID != \"\" ||", "isAgain && server.ID == \"\" ||"}}},
	{"servers that are gone are ignored in lists", []edit{{ownership, " && !c.ledger.Gone(c.key, server.ID)", ""}}},
	{"servers that are gone are no orphans", []edit{{core, " || c.ledger.Gone(c.key, server.ID) {", " {"}}},
	{"a deletion that fails keeps no other", []edit{{deletion, "errs = append(errs, ends)\n\t\t\t\tcontinue", "return ends"}}},
	{"refused credentials end a wait with Unavailable", []edit{{waitGo, "\tcase isRefused(err):\n\t\treturn interruptedError(err)\n", "\tcase isRefused(err):\n\t\treturn err\n"}}},
	{"what was proved gone before is read once more", []edit{{deletion, "named := c.serverID //", "named := \"\" //"}}},
	{"a DELETE that was not accepted is sent again", []edit{{deletion, "p.absence.deleteSent(err == nil, notFound,", "p.absence.deleteSent(err == nil, false,"}}},
	{"refused at the POST after a wait, too", []edit{{create, "return nil, c.ended(err)", "return nil, err"}}},
	{"refused at a DELETE after a wait, too", []edit{{deletion, "if ends := p.steps.afterStep(ctx, err, p.state()); ends != nil {", "if ends := err; ends != nil {"}}},

	// Moments, and whose a server is.
	{"an absence that nobody expects takes 15 s", []edit{{gone, "\tif a.progress == notAsked {\n\t\treturn unexpectedApart", "\tif a.progress == failed {\n\t\treturn unexpectedApart"}}},
	{"a read that takes long is of its last moment", []edit{{gone, "*at = seen.ended", "*at = seen.began"}}},
	{"one empty look-up does not prove that there is none", []edit{{gone, "return isCertain && (oneIsEnough || len(found.servers) > 0) ||", "return isCertain ||"}}},
	{"the second look-up is of the whole project", []edit{{gone, "found.breadth >= row[n.seen] && ", ""}, {reads, "case breadth == ofProject, c.byName:", "case c.byName:"}}},
	{"one look-up is enough for a machine that nobody can have made a server for", []edit{{request, "return c.young && !c.fromOpenStack && !entry.HasOpenPost()", "return c.young && entry.ServerID == \"never\""}}},
	{"a POST that is open makes one look-up too few", []edit{{request, "return c.young && !c.fromOpenStack && !entry.HasOpenPost()", "_ = entry\n\treturn c.young"}}},
	{"a machine without labels may have a server without labels", []edit{{reads, "if missing && server.ID != own", "_, _ = key, want\n\t\tif missing && own == \"never\""}}},
	{"a read decides whose server the POST's answer named", []edit{{ledger, "e.setServer(serverID)\n\t\te.Unread = true", "e.setServer(serverID)"}, {ownership, "return err\n\tcase err == nil:", "return nil\n\tcase err == nil:"}}},
	{"a POST whose answer named another's server is open", []edit{{ledger, "e.open[\"\"] = ended\n", "_ = ended\n"}}},
	{"a POST whose answer named a server that no read showed is open", []edit{{ledger, "e.ServerID == serverID && e.Unread", "e.ServerID == \"never\""}}},
	{"labels may take settle to show", []edit{{create, "case byGet && !c.clock.Now().Before(c.noPostBefore()):", "case byGet:"}}},
	{"labels may take settle to show: deletion", []edit{{deletion, "errUnlabelled) && c.clock.Now().Before(c.noPostBefore()):", "errUnlabelled) && c.clock == nil:"}}},
	{"a POST elsewhere is asked about before a POST", []edit{{create, "c.checkExhausted(), c.checkElsewhere()); err", "c.checkExhausted()); err"}, {ledger, "case e.holds(key):\n\t\t\treturn\n", ""}}},
	{"a POST elsewhere is asked about before a deletion ends", []edit{{deletion, "if err := c.checkElsewhere(); err", "if err := ctx.Err(); err"}}},
	{"a Machine of the same name is another one", []edit{{ledger, "return e.uid != \"\" && key.UID != \"\" && e.uid != key.UID", "return false"}}},
	{"an empty cluster label is an unknown cluster", []edit{{request, "len(empty) > 0 || ", ""}}},
	{"an orphan carries its Machine's name", []edit{{deletion, "server.Name != c.machine {", "server.Name == \"\" {"}}},
	{"an orphan is asked to go, and not waited for", []edit{{core, "err = c.deleteOrphan(ctx)", "err = c.deleteNamed(ctx)"}}},
	{"an orphan's deletion ends after seconds", []edit{{deletion, "orphanTimeout = 5 * time.Second", "orphanTimeout = 5 * time.Minute"}}},
	{"what is DELETING is listed", []edit{{core, "contradicts || name == \"\" ||", "contradicts || name == \"\" || server.IsDeleting() ||"}}},
	{"a deletion that stays DELETING is asked for again", []edit{{gone, "deletionRepeat = 2 * time.Minute", "deletionRepeat = 2 * time.Hour"}}},
	{"a DELETE that nobody waits for holds up nobody", []edit{{create, "unawaitedTimeout = 5 * time.Second", "unawaitedTimeout = 5 * time.Hour"}}},
	{"an exhausted class is not looked up", []edit{{create, "err != nil && c.knowsOfNoServer() {", "err != nil && c.machine == \"\" {"}}},
	{"an exhausted class hides no server", []edit{{create, "err != nil && c.knowsOfNoServer() {", "err != nil {"}}},
	{"one foreign ID keeps no other", []edit{{deletion, "\t\tif err != nil {\n\t\t\terrs = append(errs, err)\n\t\t}", "\t\tif err != nil {\n\t\t\treturn err\n\t\t}"}}},
	{"no DELETE before a read shows the server", []edit{{deletion, "if p.last == nil {", "if p.last == nil {\n\t\t\t_ = c.client.DeleteServer(ctx, p.id)"}}},
	{"a creation waits for what is left of the Machine's timeout", []edit{{request, "max(MinCreationWait, min(expires.Sub(now), t.wait))", "max(MinCreationWait, t.wait) + 0*expires.Sub(now)"}}},
	{"a creation waits for a minute at least", []edit{{request, "max(MinCreationWait, min(expires.Sub(now), t.wait))", "min(expires.Sub(now), t.wait)"}}},
	{"a Machine's own creation timeout counts", []edit{{request, "timeout = own.MachineCreationTimeout.Duration", "_ = own"}}},
	{"a machine type that does not exist lets another pool be tried", []edit{{errorsGo, "noMachineType.MatchString(f.api.Message)", "noMachineType.MatchString(f.api.Message) && f.api.StatusCode == 0"}}},
	{"a machine type that does not exist is no shortage of quota", []edit{{errorsGo, "the API does not have the providerSpec's machineType, set", "Quota exceeded, set"}}},
	{"every field of the providerSpec is sent", []edit{{"pkg/provider/helpers.go", "ConfigDrive:         spec.ConfigDrive,\n", ""}}},
	{"a key of absurd size is not parsed", []edit{{keyGo, "if err := checkNumbers(block.Bytes); err != nil {", "if err := error(nil); err != nil {"}}},
	{"a key lacks no number that takes long to work out", []edit{{keyGo, "_, err := asn1.Unmarshal(der, &key); err != nil {", "_, err := asn1.Unmarshal(der, &key); err != nil && key.N == nil {"}, {keyGo, "[]*big.Int{key.E, key.D, key.P, key.Q, key.Dp, key.Dq, key.Qinv}", "[]*big.Int{key.N}"}}},
	{"a key that cannot sign is no endpoint that is down", []edit{{keyGo, "if err != nil && !request.isSigned {", "if err != nil && request == nil {"}}},
	{"a key that could not sign is not tried again at once", []edit{{keyGo, "if failed, ok := s.unable.Lookup(key); ok &&", "if failed, ok := s.unable.Lookup(key); !ok &&"}}},
	{"nobody's signature waits for another's answer", []edit{{keyGo, "\ts.endTurn()\n\ts.isSigned = true\n\treturn s.next.RoundTrip(request)", "\tresponse, err := s.next.RoundTrip(request)\n\ts.endTurn()\n\ts.isSigned = true\n\treturn response, err"}}},
	{"nothing is signed for who left the queue", []edit{{keyGo, "if isAbandoned() {", "if isAbandoned == nil {"}}},
	{"a session that could not be built is not remembered", []edit{{"pkg/spi/spi.go", "err := s.newSession(credentials)\n\tif err == nil {", "err := s.newSession(credentials)\n\tif err == nil || session == nil {"}}},
	{"callers share the session that is being built", []edit{{"pkg/spi/spi.go", "ok {\n\t\treturn session, nil // it was", "!ok && session != nil {\n\t\treturn session, nil // it was"}}},
	{"no redirect takes an assertion elsewhere", []edit{{keyGo, "Transport: transport, CheckRedirect: refuseRedirects", "Transport: transport"}}},
	{"no pipe is opened for a token", []edit{{identity, "case !info.Mode().IsRegular():", "case info.Mode().IsDir():"}}},
	{"a key does not choose the path of its token endpoint", []edit{{"pkg/spi/config.go", "(:443)?\" + tokenPath + \"$\"", "(:443)?/\""}}},
	{"no large file is read for a token", []edit{{identity, "case info.Size() > maxIdentity:", "case info.Size() < 0:"}}},
	{"a workload identity's token that expired is not sent", []edit{{identity, "!now.Before(claims.ExpiresAt.Time)", "now.IsZero()"}}},
	{"no token for an API server is sent", []edit{{identity, "\"kubernetes.default\")", "\"\\x00\")"}}},
	{"no token for the pod's own API server is sent", []edit{{identity, "|| slices.Contains(own, audience)", "|| len(own) < 0"}}},
	{"a Secret names no file outside of the operator's folders", []edit{{identity, "root.Stat(f.name)", "os.Stat(f.dir + \"/\" + f.name)"}, {identity, "root.ReadFile(f.name)", "os.ReadFile(f.dir + \"/\" + f.name)"}}},
	{"a path with .. is no file of a folder", []edit{{identity, "if path.Clean(file) == file {", "if file != \"\" {"}}},
	{"a made-up token finds no session", []edit{{"pkg/spi/spi.go", "c.ServiceAccountEmail, c.Token, c.TokenFile}", "c.ServiceAccountEmail, c.TokenFile}"}}},
	{"a key and a workload identity are not both taken", []edit{{"pkg/provider/apis/validation/secret.go", "case secret.ServiceAccountKey != \"\":", "case secret.ServiceAccountKey == \"\\x00\":"}}},
	{"nothing is signed for callers that left", []edit{{"pkg/spi/auth.go", "t.waiting.Load() == 0", "t.waiting.Load() < 0"}}},
	{"what comes from outside is cut in the log", []edit{{"pkg/provider/instrument.go", "text[:min(len(text), maxLogged)]", "text"}}},
	{"a Machine from OpenStack gets no second server", []edit{{create, "if c.fromOpenStack {\n\t\treturn c.takeOver(ctx)", "if c.machine == \"\" {\n\t\treturn c.takeOver(ctx)"}}},
	{"a Machine from OpenStack has one server of its name, or none is taken", []edit{{openstack, "!c.byName || len(ids) < 2", "!c.byName || len(ids) < 3"}}},
	{"a failed server from OpenStack is not deleted before its Machine", []edit{{create, "if c.fromOpenStack {\n\t\treturn fault", "if c.machine == \"\" {\n\t\treturn fault"}}},
	{"a server from OpenStack is found by its name", []edit{{reads, "case breadth == ofProject, c.byName:", "case breadth == ofProject:"}}},
	{"one list of the project does not say that there is no server without labels", []edit{{reads, "mayLackLabels: !c.young &&", "mayLackLabels: c.young &&"}}},
	{"of a Machine from OpenStack, one look-up proves nothing", []edit{{request, "c.young && !c.fromOpenStack &&", "c.young &&"}}},
	{"one list may hide the second server of a name", []edit{{deletion, "c.confirmSingle(ctx, search, found)", "found, c.checkSeveral(found.servers)"}}},
	{"a server that went before a restart is gone by two 404s", []edit{{openstack, "case began.Sub(first) >= unexpectedApart:", "case began.Sub(first) < 0:"}}},
	{"never by name: what is attached elsewhere", []edit{{openstack, "case l.isAttached(one) && !l.isGone(one.serverID):", "case one.what == \"\":"}, {openstack, "case l.isAttached(one), one.isChanging,", "case one.isChanging,"}, {openstack, "seen.isChanging, l.isAttached(&seen):", "seen.isChanging:"}}},
	{"never by name: another cluster's", []edit{{openstack, "case isOurKey && value != want,\n", "case isOurKey && value != want && want == \"\",\n"}, {openstack, "IsClusterLabel(key) && !slices.Contains(clusters, value),\n", ""}}},
	{"never by name: another cluster's by another key", []edit{{openstack, "IsClusterLabel(key) && !slices.Contains(clusters, value),\n", ""}}},
	{"never by name: what another cluster's OpenStack tagged", []edit{{openstack, "isTag && !slices.Contains(clusters, cluster):", "isTag && cluster == \"\":"}}},
	{"never by name: another Machine's", []edit{{openstack, "(!labelled || machine == i.machine)", "(!labelled || machine != \"\")"}}},
	{"never by name: what only begins with it", []edit{{openstack, "name == i.machine && (!labelled", "strings.HasPrefix(name, i.machine) && (!labelled"}, {reads, "c.byName && server.Name == c.machine &&", "c.byName &&"}}},
	{"never by name: a volume of data", []edit{{openstack, "volume.MayBoot() && ", ""}}},
	{"never by name: a volume that may be one of data", []edit{{openstack, "volume.Bootable == nil && !one.isChanging", "volume.Bootable == nil && one.isChanging"}}},
	{"never by name: what was attached elsewhere a moment ago", []edit{{openstack, "case l.leftAlone[one.what]:", "case l.leftAlone[one.what] && one.serverID != \"\":"}}},
	{"never by name: a NIC of another network", []edit{{openstack, "for _, nic := range list.nics[l.machine] {", "sdk := l.client.(*sdkClient)\n\tall, err := sdk.api.ListProjectNICs(context.Background(), sdk.projectID, sdk.region).Execute()\n\tnics, _ := nicsFromSDK(callNetworkNICs, nil, err, all)\n\tfor _, nic := range nics {"}, {openstack, "networkID, id := l.networkID(), nic.ID", "networkID, id := nic.NetworkID, nic.ID"}}},
	{"never by name: what is left of a Machine that we made", []edit{{deletion, "err != nil || !c.fromOpenStack {", "err != nil {"}}},
	{"what a server from OpenStack left is waited for", []edit{{openstack, "if err != nil || !stays {\n\t\t\tpending = true", "if err != nil || !stays && one.what == \"\" {\n\t\t\tpending = true"}}},
	{"a server that only the second look-up shows is confirmed, too", []edit{{openstack, "if found = again; !isNew {", "if found = again; !isNew || c.byName {"}}},
	{"of several servers of a name from OpenStack none is touched", []edit{{deletion, "c.confirmSingle(ctx, search, found)", "found, c.checkSeveral(nil)"}}},
	{"a NIC from OpenStack is not lost with its class", []edit{{deletion, "if err := c.checkNetwork(); err != nil {", "if err := c.checkNetwork(); err != nil && c.machine == \"\" {"}}},
	{"an orphan with the tag of OpenStack stays", []edit{{openstack, "if tag == \"\" {", "if tag != \"never\" {"}}},
	{"one empty list of volumes proves nothing", []edit{{openstack, "first = lists.Began\n", "return nil\n"}}},
	{"two lists of leftover resources prove nothing at one moment", []edit{{openstack, "case lists.Began.Sub(first) >= unexpectedApart:", "default:"}}},
	{"what a server that is gone has is waited for", []edit{{openstack, "l.isGone(one.serverID) && l.clock.Since(l.since) >= staleAttachment", "l.isGone(one.serverID)"}}},
	{"a volume in a list may be attached by now", []edit{{openstack, "case !seen.isByName, seen.isChanging, l.isAttached(&seen):", "case seen.what == \"\":"}}},

	// What fails one way is read the other way.
	{"while single reads fail, one who waits makes a list", []edit{{coalesce, "case w.singly || !*g.fails(w):", "case w.singly || !*g.fails(w) || g.list != nil:"}}},
	{"a failed single read is served by the next list", []edit{{coalesce, "case !w.singly:\n\t\t\treturn\n", ""}}},
	{"a list that does not show it either ends the wait", []edit{{coalesce, "case w.err != nil: // neither", "case w.err != nil && g.list == nil: // neither"}}},
	{"a single read that hangs has failed", []edit{{coalesce, "w.hangs = true\n\t\t\tg.singleFailed(w, now)", "w.hangs = true"}}},
	{"single reads go on once one succeeds", []edit{{coalesce, "\t\t*g.fails(w) = false\n", ""}}},
	{"lists go on once one succeeds", []edit{{coalesce, "\tcase err == nil:\n\t\tg.failures = 0\n", "\tcase err == nil:\n"}}},
	{"while nothing works a scope makes one read at a time", []edit{{coalesce, "case s.inFlight == 0:\n", "case s.inFlight >= 0:\n"}, {coalesce, "case !g.nextList.After(now): // else it began before the backoff\n\t\tg.backOff(now)\n", ""}}},
	{"while nothing works single reads are tried, too", []edit{{coalesce, "(s.batch == 0 || g.failures%2 == 1)", "s.batch == 0"}}},
	{"while nothing works lists are tried, too", []edit{{coalesce, "(s.batch == 0 || g.failures%2 == 1)", "g.failures > 0"}}},
	{"an error while nothing works is the answer to all who are due", []edit{{coalesce, "(w.Single == nil || g.isStuck(w))", "w.Single == nil"}}},
	{"what a GET does not tell, a call that just began asks a list", []edit{{reads, "if p.begun.Load() || p.absence.onlyGet ||", "if !p.begun.Load() || p.absence.onlyGet ||"}}},
	{"after a failed GET the next read is a list", []edit{{gone, "func (a *absence) getFailed() { a.getsFail, a.avoidGet = true, true }", "func (a *absence) getFailed() { a.getsFail = true }"}}},
	{"a late sign begins its row again", []edit{{gone, "a.restarts < mostRestarts &&", "false &&"}}},
	{"a late look-up begins its row again", []edit{{gone, "n.seen > 0 && n.restarts < mostRestarts &&", "false &&"}}},
	{"an API that is always slow lets a row end", []edit{{gone, "mostRestarts = 2", "mostRestarts = 1 << 60"}}},
	{"after a look-up that shows some none is late", []edit{{gone, "n.restarts < mostRestarts && !n.empty.IsZero() &&", "n.restarts < mostRestarts &&"}, {gone, "n.empty = time.Time{}", "_ = n.empty"}}},
	{"without GETs a list is believed about a stuck deletion", []edit{{gone, "case seen.listed && !a.getsFail:", "case seen.listed:"}}},

	// What an error means for a wait.
	{"a 403 that is all a wait sees ends it", []edit{{waitGo, ">= forbiddenFor:", ">= 1000*forbiddenFor:"}}},
	{"a 403 for a moment ends no wait", []edit{{waitGo, "forbiddenFor = 30 * time.Second", "forbiddenFor = 0 * time.Second"}}},
	{"a 403 between others ends no wait", []edit{{waitGo, "case !isForbidden(err):\n\t\tw.forbiddenSince = time.Time{}\n\tcase w.", "case isForbidden(err) && w."}}},
	{"a late end names the call that failed last", []edit{{waitGo, "w.failed.Store(api)", "_ = api"}}},
	{"a step that the API refuses ends the call", []edit{{waitGo, "code == codes.PermissionDenied && !isRead:", "code == codes.PermissionDenied && isRead:"}}},
	{"a read that is refused is no refused step", []edit{{waitGo, "code == codes.PermissionDenied && !isRead:", "code == codes.PermissionDenied && (isRead || !isRead):"}}},

	// When a server is gone while parts of the API fail.
	{"a 403 after our DELETE is a sign", []edit{{reads, "case isForbidden(err) && afterDelete:", "case isForbidden(err) && afterDelete && p.id == \"\":"}}},
	{"a 403 before our DELETE is no sign", []edit{{reads, "case isForbidden(err) && afterDelete:", "case isForbidden(err):"}}},
	{"a list that cannot show a server proves nothing", []edit{{gone, "if seen.blind || seen.listed", "if seen.listed"}}},
	{"403s without a list are no proof", []edit{{gone, "!seen.listed && !seen.forbidden && a.afterDelete(seen)", "!seen.listed && a.afterDelete(seen)"}}},
	{"after a 403 the next read is a list", []edit{{gone, "a.avoidGet = seen.forbidden", "a.avoidGet = false"}}},
	{"two lists alone are a proof for a minute", []edit{{gone, " && at.Sub(a.deletedAt) <= listsAloneFor", ""}}},
	{"that minute begins with the first DELETE", []edit{{gone, "a.deletedAt.IsZero() && status != statusDeleting", "status != statusDeleting"}}},
	{"two lists alone prove nothing of a server that was DELETING before", []edit{{gone, "a.deletedAt.IsZero() && status != statusDeleting", "a.deletedAt.IsZero()"}}},
	{"two lists alone need one that showed the server DELETING", []edit{{gone, "return a.deletingListed && !a.deletedAt", "return !a.deletedAt"}}},
	{"while GETs fail two lists are a proof", []edit{{gone, "case !a.isDeletion || !a.getsFail ||", "case a.isDeletion || !a.getsFail ||"}}},
	{"while GETs fail two lists lie 15 s apart", []edit{{gone, "seen.selected && seen.comesAfter(before.selected, unexpectedApart)", "seen.selected && seen.comesAfter(before.selected, expectedApart)"}, {gone, "!seen.comesAfter(before.list, unexpectedApart):", "!seen.comesAfter(before.list, expectedApart):"}}},
	{"two lists without a GET are a proof only while GETs fail", []edit{{gone, "case !a.isDeletion || !a.getsFail ||", "case !a.isDeletion ||"}}},
	{"two lists without a GET are a proof only in a deletion", []edit{{gone, "case !a.isDeletion || !a.getsFail ||", "case !a.getsFail ||"}}},
	{"without a DELETE of ours two lists must show others", []edit{{gone, "return seen.others && seen.comesAfter(before.othersListed, unexpectedApart)", "return true"}}},
	{"without a DELETE of ours both lists must show others", []edit{{gone, "return seen.others && seen.comesAfter(before.othersListed, unexpectedApart)", "return seen.others"}}},
	{"after our DELETE lists that may be cut off prove nothing", []edit{{gone, "return seen.selected && seen.comesAfter(before.selected, unexpectedApart)", "return true"}}},

	// One place for each Machine.
	{"an entry with a server or an open POST keeps its place", []edit{{ledger, "return !e.isOfAnother(key) && (e.ServerID != \"\" || e.posting || len(e.open) > 0)", "return false"}}},
	{"a lost POST keeps the Machine's place", []edit{{ledger, "(e.ServerID != \"\" || e.posting || len(e.open) > 0)", "(e.ServerID != \"\" || e.posting)"}}},
	{"a server keeps the Machine's place", []edit{{ledger, "(e.ServerID != \"\" || e.posting || len(e.open) > 0)", "(e.posting || len(e.open) > 0)"}}},
	{"an entry that holds nothing takes over the request's place", []edit{{ledger, "case e.holds(key):\n\t\t\treturn\n\t\tdefault:", "default:\n\t\t\treturn\n\t\tcase e.claims < 0:"}}},
	{"another Machine's server is not this one's, in another place", []edit{{ledger, "return !e.isOfAnother(key) && (", "return ("}}},
	{"what is known of a place is not of another one", []edit{{ledger, "if found.place != key.Place {", "if found.place != key.Place && key.Machine == \"\" {"}}},
	{"a new place does not hide a POST from who looked before", []edit{{ledger, "place: key.Place, claims: e.claims, used", "place: key.Place, used"}}},
	{"after another Machine of the name one look-up is not enough", []edit{{request, " && !entry.OfAnother", ""}}},

	// When there is no server.
	{"a machine that may lack labels takes two lists of the project", []edit{{gone, "return []breadth{bySelector, ofProject, ofProject}", "return []breadth{bySelector, ofProject}"}}},
	{"the look-ups of a row lie 15 s apart", []edit{{gone, "return 0 // the two of the project lie apart\n\tdefault:\n\t\treturn unexpectedApart", "return 0 // the two of the project lie apart\n\tdefault:\n\t\treturn 0"}}},
	{"the last look-up of a row begins once it is certain", []edit{{gone, "isLast := n.seen == len(row)-1\n", "isLast := false\n"}}},
	{"only a list of the project that fails says that they fail for long", []edit{{reads, "} else if s.readers.project.failLong()", "}\n\t\tif s.readers.project.failLong()"}}},
	{"a look-up that fails ends the row", []edit{{reads, "s.none.seen = 0 // what", "_ = s.none.seen // what"}}},
	{"look-ups do without lists of the project that fail", []edit{{waitGo, "projectFailsFor = 10 * time.Minute", "projectFailsFor = 10 * time.Hour"}}},
	{"look-ups do not do without lists of the project soon", []edit{{waitGo, "projectFailsFor = 10 * time.Minute", "projectFailsFor = 10 * time.Second"}}},
	{"a list of the project that works ends their failing", []edit{{waitGo, "l.failingSince = time.Time{}\n", "_ = l.failingSince\n"}}},
	{"lists of the project that nobody asked for did not fail", []edit{{waitGo, "case l.failingSince.IsZero(), now.Sub(l.failed) >= projectFailsFor:", "case l.failingSince.IsZero():"}}},
	{"429 and 401 do not say that lists of the project fail", []edit{{waitGo, "ctx.Err() != nil, isSessionWide(err):", "ctx.Err() != nil:"}}},
	{"without lists of the project it takes two by the machine label", []edit{{gone, "return []breadth{bySelector, ofMachineLabel, ofMachineLabel}", "return []breadth{bySelector, ofMachineLabel}"}}},
	{"without lists of the project the look-ups take settle", []edit{{gone, "return max(unexpectedApart, n.settle/2)", "return unexpectedApart"}}},
	{"without lists of the project look-ups go by the machine label alone", []edit{{reads, "c.findWithin(ctx, map[string]string{StackitMachineLabel: c.machine}, notBefore)", "c.findWithin(ctx, c.machineSelector(), notBefore)"}}},
	{"a server that lost its class or cluster label is no stranger's", []edit{{ownership, "if !labelled && server.Name == i.machine && server.Labels[StackitMachineLabel] == i.machine {", "if !labelled && server.Name == \"\" {"}}},
	{"a server that lost its class label is no stranger's", []edit{{ownership, "for key, want := range i.machineSelector() {\n\t\t_, labelled", "for key, want := range i.cluster {\n\t\t_, labelled"}}},
	{"another cluster's server lacks no label", []edit{{ownership, "return \"\", \"\", false // it is of another cluster", "continue // it is of another cluster"}}},

	// What a creation ran into.
	{"a server in ERROR is waited for no longer than 10 s", []edit{{create, "discardTimeout = 10 * time.Second", "discardTimeout = 10 * time.Minute"}}},
	{"no third server beside two in DELETING", []edit{{create, "if len(c.deleting) < 2 {", "if len(c.deleting) < 200 {"}}},
	{"a second server beside one in DELETING", []edit{{create, "if len(c.deleting) < 2 {", "if len(c.deleting) < 1 {"}}},
	{"beside two in DELETING the fault is told again", []edit{{ledger, "\t\te.Fault = fault\n", "\t\t_ = fault\n"}}},
	{"a fault ends with a server that is adopted", []edit{{ledger, "e.Unread, e.Fault, e.uid = false, nil, key.UID", "e.Unread, e.uid = false, key.UID"}}},
	{"a class with NICs, volumes or a disk waits for what is DELETING", []edit{{create, "if len(c.deleting) > 0 && c.isExclusive() {", "if len(c.deleting) > 0 && c.machine == \"\" {"}}},
	{"a class with volumes waits for what is DELETING", []edit{{create, "|| len(c.spec.Volumes) > 0 ||", "||"}}},
	{"a class with a disk of its own waits for what is DELETING", []edit{{create, "boot.Source.Type == apis.SourceVolume\n", "boot.Source.Type == \"\" && apis.SourceVolume == \"\"\n"}}},
	{"no other class waits for what is DELETING", []edit{{create, "if len(c.deleting) > 0 && c.isExclusive() {", "if len(c.deleting) > 0 {"}}},
	{"a Machine that is too old gets no server", []edit{{create, "\t\tif c.isExpired() {", "\t\tif c.isExpired() && c.machine == \"\" {"}}},
	{"a Machine that is too old keeps its server", []edit{{create, "\t\tc.deleting = deleting\n", "\t\tc.deleting = deleting\n\t\tif c.isExpired() {\n\t\t\town = nil\n\t\t}\n"}}},
	{"a 500 that says \"no host\" is told at once", []edit{{create, "(!outcomeUnknown(err) || isExhausted(err))", "!outcomeUnknown(err)"}}},
	{"a 500 that says \"no host\" may have made a server", []edit{{create, "\tcase !outcomeUnknown(err):\n", "\tcase !outcomeUnknown(err) || isExhausted(err):\n"}}},
	{"an exhausted class is asked about before each POST", []edit{{create, "cmp.Or(c.checkUnlabelled(), c.checkExhausted(), ", "cmp.Or(c.checkUnlabelled(), "}}},
	{"a quota of calls is none of servers", []edit{{errorsGo, "quotaExceeded.MatchString(f.api.Message) && !f.rateLimited()", "quotaExceeded.MatchString(f.api.Message)"}}},
	{"no more addresses is a quota", []edit{{errorsGo, "|no more ip addresses available|", "|"}}},
	{"Nova's and Cinder's limits are quotas", []edit{{errorsGo, "`limitexceeded|maximum number of (ports|", "`maximum number of (ducks|"}}},
	{"hosts without room are no capacity", []edit{{errorsGo, "|exhausted all hosts|insufficient compute resources", ""}}},
	{"a limit of one server is no quota: POST", []edit{{errorsGo, "(f.during(callCreateServer) || f.during(callUpdateNIC)) && limitOfServer.", "f.during(callUpdateNIC) && limitOfServer."}}},
	{"a limit of one server is no quota: ERROR", []edit{{errorsGo, "case limitOfServer.MatchString(server.ErrorMessage):", "case server.ErrorMessage == \"limit\":"}}},

	// A server that does not show its labels.
	{"a server without its labels is not used", []edit{{ownership, "return unlabelledError(server)", "return nil"}}},
	{"a server without its labels is not deleted", []edit{{deletion, "return nil, c.labelsMissing(p.last)", "return p, nil"}}},
	{"a server without its labels ends its Machine's deletion", []edit{{deletion, "return nil, c.labelsMissing(p.last)", "return nil, nil"}}},
	{"a server without its labels is no stranger's", []edit{{ownership, "case c.hasOnlyItsName(server):", "case c.hasOnlyItsName(server) && c.machine == \"\":"}}},
	{"a stranger's server is none without its labels", []edit{{ownership, "case c.hasOnlyItsName(server):", "case err != nil:"}}},
	{"a server without its labels keeps the class's other Machines from a POST", []edit{{create, "cmp.Or(c.checkUnlabelled(), c.checkExhausted(), ", "cmp.Or(c.checkExhausted(), "}}},
	{"they get none for an hour", []edit{{errorsGo, "unlabelledFor = time.Hour", "unlabelledFor = 4 * time.Minute"}}},
	{"they get one after an hour", []edit{{errorsGo, "unlabelledFor = time.Hour", "unlabelledFor = 100 * time.Hour"}}},
	{"a server without its labels keeps its own Machine from no POST", []edit{{errorsGo, " && found.machine != c.machine", ""}}},
	{"a server without its labels hides none of the class's servers", []edit{{create, "if c.fromOpenStack {\n\t\treturn c.takeOver(ctx)\n\t}\n", "if c.fromOpenStack {\n\t\treturn c.takeOver(ctx)\n\t}\n\tif err := c.checkUnlabelled(); err != nil {\n\t\treturn nil, err\n\t}\n"}}},

	// A deletion whose look-ups fail.
	{"a deletion asks for the ProviderID's server although look-ups fail", []edit{{deletion, "if c.serverID == \"\" {\n\t\treturn search.next(ctx)", "if c.serverID != \"\" || c.serverID == \"\" {\n\t\treturn search.next(ctx)"}}},
	{"it asks for it soon", []edit{{deletion, "lookUpPatience = 20 * time.Second", "lookUpPatience = 20 * time.Hour"}}},
	{"its look-ups go on after that", []edit{{deletion, "if failed == nil {\n\t\t\treturn search.next(ctx)", "if failed == nil {\n\t\t\treturn lookUp{}, nil"}}},

	// Why a server never joined.
	{"a Machine that had a Node costs no call more", []edit{{console, " && len(machine.Status.Conditions) == 0", ""}}},
	{"a Machine that was scaled down while it booted costs no call more", []edit{{console, "!machine.DeletionTimestamp.Time.Before(expires)", "!machine.DeletionTimestamp.Time.Before(machine.CreationTimestamp.Time)"}}},
	{"a Machine without a target cluster costs no call more", []edit{{request, "\t\t\tc.expires, c.neverJoined = p.creation.expires(machine), p.creation.neverJoined(machine)\n\t\t}\n", "\t\t\tc.expires = p.creation.expires(machine)\n\t\t}\n\t\tc.neverJoined = p.creation.neverJoined(machine)\n"}}},
	{"a console log is read before the DELETE, once", []edit{{console, "ok || p.last.IsDeleting() {", "ok && known.isCounted || p.last.IsDeleting() {"}}},
	{"a predecessor has counted a server that is DELETING", []edit{{console, "ok || p.last.IsDeleting() {", "ok {"}}},
	{"a server that never joined counts once", []edit{{console, "u == nil || u.isCounted", "u == nil"}}},
	{"a server that never joined counts when its DELETE is accepted", []edit{{deletion, "\tunjoined := p.explainUnjoined(ctx)\n", "\tunjoined := p.explainUnjoined(ctx)\n\tunjoined.deleteAccepted(p.meters)\n"}}},
	{"a console log holds up a DELETE for seconds", []edit{{console, "consoleTimeout = 5 * time.Second", "consoleTimeout = time.Minute"}}},
	{"one console log of a class at a time", []edit{{console, "if l.underWay[class] || ", "if "}}},
	{"ten console logs a minute", []edit{{console, "consolesPerMinute = 10", "consolesPerMinute = 100"}}},
	{"only what a pattern matches is logged", []edit{{console, "found[i] = append(found[i], match)", "found[i] = append(found[i], line)"}}},
	{"lines about passwords and tokens are not looked at", []edit{{console, "if secretive.MatchString(line) {", "if secretive.MatchString(line) && line == \"\" {"}}},
	{"no token is logged of a console log", []edit{{console, "tokens.ReplaceAllString(redacted(excerpt, userData), \"(token)\")", "redacted(excerpt, userData)"}}},
	{"ten lines of a console log are logged", []edit{{console, "maxExcerpts = 10", "maxExcerpts = 11"}}},
	{"a log that is cut off does not blame the image", []edit{{console, "hasNoCloudInit := isWhole && ", "hasNoCloudInit := (isWhole || log != \"\") && "}}},
	{"the first planned maintenance counts", []edit{{metricsGo, "s.next.IsZero() || start.Before(s.next)", "s.next.IsZero() || start.After(s.next)"}}},
	{"the maintenance that is planned is the next", []edit{{metricsGo, "\tcase maintenanceOngoing:\n\t\ts.windows[status]++\n", "\tcase maintenanceOngoing:\n\t\ts.windows[status]++\n\t\ts.noteStart(server.Maintenance.StartsAt)\n"}}},

	// Codes that decide when the manager comes back, and what it does next.
	{"a lost POST lets the manager come back at once", []edit{{errorsGo, "ReasonNotReady:           codes.Unavailable", "ReasonNotReady:           codes.Internal"}}},
	{"only NotFound lets the manager make a server", []edit{{errorsGo, "ReasonNoServer:           codes.NotFound", "ReasonNoServer:           codes.Internal"}}},
	{"only Uninitialized lets the manager initialize", []edit{{errorsGo, "ReasonNotInitialized:     codes.Uninitialized", "ReasonNotInitialized:     codes.Unavailable"}}},
	{"a Machine that is too old is not called for every 5 s", []edit{{errorsGo, "ReasonCreationTimedOut:   codes.FailedPrecondition", "ReasonCreationTimedOut:   codes.Unavailable"}}},
	{"a server without labels is not asked about every 5 s", []edit{{errorsGo, "ReasonLabelsMissing:      codes.FailedPrecondition", "ReasonLabelsMissing:      codes.Unavailable"}}},
	{"a server that is deleted under a call lets the manager come back at once", []edit{{errorsGo, "ReasonInterrupted:        codes.Aborted", "ReasonInterrupted:        codes.Internal"}}},
	{"a busy server lets the manager come back at once", []edit{{errorsGo, "ReasonServerBusy:         codes.Aborted", "ReasonServerBusy:         codes.Internal"}}},
	{"a machine type that does not exist lets the autoscaler try another pool", []edit{{errorsGo, "ReasonUnknownMachineType: codes.ResourceExhausted", "ReasonUnknownMachineType: codes.InvalidArgument"}}},
}
