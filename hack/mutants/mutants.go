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
	create       = "pkg/provider/create.go"
	deletion     = "pkg/provider/delete.go"
	status       = "pkg/provider/status.go"
	ownership    = "pkg/provider/ownership.go"
	errorsGo     = "pkg/provider/errors.go"
	servers      = "pkg/provider/servers.go"
	search       = "pkg/provider/search.go"
	remains      = "pkg/provider/remains.go"
	gone         = "pkg/provider/gone.go"
	waitGo       = "pkg/provider/wait.go"
	core         = "pkg/provider/core.go"
	request      = "pkg/provider/request.go"
	providers    = "pkg/provider/provider.go"
	deadlines    = "pkg/provider/deadlines.go"
	userData     = "pkg/provider/userdata.go"
	nics         = "pkg/provider/nics.go"
	sdkClient    = "pkg/provider/sdk_client.go"
	ledger       = "pkg/provider/internal/ledger/ledger.go"
	coalesce     = "pkg/provider/internal/coalesce/coalesce.go"
	retry        = "pkg/spi/retry.go"
	pace         = "pkg/spi/pace.go"
	fence        = "pkg/spi/fence.go"
	identity     = "pkg/spi/identity.go"
	identityFile = "pkg/spi/identity_file.go"
	ownedFunc    = "func (i identity) checkOwned(server *Server, byID bool) error {\n"
)

// mutants is the list. Each must be noticed by a test.
var mutants = []mutant{
	{"wait settle after a POST before the next", []edit{{ledger, "ended.Add(e.settle); settled.After", "ended; settled.After"}}},
	{"wait settle after a predecessor may have POSTed", []edit{{providers, "return since.Add(*p.settle)", "return time.Time{}"}}},
	{"check that a server is ours before touching it", []edit{{ownership, ownedFunc, ownedFunc + "\tif server != nil {\n\t\treturn nil\n\t}\n"}}},
	{"403 is never gone", []edit{{errorsGo, "e.StatusCode == http.StatusNotFound && e.Message", "(e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusForbidden) && e.Message"}}},
	{"a 404 of a gateway is not the API's", []edit{{errorsGo, `e.Message != "" && !aboutProject`, `!aboutProject`}}},
	{"a 404 about the project is not about a server", []edit{{errorsGo, ` && !aboutProject.MatchString(e.Message)
}`, "\n}"}}},
	{"never send a POST again that may have been accepted", []edit{{retry, "return method != http.MethodPost || isDialError(err)", "return true"}}},
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
	{"two calls never POST for one Machine", []edit{{create, "if !c.ledger.Claim(c.key, c.uid, seen) {", "if !c.ledger.Claim(c.key, c.uid, seen) && c.machine == \"\" {"}}},
	{"the ledger knows the server that was made", []edit{{ledger, "e.posting, e.open[serverID] = false, now\n\t\te.setServer(serverID)", "e.posting, e.open[serverID] = false, now"}}},
	{"a lost POST is remembered", []edit{{create, "end := c.ledger.OutcomeUnknown", "end := c.ledger.Refused"}}},
	{"DeleteMachine waits until the server is gone", []edit{{deletion, "errs[i] = r.awaitGone(ctx)", "_ = r"}}},
	{"DeleteMachine takes every server of the Machine", []edit{{core, "if err = c.deleteAll(ctx); err == nil {", "if err = c.deleteNamed(ctx); err == nil {"}}},
	{"a request without a deletionTimestamp is about one server", []edit{{core, "err = c.deleteNamed(ctx)\n", "err = c.deleteAll(ctx)\n"}}},
	{"a deletion that failed is asked for again", []edit{{gone, "case a.retried:", "case a.progress != notAsked:"}}},
	{"a deletion is never given up silently", []edit{{gone, "case a.retried:\n\t\treturn giveUp", "case a.retried:\n\t\treturn waitOn"}}},
	{"what a list shows of a stuck deletion may be old", []edit{{gone, "case seen.listed:\n\t\treturn lookCloser", "case false:\n\t\treturn lookCloser"}}},
	{"servers in ERROR are deleted", []edit{{create, "if err := c.deleteUnusable(ctx, p); err != nil {", "if p.last.Status == \"\" {"}}},
	{"servers in ERROR are not adopted", []edit{{create, "case p.last.Status == statusError:\n\t\treturn nil, cmp.Or", "case p.last.Status == \"\":\n\t\treturn nil, cmp.Or"}}},
	{"second servers are deleted", []edit{{create, "c.noteUnawaited(servers[i+1:], true)", "c.noteUnawaited(nil, true)"}}},
	{"a stuck deletion is asked for again by CreateMachine", []edit{{create, "c.noteUnawaited(deleting, false)", "_ = deleting"}}},
	{"allowed addresses are added, not replaced", []edit{{nics, "append(slices.Clone(nic.AllowedAddresses), missing...)", "missing"}}},
	{"a created server has its addresses", []edit{{nics, "complete() bool { return len(n.addresses) > 0 && n.allowed }", "complete() bool { return n.allowed }"}}},
	{"a failed read is not a failed machine", []edit{{waitGo, "\tdefault:\n\t\tklog.V(2).InfoS(\"An API call failed", "\tcase err != nil:\n\t\treturn err\n\tdefault:\n\t\tklog.V(2).InfoS(\"An API call failed"}}},
	{"errors have no brackets", []edit{{errorsGo, `text = strings.NewReplacer("[", "(", "]", ")").Replace(text)`, ``}}},
	{"a token that is refused is dropped", []edit{{"pkg/spi/auth.go", "a.tokens.drop(token)", "_ = token"}}},
	{"an exhausted class is asked for again after a minute", []edit{{"pkg/provider/exhaustion.go", "exhaustedFor = time.Minute", "exhaustedFor = time.Hour"}}},
	{"no error repeats userData", []edit{{userData, `if h.userData != "" {`, `if h.userData == "never" {`}}},
	{"no error repeats quoted userData", []edit{{userData, "strconv.AppendQuote(nil, userData)", `strconv.AppendQuote(nil, "")`}}},
	{"names that are sent stay in errors", []edit{{userData, "length = 0", "length += 0"}}},
	{"codes are decided on the API's whole message", []edit{{sdkClient, "translated.shown = hide.shown(translated.Message)", "translated.shown = hide.shown(translated.Message)\n\ttranslated.Message = translated.shown"}}},
	{"many who wait share a list", []edit{{coalesce, "} else if batch > g.policy.Singles && (full", "} else if batch > 100*g.policy.Singles && (full"}}},
	{"the longest waiting decides how it is read", []edit{{coalesce, "(full || !due[0].singly)", "(full || len(due) > 0)"}}},
	{"nobody gets what a read shows that began before", []edit{{coalesce, "if w.asked.After(began) {", "if w.asked.After(began.Add(time.Hour)) {"}}},

	// What was a defect once, in the order in which it was found.
	{"a young server is not believed gone: status", []edit{{status, "case server == nil && c.clock.Now().Before(p.absence.noPostBefore):", "case server == nil:\n\t\t\treturn errGone\n\t\tcase false:"}}},
	{"a young server is not believed gone: proof", []edit{{gone, "return a.deletingListed || !began.Before(a.noPostBefore)", "return true"}, {gone, "seen.listed && !seen.began.Before(a.noPostBefore))", "seen.listed)"}}},
	{"gone needs more than one read", []edit{{gone, "return a.proves(&before, seen)", "_ = before\n\treturn true"}}},
	{"empty lists alone are no proof", []edit{{gone, "a.row.byOthers = seen.listed && seen.others", "a.row.byOthers = seen.listed"}, {gone, "return seen.others && a.deletingListed", "return a.deletingListed"}}},
	{"one failing list stops nobody", []edit{{coalesce, "w.singly = w.singly || !w.due.After(now)", "w.singly = w.singly || w.due.IsZero()"}, {coalesce, "if g.failures == 0 {", "if g.failures >= 0 {"}}},
	{"the next list waits longer after each that failed", []edit{{coalesce, "g.failures++\n", "g.failures = 1\n"}}},
	{"no attempt is sent after a pause", []edit{{fence, "f.heldUntil = now.Add(f.hold)", "f.heldUntil = now"}}},
	{"retries of reads are reads, too", []edit{{pace, "held := a.shared.begun > 0\n", "held := false\n"}}},
	{"reads that were held back take turns", []edit{{pace, "\t\theld = true\n", ""}}},
	{"a failure halves the width", []edit{{pace, "max(a.width/2, 1)", "max(a.width-1, 1)"}}},
	{"any other answer doubles the width", []edit{{pace, "min(2*a.width, maxWidth)", "min(a.width+1, maxWidth)"}}},
	{"first attempts go before repeated ones", []edit{{pace, "a.repeated = before && ", "a.repeated = before && a.read && "}}},
	{"a pause follows a failure at width 1", []edit{{pace, "if a.widthThen == 1 {", "if a.widthThen == 0 {"}}},
	{"the pause doubles", []edit{{pace, "max(2*a.pause, firstPause)", "firstPause"}}},
	{"what hangs does not count as under way for long", []edit{{pace, "if now.Sub(a.began) < countsFor {", "if !a.began.After(now) {"}}},
	{"no request waits for longer than a minute", []edit{{pace, "left := maxPaceWait - a.shared.waited", "left := maxPaceWait"}}},
	{"what takes longer than a request may wait is not waited for", []edit{{pace, "case left <= 0, tooLong:", "case left <= 0:"}}},
	{"a caller that left says nothing about the API", []edit{{pace, "!isNotSent(err) && request.Context().Err() == nil", "!isNotSent(err)"}}},
	{"Retry-After pauses its kind only", []edit{{pace, `name := request.Method + " " + serviceOf(request)`, `name := request.Method[:0]`}}},
	{"a POST that was not sent is refused", []edit{{errorsGo, "case errors.As(err, &notSent), errors", "case errors.As(err, &notSent) && false, errors"}}},
	{"failed token fetches come ever more rarely", []edit{{"pkg/spi/token.go", "t.retryAt = t.clock.Now().Add(t.pause)", "t.retryAt = t.clock.Now()"}}},
	{"a tick hides no pause", []edit{{fence, "\tfor {\n\t\tf.tick()\n", "\tfor {\n\t\tf.mu.Lock()\n\t\tf.ticked = f.clock.Now()\n\t\tf.mu.Unlock()\n"}}},
	{"clocks may differ by ten seconds", []edit{{providers, "created.Before(since.Add(clockSkew))", "created.Before(since)"}}},
	{"a read that hangs holds up nobody", []edit{{coalesce, "single.holdsUntil = now.Add(g.policy.Patience)", "single.holdsUntil = now.Add(time.Hour)"}}},
	{"CreateMachine sees to the allowed addresses", []edit{{create, "connected, err := p.connect(ctx, p.id)", "connected, _, err := p.readConnection(ctx, p.id)\n\tconnected.allowed = true"}}},
	{"status without addresses is not OK", []edit{{core, "case !connected.complete():", "case false:"}}},
	{"status without a ProviderID is never Uninitialized", []edit{{status, `if id == "" || !c.knownConnection(id).complete() {`, `if id == "" {`}}},
	{"an invalid cluster label hides no server", []edit{{request, "|| len(validation.ValidateLabels(in.identity.cluster, nil)) > 0", ""}}},
	{"where the cluster is unknown no look-up answers", []edit{
		{search, "if c.clusterUnknown {", "if c.clusterUnknown && c.machine == \"\" {"}, {core, "if c.unlabelable || c.clusterUnknown {", "if c.unlabelable {"}}},
	{"items may be null", []edit{{sdkClient, "return noItems && additionalProperties == nil", "return noItems"}}},
	{"a class of another provider makes no server", []edit{{request, `if class.Provider != "" && class.Provider != StackitProviderName {`, `if class.Provider == "never" {`}}},
	{"a lost POST is sent again in the same call", []edit{{create, "maxPosts = 3", "maxPosts = 1"}}},
	{"not more than three POSTs a call", []edit{{create, "maxPosts = 3", "maxPosts = 300"}}},
	{"a POST is closed once its server is gone", []edit{{ledger, "delete(e.open, serverID)\n\t\tl.gone", "l.gone"}}},
	{"servers that are gone are ignored in lists", []edit{{ownership, " && !d.ledger.Gone(d.key, server.ID)", ""}}},
	{"a deletion that fails keeps no other", []edit{{deletion, "errs = append(errs, ends)\n\t\t\t\tcontinue", "return ends"}}},
	{"refused credentials end a wait with Unavailable", []edit{{waitGo, "\tcase isRefused(err):\n\t\treturn interruptedError(err)\n", "\tcase isRefused(err):\n\t\treturn err\n"}}},
	{"what was proved gone before is read once more", []edit{{deletion, "named := c.serverID //", "named := \"\" //"}}},
	{"a DELETE that was not accepted is sent again", []edit{{deletion, "r.absence.deleteSent(err == nil, notFound,", "r.absence.deleteSent(err == nil, false,"}}},
	{"refused at the POST after a wait, too", []edit{{create, "return nil, c.ended(err)", "return nil, err"}}},
	{"refused at a DELETE after a wait, too", []edit{{deletion, "if ends := r.afterStep(ctx, err, r.state()); ends != nil {", "if ends := err; ends != nil {"}}},

	// Moments, and doors.
	{"an absence that nobody expects takes 15 s", []edit{{gone, "\tif a.progress == notAsked {\n\t\treturn unexpectedApart", "\tif a.progress == failed {\n\t\treturn unexpectedApart"}}},
	{"a read that takes long is of its last moment", []edit{{gone, "*at = seen.ended", "*at = seen.began"}}},
	{"one empty look-up does not prove that there is none", []edit{{gone, "case oneIsEnough, len(found.servers) > 0:", "case oneIsEnough, len(found.servers) >= 0:"}}},
	{"the second look-up is of the whole project", []edit{{gone, "return found.wide && !first", "return !first"}, {search, "if wide || c.byName {", "if wide && c.machine == \"\" {"}}},
	{"one look-up is enough for a machine that nobody can have made a server for", []edit{{request, "return c.young && !c.fromOpenStack && !entry.HasOpenPost()", "return c.young && entry.ServerID == \"never\""}}},
	{"a POST that is open makes one look-up too few", []edit{{request, "return c.young && !c.fromOpenStack && !entry.HasOpenPost()", "_ = entry\n\treturn c.young"}}},
	{"a machine without labels may have a server without labels", []edit{{search, "if missing && server.ID != own", "_, _ = key, want\n\t\tif missing && own == \"never\""}}},
	{"a read decides whose server the POST's answer named", []edit{{ledger, "e.setServer(serverID)\n\t\te.Unread = true", "e.setServer(serverID)"}, {ownership, "return err\n\tcase err == nil:", "return nil\n\tcase err == nil:"}}},
	{"a POST whose answer named another's server is open", []edit{{ledger, "e.open[\"\"] = ended\n", "_ = ended\n"}}},
	{"a server without its labels is deleted", []edit{{create, "if err := c.deleteServers(ctx, []*removal{{p}}); err != nil {", "if err := ctx.Err(); err != nil {"}}},
	{"labels may take settle to show", []edit{{create, "case !byGet || c.clock.Now().Before(c.noPostBefore()):", "case !byGet:"}}},
	{"a POST elsewhere is asked about before a POST", []edit{{create, "cmp.Or(c.checkExhausted(), c.checkElsewhere())", "c.checkExhausted()"}}},
	{"a POST elsewhere is asked about before a deletion ends", []edit{{deletion, "if err := c.checkElsewhere(); err", "if err := ctx.Err(); err"}}},
	{"a Machine of the same name is another one", []edit{{ledger, "e.uid == \"\" || uid == \"\" || e.uid == uid", "true"}}},
	{"an empty cluster label is an unknown cluster", []edit{{request, "len(empty) > 0 || ", ""}}},
	{"an orphan carries its Machine's name", []edit{{deletion, "server.Name != c.machine {", "server.Name == \"\" {"}}},
	{"an orphan is asked to go, and not waited for", []edit{{core, "err = c.deleteOrphan(ctx, cmp.Or(p.orphanTimeout, orphanTimeout))", "err = c.deleteNamed(ctx)\n\t\t_ = cmp.Or(1)"}}},
	{"an orphan's deletion ends after seconds", []edit{{deletion, "orphanTimeout = 5 * time.Second", "orphanTimeout = 5 * time.Minute"}}},
	{"what is DELETING is listed", []edit{{core, "contradicts || name == \"\" ||", "contradicts || name == \"\" || server.IsDeleting() ||"}}},
	{"a deletion that stays DELETING is asked for again", []edit{{gone, "deletionRepeat = 2 * time.Minute", "deletionRepeat = 2 * time.Hour"}}},
	{"a DELETE that nobody waits for holds up nobody", []edit{{create, "unawaitedTimeout = 5 * time.Second", "unawaitedTimeout = 5 * time.Hour"}}},
	{"an exhausted class is not looked up", []edit{{create, "err != nil && c.knowsOfNoServer() {", "err != nil && c.machine == \"\" {"}}},
	{"an exhausted class hides no server", []edit{{create, "err != nil && c.knowsOfNoServer() {", "err != nil {"}}},
	{"one foreign ID keeps no other", []edit{{deletion, "\t\tif err != nil {\n\t\t\terrs = append(errs, err)\n\t\t}", "\t\tif err != nil {\n\t\t\treturn err\n\t\t}"}}},
	{"no DELETE before a read shows the server", []edit{{deletion, "if r.last == nil {", "if r.last == nil {\n\t\t\t_ = c.client.DeleteServer(ctx, r.id)"}}},
	{"a creation waits for what is left of the Machine's timeout", []edit{{deadlines, "max(MinCreationWait, min(left, t.wait))", "max(MinCreationWait, t.wait) + 0*left"}}},
	{"a creation waits for a minute at least", []edit{{deadlines, "max(MinCreationWait, min(left, t.wait))", "min(left, t.wait)"}}},
	{"a Machine's own creation timeout counts", []edit{{deadlines, "timeout = own.MachineCreationTimeout.Duration", "_ = own"}}},
	{"a machine type that does not exist lets another pool be tried", []edit{{errorsGo, "noMachineType.MatchString(f.api.Message)", "noMachineType.MatchString(f.api.Message) && f.api.StatusCode == 0"}}},
	{"a machine type that does not exist is no shortage of quota", []edit{{errorsGo, "prefixed(TextNoMachineType + ", "prefixed(TextQuota + "}}},
	{"every field of the providerSpec is sent", []edit{{"pkg/provider/helpers.go", "ConfigDrive:         spec.ConfigDrive,\n", ""}}},
	{"a key of absurd size is not parsed", []edit{{"pkg/spi/key.go", "cmp.Or(err, checkPrivateKey(privateKey(key)))", "cmp.Or(err)"}}},
	{"a key does not choose the path of its token endpoint", []edit{{"pkg/spi/config.go", "Path: tokenPath}) ||", "Path: parsed.Path}) ||"}}},
	{"a workload identity's token that expired is not sent", []edit{{identity, "!now.Before(claims.ExpiresAt.Time)", "now.IsZero()"}}},
	{"no token for an API server is sent", []edit{{identity, "\"kubernetes.default\")", "\"\\x00\")"}}},
	{"no token for the pod's own API server is sent", []edit{{identity, "|| slices.Contains(own, audience)", "|| len(own) < 0"}}},
	{"a Secret names no file outside of the operator's folders", []edit{{identityFile, "readRegular(root.Stat, root.Open, f.name, maxIdentity)", "readFile(f.dir+\"/\"+f.name, maxIdentity)"}}},
	{"a path with .. is no file of a folder", []edit{{identityFile, "if path.Clean(file) == file {", "if file != \"\" {"}}},
	{"a made-up token finds no session", []edit{{"pkg/spi/spi.go", "c.ServiceAccountEmail, c.Token, c.TokenFile}", "c.ServiceAccountEmail, c.TokenFile}"}}},
	{"a key and a workload identity are not both taken", []edit{{"pkg/provider/apis/validation/secret.go", "case secret.ServiceAccountKey != \"\":", "case secret.ServiceAccountKey == \"\\x00\":"}}},
	{"nothing is signed for callers that left", []edit{{"pkg/spi/token.go", "if t.waiting.Load() == 0 {", "if t.waiting.Load() < 0 {"}}},
	{"a POST that waits for memory is not sent", []edit{{"pkg/spi/bodies.go", "return nil, notSent(", "return nil, error("}}},
	{"large bodies share memory", []edit{{"pkg/spi/bodies.go", "size <= smallBody", "size <= maxBodies"}}},
	{"a Machine from OpenStack gets no second server", []edit{{create, "if c.fromOpenStack {\n\t\treturn c.takeOver(ctx)", "if c.machine == \"\" {\n\t\treturn c.takeOver(ctx)"}}},
	{"a Machine from OpenStack has one server of its name, or none is taken", []edit{{search, "if len(staying) != 1 {", "if len(staying) == 0 {"}}},
	{"a failed server from OpenStack is not deleted before its Machine", []edit{{create, "if c.fromOpenStack {\n\t\treturn fault", "if c.machine == \"\" {\n\t\treturn fault"}}},
	{"a server from OpenStack is found by its name", []edit{{search, "if wide || c.byName {", "if wide {"}}},
	{"one list of the project does not say that there is no server without labels", []edit{{search, "!s.young && s.serverID ==", "s.young && s.serverID =="}}},
	{"of a Machine from OpenStack, one look-up proves nothing", []edit{{request, "c.young && !c.fromOpenStack &&", "c.young &&"}}},
	{"never by name: what is attached elsewhere", []edit{{remains, "case one.serverID != \"\":", "case one.what == \"\":"}, {remains, "!seen.isByName || seen.serverID != \"\" ||", "!seen.isByName ||"}}},
	{"never by name: another cluster's", []edit{{ownership, "case isOurKey && value != want,\n", "case isOurKey && value != want && want == \"\",\n"}, {ownership, "isClusterLabel(key) && !slices.Contains(clusters, value),\n", ""}}},
	{"never by name: another cluster's by another key", []edit{{ownership, "isClusterLabel(key) && !slices.Contains(clusters, value),\n", ""}}},
	{"never by name: what another cluster's OpenStack tagged", []edit{{ownership, "isTag && !slices.Contains(clusters, cluster):", "isTag && cluster == \"\":"}}},
	{"never by name: another Machine's", []edit{{ownership, "(!labelled || machine == i.machine)", "(!labelled || machine != \"\")"}}},
	{"never by name: what only begins with it", []edit{{ownership, "name == i.machine && (!labelled", "strings.HasPrefix(name, i.machine) && (!labelled"}}},
	{"never by name: a volume of data", []edit{{remains, "volume.MayBoot() && ", ""}}},
	{"never by name: what was attached elsewhere a moment ago", []edit{{remains, "case r.leftAlone[one.what]:", "case r.leftAlone[one.what] && one.serverID != \"\":"}}},
	{"never by name: a NIC of another network", []edit{{remains, "nics, err := r.listNICs(ctx, r.spec.Networking.NetworkID, due)\n", "nics, err := r.listNICs(ctx, r.spec.Networking.NetworkID, due)\n\tall, _ := ListProjectNICs(ctx, r.session, r.key.Region)\n\tnics = append(nics, all...)\n"}, {remains, "networkID, id := r.spec.Networking.NetworkID, nic.ID", "networkID, id := nic.NetworkID, nic.ID"}}},
	{"never by name: what is left of a Machine that we made", []edit{{deletion, "err != nil || !c.fromOpenStack {", "err != nil {"}}},
	{"what a server from OpenStack left is waited for", []edit{{remains, "if err != nil || !stays {\n\t\t\tpending = true", "if err != nil || !stays && one.what == \"\" {\n\t\t\tpending = true"}}},
	{"one empty list of volumes proves nothing", []edit{{remains, "due = first.Add(unexpectedApart)", "return nil"}}},
	{"a volume in a list may be attached by now", []edit{{remains, "if err != nil || !seen.isByName || seen.serverID != \"\" || seen.isNetworks || seen.isChanging {", "if err != nil || seen.what == \"\" {"}}},
}
