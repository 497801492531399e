// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// check checks the cloud's state; it runs after every change.
func (w *world) check() {
	w.checkForeign(false)
	if !w.plan.promised() {
		return
	}
	for who, servers := range w.servers(mayJoin) {
		if len(servers) > 1 {
			w.violated("%d servers of Machine %s in cluster %s could join at the same time: must be at most 1",
				len(servers), who.machine, who.cluster)
		}
	}
}

// mayAsk checks a request before it is executed: a process changes only its own cluster's resources, and does
// not delete the server of a Machine that is to stay.
func (w *world) mayAsk(c call) {
	id := c.id
	switch c.operation {
	case opDelete:
		w.mayDelete(c)
	case opDeleteNIC:
		w.mayDelete(c)
		return
	case opCreate:
		w.mayPost(c)
		return
	case opPatch:
		id = w.serverOfNIC(c.id)
	default:
		return
	}
	server, exists := w.cloud.Server(id)
	if !exists {
		return
	}
	who := ownerOf(&server)
	if _, foreign := w.foreign.things[id]; foreign || who.cluster != c.cluster || !c.calledFor(who.machine) {
		w.violated("%s of server %s by cluster %s for %s: the server belongs to another cluster, Machine or owner",
			c.operation, id, c.cluster, c.caller)
	}
	m := w.machine(owner{c.cluster, who.machine})
	if c.operation == opDelete && m != nil && m.DeletionTimestamp == nil && server.Status == iaasmock.StatusActive &&
		serverOf(m.Spec.ProviderID) == id {
		w.violated("server %s is deleted while it runs for Machine %s, whose deletion was not requested", id, who.machine)
	}
}

// promptCodes are the codes that MCM retries after seconds: any disturbance may cause them.
var promptCodes = []codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}

// longestCall is the driver's longest call, orphansCall its deadline for a GET and a DELETE of an orphan.
const longestCall, orphansCall = 10 * time.Minute, 5 * time.Second

// isTooSlowForOrphans reports whether the deletion of an orphan may miss its deadline: it takes a GET and a
// DELETE, with two latencies each.
func (p *Plan) isTooSlowForOrphans() bool { return 4*p.Latency >= orphansCall }

// checkText checks a driver error's text: a single line, with a reason that fits the code, and without secrets.
func (w *world) checkText(method string, code codes.Code, err error) {
	if strings.ContainsAny(strings.TrimPrefix(err.Error(), "machine codes error: "), "\n") {
		w.violated("the error of %s has several lines: %v", method, err)
	}
	hasNext := code == codes.Unavailable && strings.Contains(err.Error(), "; next: ") // a fallback
	if reason := provider.ReasonIn(err.Error()); reason == "" || reason.Code() != code && !hasNext {
		w.violated("the error of %s has no reason, or a reason that belongs to another code: %v", method, err)
	}
	if leak := secretIn(err.Error()); leak != "" {
		w.violated("the error of %s contains %s", method, leak)
	}
}

func isCreationTimedOut(err error) bool {
	return err != nil && provider.ReasonIn(err.Error()) == provider.ReasonCreationTimedOut
}

// checkCode checks a driver error's code: a code that makes the manager wait for minutes, or give up, needs a
// cause that explains it.
func (w *world) checkCode(method string, code codes.Code, err error) {
	w.checkText(method, code, err)
	if method == "GetMachineStatus" && (code == codes.NotFound || code == codes.Uninitialized) {
		return
	}
	if w.disturbed && slices.Contains(promptCodes, code) || isCreationTimedOut(err) { // replaced: see checkFailure
		return
	}
	if code == codes.Unauthenticated && w.plan.Rotations > 0 {
		return
	}
	w.mu.Lock()
	explained := false
	for _, cause := range w.causes {
		explained = explained || slices.Contains(cause.explains, code)
	}
	w.mu.Unlock()
	if !explained {
		w.violated("%s returned %s, which no fault so far explains: %v", method, code, err)
	}
}

// exhaustedRetry is the manager's --resource-exhausted-retry.
const exhaustedRetry = 10 * time.Minute

// toldExhausted records that a Machine got ResourceExhausted: because of a cause or, the next time, because
// the server that ended in ERROR still exists.
func (w *world) toldExhausted(m *v1alpha1.Machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, before := w.exhausted[m.UID]
	if !before {
		w.exhausted[m.UID] = w.clock.Now()
	}
	w.outlived[m.UID] = before && w.clock.Since(first) >= exhaustedRetry
}

// checkFailure reports a Machine that has failed for good without a cause that makes this unavoidable.
func (w *world) checkFailure(cluster string, m *v1alpha1.Machine) {
	w.mu.Lock()
	spoiled := w.outlived[m.UID]
	for _, cause := range w.causes {
		spoiled = spoiled || cause.spoils
	}
	w.mu.Unlock()
	if !spoiled {
		w.violated("Machine %s of cluster %s is Failed, although no fault so far makes that unavoidable", m.Name, cluster)
	}
}

// checkGone checks that no server is left of a Machine that is gone.
func (w *world) checkGone(who owner) {
	if !w.plan.promised() {
		return
	}
	w.checkLeftovers(who)
	for _, id := range w.servers(anyServer)[who] {
		w.violated("Machine %s of cluster %s is gone, but its server %s still exists", who.machine, who.cluster, id)
	}
}

// checkRest checks the state at rest: each Machine has exactly one server, which no caller will check again
// and which is complete, and nothing else of ours is left.
func (w *world) checkRest(when string, isLeft func(*iaasmock.Server) bool) {
	w.checkForeign(false)
	// A deletion that is stuck in the cloud is retried when the Machine is deleted.
	servers := w.servers(func(server *iaasmock.Server) bool { return server.Status != iaasmock.StatusDeleting })
	for _, c := range w.clusters {
		for _, m := range c.machines() {
			who := owner{c.name, m.Name}
			if ids := servers[who]; len(ids) != 1 || ids[0] != serverOf(m.Spec.ProviderID) {
				w.violated("%s: Machine %s of cluster %s has the servers %v: must be only the server in its ProviderID %s",
					when, m.Name, c.name, ids, m.Spec.ProviderID)
			}
			delete(servers, who)
			if m.Spec.Class.Name == classA && !w.initialized(serverOf(m.Spec.ProviderID)) {
				w.violated("%s: the server of Machine %s of cluster %s runs without its allowed addresses", when, m.Name, c.name)
			}
		}
	}
	for who, ids := range servers {
		ids = slices.DeleteFunc(ids, func(id string) bool {
			server, _ := w.cloud.Server(id)
			return !isLeft(&server)
		})
		if len(ids) > 0 {
			w.violated("%s: servers %v still exist, but Machine %s of cluster %s does not",
				when, ids, who.machine, who.cluster)
		}
	}
}

// checkSecrets reports the secrets in the log. Concurrent runs share the log, so each reports its leaks.
func (w *world) checkSecrets() {
	klog.Flush()
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, leak := range log.leaks {
		w.violated("the log contains %s", leak)
	}
}

// checkForeign compares the resources that are not ours with their initial state. onlyForeign means that
// nothing else may exist.
func (w *world) checkForeign(onlyForeign bool) {
	for _, change := range w.foreign.changes(w.cloud, onlyForeign) {
		w.violated("%s", change)
	}
}

const (
	// busiest limits a cluster's calls within ten seconds, plus one for each Machine, since all Machines may
	// change something at once. Coalesced reads are at most eight a second; the rest are writes and retries.
	busiest = 90
	// conflictCalls is the number of calls within ten seconds for a Machine whose cache is stale: after each
	// conflict the manager retries in 200 ms.
	conflictCalls = 60
)

// checkCalls checks each cluster's peak number of calls within ten seconds.
func (w *world) checkCalls() {
	peak := 0
	for _, begun := range w.begun {
		slices.Sort(begun)
		first := 0
		for last := range begun {
			for begun[last]-begun[first] >= 10*time.Second {
				first++
			}
			peak = max(peak, last-first+1)
		}
	}
	atMostAtOnce := busiest + w.lives
	if w.plan.cacheIsStale() {
		atMostAtOnce += conflictCalls * w.lives
	}
	if peak > atMostAtOnce {
		w.violated("a cluster made %d API calls within ten seconds: too many for the number of its Machines", peak)
	}
}

// keyCount is one key for foreign servers and two for each cluster.
const keyCount = 5

// simulationKeys are generated once, because that is slow.
var simulationKeys = sync.OnceValue(func() [][]byte {
	cloud := iaasmock.New()
	var keys [][]byte
	for range keyCount {
		key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

// secrets maps the texts that must not appear in logs and errors to their descriptions.
var secrets = sync.OnceValue(func() map[string]string {
	found := map[string]string{
		userData: "userData", base64.StdEncoding.EncodeToString([]byte(userData)): "userData in base64",
		"PRIVATE KEY": "a private key", "eyJ": "a token",
	}
	for _, raw := range simulationKeys() {
		var key struct {
			Credentials struct{ PrivateKey string }
		}
		if err := json.Unmarshal(raw, &key); err != nil {
			panic(err)
		}
		found[key.Credentials.PrivateKey[100:140]] = "a private key's body"
	}
	return found
})

// secretIn returns the description of the secret in a text; "" if there is none.
func secretIn(text string) string {
	for secret, name := range secrets() {
		if strings.Contains(text, secret) {
			return name
		}
	}
	return ""
}

// listener reads the log output and records the secrets in it.
type listener struct {
	mu    sync.Mutex
	leaks []string
}

// Write implements io.Writer.
func (l *listener) Write(text []byte) (int, error) {
	if leak := secretIn(string(text)); leak != "" {
		l.mu.Lock()
		l.leaks = append(l.leaks, leak+" in: "+string(text))
		l.mu.Unlock()
	}
	return len(text), nil
}

var log listener

// ListenToLogs makes every run check the log for secrets: it redirects klog's output of the whole process, at
// verbosity 4, to that check. The log is not printed from then on.
func ListenToLogs() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "v": "4"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(&log)
}
