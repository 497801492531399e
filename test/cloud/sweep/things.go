// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// thing is a server, NIC or volume that the API shows.
type thing struct {
	kind, id, name, path string
	// run is whose it is; ours is false for somebody else's.
	run  string
	ours bool
	// similar says that it has a name or label like the suite's.
	similar  bool
	age      time.Duration
	ageKnown bool
	// status is that of a server.
	status string
	// holder is the ID of the server that a NIC or volume is attached to, empty for none: it
	// goes with that server.
	holder string
}

const server = "server"

func (t thing) String() string {
	age := "of unknown age"
	if t.ageKnown {
		age = t.age.Round(time.Second).String() + " old"
	}
	return fmt.Sprintf("%s %s (%s), %s", t.kind, t.id, t.name, age)
}

// live says that nobody is deleting the server.
func (t thing) live() bool { return api.Server{Status: t.status}.Live() }

// things are what there is in a project.
type things []thing

// server returns the server of this ID.
func (all things) server(id string) (thing, bool) {
	for _, t := range all {
		if t.kind == server && t.id == id {
			return t, true
		}
	}
	return thing{}, false
}

// list returns what there is. What it does not show for as long as lists may lag is gone. With
// an error, it returns what it could list.
func (s Sweeper) list(ctx context.Context) (things, error) {
	servers, problem := s.servers(ctx)
	all := things(servers)
	problems := []error{problem}
	nics, err := s.API.NICs(ctx)
	problems = append(problems, err)
	for _, nic := range nics {
		all = append(all, s.classify(thing{kind: "NIC", id: nic.ID, name: nic.Name, path: s.API.PathNICs() + "/" + nic.ID, holder: nic.Device}, nic.Labels, time.Time{}))
	}
	volumes, err := s.API.Volumes(ctx)
	problems = append(problems, err)
	for _, volume := range volumes {
		all = append(all, s.classify(thing{kind: "volume", id: volume.ID, name: volume.Name, path: api.PathVolumes + "/" + volume.ID, holder: volume.ServerID}, volume.Labels, volume.CreatedAt))
	}
	return all, errors.Join(problems...)
}

// servers lists servers, and reads those that are known and that the list does not show: it
// may lag.
func (s Sweeper) servers(ctx context.Context) ([]thing, error) {
	servers, err := s.API.Servers(ctx, "")
	if err != nil {
		return nil, err
	}
	unlisted := s.Known.Servers()
	for _, listed := range servers {
		delete(unlisted, listed.ID)
	}
	var problems []error
	for id := range unlisted {
		read, err := s.API.Server(ctx, id)
		problems = append(problems, err)
		if read != nil {
			servers = append(servers, *read)
		}
	}
	var all []thing
	for _, shown := range servers {
		if shown.Status != api.StatusDeleted {
			all = append(all, s.classify(thing{kind: server, id: shown.ID, name: shown.Name, path: api.PathServers + "/" + shown.ID, status: shown.Status}, shown.Labels, shown.CreatedAt))
		}
	}
	return all, errors.Join(problems...)
}

// classify says whose a thing is, and how old.
func (s Sweeper) classify(t thing, labels api.Labels, created time.Time) thing {
	t.run, t.ours = s.Known.Whose(t.id, t.name, labels)
	_, answered := s.Known.Servers()[t.id]
	t.similar = answered || mark.Similar(t.name, labels)
	t.age, t.ageKnown = mark.Age(t.run, created, time.Now())
	return t
}

// Others returns the runs that have servers younger than OldAfter that nobody is deleting.
func (s Sweeper) Others(ctx context.Context) (runs map[string]string, err error) {
	all, err := s.list(ctx)
	runs = map[string]string{}
	for _, t := range all {
		if t.ours && t.kind == server && t.live() && (!t.ageKnown || t.age <= OldAfter) {
			runs[t.run] = t.String()
		}
	}
	return runs, err
}

// Left returns what there is of the run: its servers, and NICs and volumes whose server has
// gone.
func (s Sweeper) Left(ctx context.Context, run string) ([]string, error) {
	all, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, t := range all {
		if !t.ours || t.run != run {
			continue
		}
		if t.kind == server {
			left = append(left, fmt.Sprintf("server %s (%s), %s", t.id, t.name, t.status))
			continue
		}
		holder := cmp.Or(t.holder, s.Known.PartOf(t.id))
		if _, there := all.server(holder); !there {
			left = append(left, fmt.Sprintf("%s %s (%s), whose server %s has gone", t.kind, t.id, t.name, holder))
		}
	}
	return left, nil
}

// Similar returns what looks like the suite's and lacks a name or label of it: nobody but a
// person can say whose it is.
func (s Sweeper) Similar(ctx context.Context) ([]string, error) {
	all, err := s.list(ctx)
	var similar []string
	for _, t := range all {
		if !t.ours && t.similar {
			similar = append(similar, fmt.Sprintf("%s %s (%s)", t.kind, t.id, t.name))
		}
	}
	return similar, err
}
