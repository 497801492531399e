// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"maps"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/settings"
)

func pointers(labels map[string]string) api.Labels {
	result := api.Labels{}
	for key, value := range labels {
		result[key] = &value
	}
	return result
}

func TestWhatIsARunsOwn(t *testing.T) {
	const run = "20261123-071100-abcd"
	right := Labels(run, "m", "c")
	with := func(key, value string) map[string]string {
		labels := maps.Clone(right)
		labels[key] = value
		return labels
	}
	plain := map[string]string{}
	for key, value := range right {
		plain[Plain(key)] = value
	}
	for name, row := range map[string]struct {
		name   string
		labels map[string]string
		want   bool
	}{
		"all marks":               {Name(run, "first"), right, true},
		"keys without a slash":    {Name(run, "first"), plain, true},
		"no labels":               {Name(run, "first"), nil, false},
		"no cluster label":        {Name(run, "first"), with(ClusterLabel, ""), false},
		"another cluster":         {Name(run, "first"), with(ClusterLabel, "shoot--a--b"), false},
		"no machine label":        {Name(run, "first"), with(provider.StackitMachineLabel, ""), false},
		"no class label":          {Name(run, "first"), with(provider.StackitMachineClassLabel, ""), false},
		"another run's name":      {Name(run+"x", "first"), right, false},
		"the prefix alone":        {Prefix + "first", right, false},
		"something before it":     {"x" + Name(run, "first"), right, false},
		"a cluster without run":   {Prefix + "-a", with(ClusterLabel, Prefix), false},
		"a run that is not a run": {Prefix + "a.b-c", with(ClusterLabel, Prefix+"a.b"), false},
		"somebody's cluster":      {Name("prod", "worker-z1"), Labels("prod", "m", "c"), false},
		"a cluster like a run":    {Name(run+"-2", "w"), Labels(run+"-2", "m", "c"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ours := RunOf(row.name, pointers(row.labels))
			if ours != row.want || ours && got != run {
				t.Errorf("run %q, %t", got, ours)
			}
		})
	}
}

// What is known by its ID lacks marks at most; what has somebody else's stays.
func TestWhatARunKnowsByID(t *testing.T) {
	const run = "20261123-071100-abcd"
	known := NewKnown()
	known.Server(run, "server")
	known.Part(run, "server", "volume")
	elsewhere := map[string]string{ClusterLabel: "shoot--prod"}
	for name, row := range map[string]struct {
		id, name string
		labels   map[string]string
		want     bool
	}{
		"a server without labels":             {"server", Name(run, "a"), nil, true},
		"a server with the API's labels":      {"server", Name(run, "a"), map[string]string{"stackit_project_id": "x"}, true},
		"a server of another name":            {"server", "database-of-somebody", nil, false},
		"a server without a name":             {"server", "", nil, false},
		"a server of another cluster":         {"server", Name(run, "a"), elsewhere, false},
		"a server of another run":             {"server", Name(run, "a"), map[string]string{ClusterLabel: Cluster(NewRun(time.Now()))}, false},
		"a volume without a name":             {"volume", "", nil, true},
		"a volume with our name":              {"volume", Name(run, "a"), nil, true},
		"a volume with somebody's name":       {"volume", "pvc-1", nil, false},
		"a volume of another cluster":         {"volume", "", elsewhere, false},
		"an unknown volume without a name":    {"other", "", nil, false},
		"an unknown server without labels":    {"other", Name(run, "a"), nil, false},
		"an unknown server with all of them":  {"other", Name(run, "a"), Labels(run, "m", "c"), true},
		"an unknown volume with all of them":  {"other", Name(run, "a"), Labels(run, "m", "c"), true},
		"an unknown one of another's cluster": {"other", Name(run, "a"), elsewhere, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ours := known.Whose(row.id, row.name, pointers(row.labels))
			if ours != row.want || ours && got != run {
				t.Errorf("run %q, %t", got, ours)
			}
		})
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	run := NewRun(now.Add(-2 * time.Hour))
	if age, known := Age(run, time.Time{}, now); !known || age != 2*time.Hour {
		t.Errorf("by the run's name: %s, %t", age, known)
	}
	if age, known := Age(run, now.Add(-time.Minute), now); !known || age != time.Minute {
		t.Errorf("by the API: %s, %t", age, known)
	}
	for _, run := range []string{"old", "20269999-071100-abcd"} {
		if _, known := Age(run, time.Time{}, now); known {
			t.Errorf("%s has no age", run)
		}
	}
	if !settings.IsRun(run) {
		t.Errorf("%s has no run's form", run)
	}
	if NewRun(now) >= NewRun(now.Add(time.Second)) {
		t.Error("runs are not in the order of their starts")
	}
}
