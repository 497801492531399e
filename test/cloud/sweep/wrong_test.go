// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// refuses answers the requests of a method whose path has this part.
func refuses(method, part string, status int, body string) answers {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, part) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
		return true
	}
}

const refusal = `{"code":404,"msg":"no"}`

// What a run knows by its ID is found without marks; what is somebody else's stays.
func TestSweepOfWhatIsKnown(t *testing.T) {
	p := newProject(t)
	run := mark.NewRun(time.Now())
	p.Known.Server(run, p.post(api.PathServers, mark.Name(run, "unlabelled"), nil, fields))
	p.Known.Server(run, p.post(api.PathServers, "database-of-somebody", nil, fields))
	p.post(api.PathServers, mark.Name(run, "by-hand"), nil, fields)
	found, err := p.Sweeper.Run(t.Context(), run)
	// The boot volume has no marks: it is known when its server goes.
	left := []string{"server database-of-somebody", "server " + mark.Name(run, "by-hand")}
	if err != nil || found != 2 || !slices.Equal(p.names(), left) {
		t.Errorf("%d things, %v; left %q", found, err, p.names())
	}
	similar, err := p.Similar(t.Context())
	if err != nil || len(similar) != 2 || !strings.Contains(strings.Join(similar, "\n"), "database-of-somebody") {
		t.Errorf("%q, %v", similar, err)
	}
}

// A list that lags hides a server, and one 404 is no proof: a known one is looked for again.
func TestSweepOfWhatListsHide(t *testing.T) {
	reads := 0
	p := newProjectBehind(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/servers") {
			return refuses(http.MethodGet, "", http.StatusOK, `{"items":[]}`)(w, r)
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/servers/") {
			if reads++; reads == 1 {
				return refuses(http.MethodGet, "", http.StatusNotFound, refusal)(w, r)
			}
		}
		return false
	})
	p.Settle = time.Millisecond
	run := mark.NewRun(time.Now())
	for _, name := range []string{"a", "b"} {
		p.Known.Server(run, p.post(api.PathServers, mark.Name(run, name), nil, fields))
	}
	if found, err := p.Sweeper.Run(t.Context(), run); err != nil || found != 4 || len(p.names()) > 0 {
		t.Errorf("%d things, %v; left %q", found, err, p.names())
	}
}

// What cannot be listed or tagged does not keep what is found from going.
func TestSweepOfAnAPIThatRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		wrong answers
		left  int
		want  string
	}{
		"lists of NICs":             {refuses(http.MethodGet, "/nics", http.StatusNotFound, refusal), 1, "/nics answered 404"},
		"lists without items":       {refuses(http.MethodGet, "/volumes", http.StatusOK, `{"msg":"maintenance"}`), 2, "that is no list"},
		"labels of volumes":         {refuses(http.MethodPatch, "/volumes/", http.StatusForbidden, refusal), 0, ""},
		"labels of volumes, others": {refuses(http.MethodPatch, "/volumes/", http.StatusUnprocessableEntity, refusal), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProjectBehind(t, row.wrong)
			run := mark.NewRun(time.Now())
			p.makes(mark.Name(run, "a"), mark.Labels(run, "a", "c"))
			p.Patience = 2 * time.Second
			_, err := p.Sweeper.Run(t.Context(), run)
			if len(p.names()) != row.left || (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v; left %q, said %s", err, p.names(), p.said)
			}
		})
	}
}

// The API labels what it makes by itself: that keeps nothing from being tagged.
func TestTagBesideOtherLabels(t *testing.T) {
	p := newProject(t)
	run := mark.NewRun(time.Now())
	id := p.post(api.PathServers, mark.Name(run, "a"), mark.Labels(run, "a", "c"), fields)
	server, err := p.API.Server(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	volume := api.PathVolumes + "/" + server.BootVolume.ID
	if _, err := p.API.Do(t.Context(), http.MethodPatch, volume, map[string]any{"labels": map[string]string{"stackit_project_id": "x"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []map[string]string{{"NIC": "keys with dots and a slash: 200", "volume": "keys with dots and a slash: 200"}, {}} {
		if took, err := p.Tag(t.Context(), server); err != nil || !maps.Equal(took, want) {
			t.Errorf("%v %v, want %v", took, err, want)
		}
	}
	if took, err := p.Tag(t.Context(), &api.Server{ID: id, Name: server.Name, Labels: server.Labels}); err != nil || len(took) != 2 {
		t.Errorf("a server that shows neither: %v %v", took, err)
	}
	nic := p.API.PathNICs() + "/" + server.NICs[0].ID
	if _, err := p.API.Do(t.Context(), http.MethodPatch, nic, map[string]any{"labels": map[string]string{mark.ClusterLabel: "shoot--prod"}}); err != nil {
		t.Fatal(err)
	}
	if took, err := p.Tag(t.Context(), server); err != nil || !strings.HasPrefix(took["NIC"], "not tried") {
		t.Errorf("%v %v", took, err)
	}
}

// What is attached to a server that stays is not waited for.
func TestSweepOfWhatSomebodyHas(t *testing.T) {
	p := newProject(t)
	old := mark.NewRun(p.clock.Now())
	nic := p.post(p.API.PathNICs(), mark.Name(old, "a"), mark.Labels(old, "a", "c"), nil)
	theirs := maps.Clone(fields)
	theirs["networking"] = map[string]any{"nicIds": []any{nic}}
	p.post(api.PathServers, "somebodys", nil, theirs)
	p.Patience = 10 * time.Second
	if found, err := p.Old(t.Context()); err != nil || found != 0 || !strings.Contains(p.said.String(), "leaves NIC "+nic) {
		t.Errorf("%d things, %v, said %s", found, err, p.said)
	}
}

// A server that is being deleted is asked to go again only when it seems to be stuck.
func TestSweepIsNotBusy(t *testing.T) {
	p := newProject(t)
	run := mark.NewRun(time.Now())
	p.post(api.PathServers, mark.Name(run, "a"), mark.Labels(run, "a", "c"), fields)
	p.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", NeverGone: true, Count: 1})
	if _, err := p.Sweeper.Run(t.Context(), run); err != nil || len(p.names()) > 0 {
		t.Errorf("%v, left %q", err, p.names())
	}
	if counts := p.cloud.CallCounts(); counts["DeleteServer"] != 2 || counts["ListServers"] < stuckAfter {
		t.Errorf("calls %v", counts)
	}
}
