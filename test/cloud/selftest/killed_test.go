// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var (
	kills = flag.Int("kills", 1, "at how many random moments the suite is killed")
	// Most of a run's requests for servers are in this time.
	killWithin = flag.Duration("kill-within", 90*time.Second, "the latest of them")
)

// somebody works in the same project, without the suite.
type somebody struct {
	*testing.T

	api *api.Client
}

func newSomebody(t *testing.T, m mock) somebody {
	t.Helper()
	variables := map[string]string{}
	for _, variable := range environment(m, m.url) {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	read, err := settings.Read(func(name string) (string, bool) { value, ok := variables[name]; return value, ok }, true)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.New(read, m.url)
	if err != nil {
		t.Fatal(err)
	}
	return somebody{t, client}
}

// makes makes a thing and returns its ID.
func (s somebody) makes(path string, body map[string]any) string {
	s.Helper()
	answer, err := s.api.Do(s.Context(), http.MethodPost, path, body)
	var made struct{ ID string }
	if err != nil || answer.Status != http.StatusCreated || json.Unmarshal(answer.Body, &made) != nil {
		s.Fatalf("POST %s: %d %s %v", path, answer.Status, answer.Body, err)
	}
	return made.ID
}

// makesSimilar makes a server, a NIC and a volume of each name with the labels that go with
// it, none of which is the run's.
func (s somebody) makesSimilar(run string) {
	s.Helper()
	right := mark.Labels(run, mark.Name(run, "first"), mark.Name(run, "class"))
	without := func(key string) map[string]string {
		labels := maps.Clone(right)
		delete(labels, key)
		return labels
	}
	longer := mark.Labels(run+"x", mark.Name(run, "first"), mark.Name(run, "class"))
	for name, labels := range map[string]map[string]string{
		mark.Name(run, "no-label"):          nil,
		mark.Name(run, "no-cluster"):        without(mark.ClusterLabel),
		mark.Name(run, "no-machine"):        without(provider.StackitMachineLabel),
		mark.Name(run, "no-class"):          without(provider.StackitMachineClassLabel),
		mark.Name(run, "of-longer-run"):     longer,
		mark.Cluster(run) + "x-first":       right,
		"x" + mark.Name(run, "first"):       right,
		"shoot--prod--workers-" + run[:8]:   {mark.ClusterLabel: "shoot--prod", provider.StackitMachineLabel: "a", provider.StackitMachineClassLabel: "b"},
		mark.Prefix + "by-hand":             right,
		mark.Prefix[:len(mark.Prefix)-1]:    right,
		mark.Name("another-run", "machine"): mark.Labels("another-run", "a", "b"),
	} {
		body := map[string]any{"name": name}
		if labels != nil {
			body["labels"] = labels
		}
		s.makes(s.api.PathNICs(), body)
		volume := maps.Clone(body)
		volume["availabilityZone"], volume["size"] = iaasmock.DefaultAvailabilityZone, 10
		s.makes(api.PathVolumes, volume)
		server := maps.Clone(body)
		server["machineType"], server["networking"] = iaasmock.DefaultMachineType, map[string]any{"networkId": iaasmock.DefaultNetworkID}
		server["bootVolume"] = map[string]any{"size": 10, "source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}}
		s.makes(api.PathServers, server)
	}
}

var printedRun = regexp.MustCompile(`Run (\S+) makes`)

// TestKilled kills the suite at random moments. The sweep of the run leaves nothing of it,
// and touches nothing else.
func TestKilled(t *testing.T) {
	t.Parallel()
	buildControlPlane(t)
	for i := range *kills {
		moment := rand.N(*killWithin)
		t.Run(fmt.Sprintf("%d after %s", i+1, moment.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			m := startMock(t, "--boot=3s", "--delete=2s", "--list-lag=1s")
			before := m.state(t).ids()
			s := newSuite(t, m, m.url)
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			var run string
			await(t, "the run has a name", func() bool {
				if found := printedRun.FindStringSubmatch(s.output.String()); found != nil {
					run = found[1]
				}
				return run != ""
			})
			time.Sleep(moment) //nolint:forbidigo // what is wanted is a moment
			if err := s.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait() // it was killed
			newSomebody(t, m).makesSimilar(run)
			others := m.state(t)
			t.Logf("killed with %d servers in all", len(others.Servers))

			swept := newSuite(t, m, m.url, "sweep")
			swept.Env = append(swept.Env, "RUN="+run)
			if code := swept.run(t); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, swept.output)
			}
			expectOnlyOf(t, run, before, others, m.state(t), swept.output.String())
		})
	}
}

// expectOnlyOf compares what there is after a sweep with what there was before it: only the
// things of the run have gone.
func expectOnlyOf(t *testing.T, run string, before map[string]bool, others, left state, said string) {
	t.Helper()
	ours := map[string]bool{}
	for _, server := range others.Servers {
		if _, is := mark.RunOf(server.Name, pointers(server.Labels)); is && server.Labels[mark.ClusterLabel] == mark.Cluster(run) {
			ours["server "+server.ID] = true
			for _, nic := range others.NICs {
				ours["NIC "+nic.ID] = ours["NIC "+nic.ID] || nic.ServerID == server.ID
			}
			for _, volume := range others.Volumes {
				ours["volume "+volume.ID] = ours["volume "+volume.ID] || volume.ServerID == server.ID
			}
		}
	}
	now := left.ids()
	for id := range before {
		if !now[id] {
			t.Errorf("%s was there before the run and has gone:\n%s", id, said)
		}
	}
	for id := range others.ids() {
		if ours[id] == now[id] {
			t.Errorf("%s: of the run %t, there after the sweep %t:\n%s", id, ours[id], now[id], said)
		}
	}
	for id := range now {
		if !others.ids()[id] {
			t.Errorf("%s came after the run was killed", id)
		}
	}
}

func pointers(labels map[string]string) api.Labels {
	result := api.Labels{}
	for key, value := range labels {
		result[key] = &value
	}
	return result
}
