// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes what runs of the suite have left: servers, NICs and volumes that
// package mark takes for a run's, and nothing else.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// OldAfter is the age from which things of a run go that has not been named: no run lasts
// that long.
const OldAfter = time.Hour

// Sweeper sweeps a project.
type Sweeper struct {
	API *api.Client
	// Out is told what is found, before anything is deleted.
	Out io.Writer
	// Settle is how long lists may lag: what they show is looked at again after it. Patience
	// is how long a deletion may take.
	Settle, Patience time.Duration
}

// thing is a server, NIC or volume.
type thing struct {
	kind, id, name, run, path string
	age                       time.Duration
	ageKnown                  bool
	// attached says that it goes with its server.
	attached bool
	server   api.Server
}

func (t thing) String() string {
	age := "of unknown age"
	if t.ageKnown {
		age = t.age.Round(time.Second).String() + " old"
	}
	return fmt.Sprintf("%s %s (%s), %s", t.kind, t.id, t.name, age)
}

// Run deletes all things of the run, at once. It looks until nothing was there for the time
// that lists may lag: a request of a killed run may still be on its way.
func (s Sweeper) Run(ctx context.Context, run string) (found int, err error) {
	return s.sweep(ctx, func(t thing) bool { return t.run == run }, s.Settle)
}

// Old deletes the things of all runs that are older than OldAfter.
func (s Sweeper) Old(ctx context.Context) (found int, err error) {
	return s.sweep(ctx, func(t thing) bool { return t.ageKnown && t.age > OldAfter }, 0)
}

// Others returns the runs that have servers younger than OldAfter that nobody is deleting.
func (s Sweeper) Others(ctx context.Context) (runs map[string]string, err error) {
	things, err := s.servers(ctx)
	runs = map[string]string{}
	for _, t := range things {
		if t.server.Live() && (!t.ageKnown || t.age <= OldAfter) {
			runs[t.run] = t.String()
		}
	}
	return runs, err
}

func (s Sweeper) sweep(ctx context.Context, goes func(thing) bool, quiet time.Duration) (found int, err error) {
	shown := map[string]bool{}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Patience, fmt.Errorf("sweep: not everything was gone after %s", s.Patience))
	defer cancel()
	clean := time.Now()
	for {
		things, err := s.find(ctx, goes)
		if err != nil {
			return len(shown), err
		}
		for _, t := range things {
			if !shown[t.id] {
				_, _ = fmt.Fprintf(s.Out, "sweep: deletes %s\n", t)
				shown[t.id] = true
			}
		}
		if len(things) > 0 {
			s.remove(ctx, things)
			clean = time.Now()
		} else if time.Since(clean) >= quiet {
			return len(shown), nil
		}
		if err := api.Pause(ctx, min(2*time.Second, max(quiet/5, 200*time.Millisecond))); err != nil {
			return len(shown), err
		}
	}
}

// find returns what goes.
func (s Sweeper) find(ctx context.Context, goes func(thing) bool) ([]thing, error) {
	all, err := s.servers(ctx)
	if err != nil {
		return nil, err
	}
	nics, err := s.API.NICs(ctx)
	if err != nil {
		return nil, err
	}
	volumes, err := s.API.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, nic := range nics {
		if run, ours := mark.RunOf(nic.Name, nic.Labels); ours {
			t := thing{kind: "NIC", id: nic.ID, name: nic.Name, run: run, path: s.API.PathNICs() + "/" + nic.ID, attached: nic.Device != ""}
			t.age, t.ageKnown = mark.Age(run, time.Time{}, now)
			all = append(all, t)
		}
	}
	for _, volume := range volumes {
		if run, ours := mark.RunOf(volume.Name, volume.Labels); ours {
			t := thing{kind: "volume", id: volume.ID, name: volume.Name, run: run, path: api.PathVolumes + "/" + volume.ID, attached: volume.ServerID != ""}
			t.age, t.ageKnown = mark.Age(run, volume.CreatedAt, now)
			all = append(all, t)
		}
	}
	var found []thing
	for _, t := range all {
		if goes(t) {
			found = append(found, t)
		}
	}
	return found, nil
}

func (s Sweeper) servers(ctx context.Context) ([]thing, error) {
	servers, err := s.API.Servers(ctx, "")
	if err != nil {
		return nil, err
	}
	var found []thing
	for _, server := range servers {
		run, ours := mark.RunOf(server.Name, server.Labels)
		if !ours || server.Status == api.StatusDeleted {
			continue
		}
		t := thing{kind: "server", id: server.ID, name: server.Name, run: run, path: api.PathServers + "/" + server.ID, server: server}
		t.age, t.ageKnown = mark.Age(run, server.CreatedAt, time.Now())
		found = append(found, t)
	}
	return found, nil
}

// remove asks for deletions. What is refused is asked for again, as long as it is found.
func (s Sweeper) remove(ctx context.Context, things []thing) {
	for _, t := range things {
		switch {
		case t.kind == "server" && t.server.Live():
			// So that what the server leaves is found.
			if server, err := s.API.Server(ctx, t.id); err == nil && server != nil {
				_, _ = Tag(ctx, s.API, server)
			}
		case t.kind != "server" && t.attached:
			continue
		}
		_, _ = s.API.Do(ctx, http.MethodDelete, t.path, nil)
	}
}

// Similar returns what looks like the suite's and lacks a name or label of it: nobody but a
// person can say whose it is.
func (s Sweeper) Similar(ctx context.Context) ([]string, error) {
	servers, err := s.API.Servers(ctx, "")
	var similar []string
	for _, server := range servers {
		if _, ours := mark.RunOf(server.Name, server.Labels); !ours && mark.Similar(server.Name, server.Labels) {
			similar = append(similar, fmt.Sprintf("server %s (%s)", server.ID, server.Name))
		}
	}
	return similar, err
}

// Tag gives the NICs and the boot volume of one of the suite's servers its labels and its
// name, so that they are found if the API leaves them behind. NICs and volumes that have
// labels or come from elsewhere stay as they are. The server is one with details. Tag returns
// how the API took the labels, for each kind.
func Tag(ctx context.Context, client *api.Client, server *api.Server) (map[string]string, error) {
	run, ours := mark.RunOf(server.Name, server.Labels)
	if !ours {
		return nil, nil
	}
	labels := mark.Labels(run, server.Labels.Get(provider.StackitMachineLabel), server.Labels.Get(provider.StackitMachineClassLabel))
	took := map[string]string{}
	var problems []error
	for _, shown := range server.NICs {
		nic, err := client.NIC(ctx, shown.ID)
		problems = append(problems, err)
		if nic != nil && len(nic.Labels) == 0 {
			took["NIC"], err = tag(ctx, client, client.PathNICs()+"/"+nic.ID, server.Name, labels)
			problems = append(problems, err)
		}
	}
	if server.BootVolume.ID != "" {
		volume, err := client.Volume(ctx, server.BootVolume.ID)
		problems = append(problems, err)
		if volume != nil && len(volume.Labels) == 0 {
			took["volume"], err = tag(ctx, client, api.PathVolumes+"/"+volume.ID, server.Name, labels)
			problems = append(problems, err)
		}
	}
	return took, errors.Join(problems...)
}

// tag tries keys with a slash and, where the API refuses them, plain ones.
func tag(ctx context.Context, client *api.Client, path, name string, labels map[string]string) (string, error) {
	first, err := client.Do(ctx, http.MethodPatch, path, map[string]any{"name": name, "labels": labels})
	if err != nil || first.Status != http.StatusBadRequest {
		return fmt.Sprintf("keys with dots and a slash: %d", first.Status), err
	}
	plain := map[string]string{}
	for key, value := range labels {
		plain[mark.Plain(key)] = value
	}
	second, err := client.Do(ctx, http.MethodPatch, path, map[string]any{"name": name, "labels": plain})
	return fmt.Sprintf("keys with dots and a slash: %d, without: %d", first.Status, second.Status), err
}
