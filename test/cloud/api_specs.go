// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// bootVolumeSize is the size of each server's boot volume in GB.
const bootVolumeSize = 20

// probe is the server on which the API is measured.
type probe struct {
	id, name string
	labels   map[string]string
	// posted is when the answer to its POST came, active when it was seen ACTIVE.
	posted, active time.Time
}

func apiSpecs() []spec {
	p := &probe{}
	return []spec{
		{"the API makes a network", func(ctx context.Context, s *suite) error { return s.makeNetwork(ctx) }},
		{"the API shows a new server until it is ACTIVE, to GET, lists and selectors", p.make},
		{"the API shows a server's console log", p.readConsole},
		{"the API selects by labels", p.selects},
		{"the API takes labels and metadata as they are", p.label},
		{"the API answers for a server that does not exist", p.refuse},
		{"the API takes other servers, and deletes one that is CREATING", p.makeOthers},
		{"the API deletes a server, and leaves nothing of it", p.delete},
	}
}

// makeNetwork creates the run's network, without labels if the API does not take them.
func (s *suite) makeNetwork(ctx context.Context) error {
	name := api.NetworkName(s.name)
	body := map[string]any{
		"name": name, "ipv4": map[string]any{"prefixLength": 24},
		"labels": map[string]string{api.ClusterLabel: api.NetworkName(s.name)},
	}
	find := func(ctx context.Context) (string, error) {
		networks, err := s.api.Networks(ctx)
		for _, network := range networks {
			if network.Name == name {
				return network.ID, err
			}
		}
		return "", err
	}
	id, answer, err := s.create(ctx, api.PathNetworks, body, find)
	if answer.Status != 0 {
		s.guard.Note(guard.RowSlashes, fmt.Sprintf("network: %d", answer.Status))
	}
	if api.IsStatus(err, http.StatusBadRequest) {
		delete(body, "labels")
		id, _, err = s.create(ctx, api.PathNetworks, body, find)
	}
	if err != nil {
		return err
	}
	s.network = id
	s.say("      made network %s (%s)", id, name)
	return s.await(ctx, "network "+name+" made", func(ctx context.Context) (string, bool, error) {
		answer, err := s.api.Do(ctx, http.MethodGet, api.PathNetworks+"/"+id, nil)
		network := api.Item[api.Network](answer)
		seen := fmt.Sprintf("%d %s", answer.Status, network.Status)
		return seen, network.Status == "CREATED" || network.Status == "UPDATED", err
	})
}

// body returns the body of a POST for a server with a Machine's labels; fields override its own.
func (s *suite) body(name string, labels map[string]string, fields map[string]any) map[string]any {
	body := map[string]any{
		"name": name, "machineType": s.settings.machineType, "labels": labels,
		"networking": map[string]any{"networkId": s.network},
		"bootVolume": map[string]any{
			"size": bootVolumeSize, "deleteOnTermination": true,
			"source": map[string]any{"type": "image", "id": s.settings.imageID},
		},
	}
	if s.settings.zone != "" {
		body["availabilityZone"] = s.settings.zone
	}
	maps.Copy(body, fields)
	return body
}

// makeServer creates a server as the driver does, without its code.
func (s *suite) makeServer(ctx context.Context, body map[string]any) (id string, err error) {
	id, _, err = s.create(ctx, api.PathServers, body, func(ctx context.Context) (string, error) {
		servers, err := s.api.Servers(ctx, api.Selector(s.name))
		for _, server := range servers {
			if server.Name == body["name"] && server.Live() {
				return server.ID, err
			}
		}
		return "", err
	})
	return id, err
}

// server reads a server that exists.
func (s *suite) server(ctx context.Context, id string) (server api.Server, err error) {
	err = s.await(ctx, "GET of server "+id, func(ctx context.Context) (string, bool, error) {
		read, err := s.api.Server(ctx, id)
		if read != nil {
			server = *read
		}
		return "404", read != nil, err
	})
	return server, err
}

func (p *probe) make(ctx context.Context, s *suite) (err error) {
	p.name = api.Name(s.name, "probe")
	p.labels = api.ServerLabels(s.name, p.name, api.Name(s.name, "api"))
	body := s.body(p.name, p.labels, map[string]any{"metadata": map[string]any{"mcm-cloud-test": "probe"}})
	if p.id, err = s.makeServer(ctx, body); err != nil {
		return err
	}
	p.posted = time.Now()
	_, _ = s.api.Server(ctx, p.id) // whether it is there at once
	byMachine := provider.StackitMachineLabel + "=" + p.name
	for _, selector := range []string{"", api.Selector(s.name), byMachine, api.Selector(s.name) + "," + byMachine} {
		wanted := fmt.Sprintf("server %s in the list with the selector %q", p.id, selector)
		err := s.await(ctx, wanted, func(ctx context.Context) (string, bool, error) {
			servers, err := s.api.Servers(ctx, selector)
			shown := slices.ContainsFunc(servers, func(server api.Server) bool { return server.ID == p.id })
			return fmt.Sprintf("%d servers without it", len(servers)), shown, err
		})
		if err != nil {
			return err
		}
	}
	var server *api.Server
	err = s.await(ctx, "server "+p.id+" ACTIVE", func(ctx context.Context) (_ string, _ bool, err error) {
		server, err = s.api.Server(ctx, p.id)
		if text, failed := s.guard.Failed(p.name); failed {
			return "", false, hopeless{errors.New(text)}
		}
		if server == nil {
			return "404", false, err
		}
		return server.Status, server.Status == api.StatusActive, err
	})
	if err != nil {
		return err
	}
	p.active = time.Now()
	shown, err := json.Marshal(server.Metadata)
	s.guard.Note(guard.RowMetadata, fmt.Sprintf("sent 1 key, shown %s", shown))
	return err
}

// readConsole reads the console log. Some images do not write one.
func (p *probe) readConsole(ctx context.Context, s *suite) error {
	for {
		answer, err := s.ask(ctx, http.MethodGet, api.PathServers+"/"+p.id+"/log?length=500", nil)
		if err != nil {
			return err
		}
		text := len(api.Item[struct{ Output string }](answer).Output)
		active, posted := time.Since(p.active).Round(time.Second), time.Since(p.posted).Round(time.Second)
		seen := fmt.Sprint(answer.Status)
		switch {
		case answer.Status == http.StatusForbidden:
			seen = "not allowed"
		case text > 0:
			seen = fmt.Sprintf("%d characters, at most %s after its POST and %s after ACTIVE was seen", text, posted, active)
		case answer.Succeeded() && active < s.settle:
			if err := api.Pause(ctx, s.poll); err != nil {
				return err
			}
			continue
		case answer.Succeeded():
			seen += fmt.Sprintf(", empty until %s after its POST and %s after ACTIVE was seen", posted, active)
		}
		s.guard.Note(guard.RowConsole, seen)
		return nil
	}
}

// selects sends selectors that must each exclude the probe. Otherwise an API that ignores selectors
// would seem to support them.
func (p *probe) selects(ctx context.Context, s *suite) error {
	key, value := api.ClusterLabel, api.NetworkName(s.name)
	for _, selector := range []string{
		key + "=" + value + "-none", key + "!=" + value, "!" + key, "mcm-cloud-test-none",
		key + " in (" + value + "-none)", key + " notin (" + value + ")",
	} {
		answer, err := s.ask(ctx, http.MethodGet, api.PathServers+"?label_selector="+url.QueryEscape(selector), nil)
		if err != nil {
			return err
		}
		seen := fmt.Sprint(answer.Status)
		if answer.Status == http.StatusOK {
			seen = "excludes it"
			if strings.Contains(string(answer.Body), p.id) {
				seen = "IGNORED: shows it"
			}
		}
		form := strings.ReplaceAll(strings.ReplaceAll(selector, value, "value"), key, "key")
		s.guard.Note(guard.RowSelectors, form+": "+seen)
	}
	return nil
}

// label measures how the API treats labels.
func (p *probe) label(ctx context.Context, s *suite) error {
	const key = "mcm-cloud-test-probe"
	many, none := map[string]any{}, map[string]any{}
	for i := range 256 {
		name := fmt.Sprintf("%s-%d", key, i)
		many[name], none[name] = "probe", nil
	}
	// The order matters: null means nothing for a label that does not exist.
	for _, patch := range []struct {
		row, what string
		labels    map[string]any
	}{
		{guard.RowPatch, "a new label", map[string]any{key: "probe"}},
		{guard.RowPatch, "null", map[string]any{key: nil}},
		{guard.RowSlashes, "server", map[string]any{"example.com/" + key: "probe"}},
		{guard.RowManyLabel, "256 more", many},
		{guard.RowManyLabel, "null for them", none},
	} {
		answer, err := s.ask(ctx, http.MethodPatch, api.PathServers+"/"+p.id, map[string]any{"labels": patch.labels})
		if err != nil {
			return err
		}
		server, err := s.server(ctx, p.id)
		if err != nil {
			return err
		}
		kept, there := 0, 0
		for label, value := range p.labels {
			if server.Labels[label] == value {
				kept++
			}
		}
		for label := range patch.labels {
			if _, is := server.Labels[label]; is {
				there++
			}
		}
		s.guard.Note(patch.row, fmt.Sprintf("%s: %d, %d of them shown, %d of %d others kept",
			patch.what, answer.Status, there, kept, len(p.labels)))
	}
	return p.labelParts(ctx, s)
}

// labelParts gives the NIC and the boot volume of the probe a label with a slash.
func (p *probe) labelParts(ctx context.Context, s *suite) error {
	if err := p.awaitParts(ctx, s); err != nil {
		return err
	}
	body := map[string]any{"labels": map[string]any{api.ClusterLabel: api.NetworkName(s.name)}}
	for _, part := range append(s.parts(api.KindNIC, p.name), s.parts(api.KindVolume, p.name)...) {
		path := api.PathNICs(part.Network) + "/" + part.ID
		if part.Kind == api.KindVolume {
			path = api.PathVolumes + "/" + part.ID
			_, _ = s.api.Do(ctx, http.MethodGet, path, nil) // The guard sees whether it shows bootable.
		}
		answer, err := s.ask(ctx, http.MethodPatch, path, body)
		if err != nil {
			return err
		}
		seen := fmt.Sprintf("%s: %d", part.Kind, answer.Status)
		if answer.Status == http.StatusForbidden {
			seen += ", not allowed"
		}
		s.guard.Note(guard.RowSlashes, seen)
	}
	return nil
}

// awaitParts waits until the NIC and the boot volume of the probe are noted: the API may keep them. An API
// that never shows both is none to be red about.
func (p *probe) awaitParts(ctx context.Context, s *suite) error {
	err := s.awaitFor(ctx, s.settle, "the NIC and the volume of the probe", func(context.Context) (string, bool, error) {
		return "GET does not show both", len(s.parts(api.KindVolume, p.name)) > 0, nil
	})
	if err != nil {
		s.guard.Note(guard.RowParts, "the probe never showed both")
	}
	return context.Cause(ctx)
}

// refuse sends requests for a server that does not exist.
func (p *probe) refuse(ctx context.Context, s *suite) error {
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		answer, err := s.ask(ctx, method, api.PathServers+"/"+api.Nobody, nil)
		if err != nil {
			return err
		}
		s.guard.Note(guard.RowNobody, fmt.Sprintf("%s of a server: %d", method, answer.Status))
	}
	return nil
}

// makeOthers creates a second server of the probe's name and a server with long userData, and deletes
// both at once. The next spec deletes what shows later.
func (p *probe) makeOthers(ctx context.Context, s *suite) error {
	class, data := api.Name(s.name, "api"), api.Name(s.name, "data")
	for _, other := range []struct {
		row, what string
		body      map[string]any
	}{
		{
			guard.RowTwin, "a second server of a name",
			s.body(p.name, api.ServerLabels(s.name, api.Name(s.name, "twin"), class), nil),
		},
		{
			guard.RowUserData, "70 KiB of base64",
			s.body(data, api.ServerLabels(s.name, data, class), map[string]any{
				"userData": strings.Repeat("IyBjbG91ZC1pbml0", 70<<10/16),
			}),
		},
	} {
		answer, err := s.api.Do(ctx, http.MethodPost, api.PathServers, other.body)
		made := api.Item[api.Server](answer)
		if err != nil || made.Name != other.body["name"] {
			s.guard.Note(other.row, fmt.Sprintf("%s: %d %s", other.what, answer.Status, answer.Text()))
			continue
		}
		s.guard.Note(other.row, fmt.Sprintf("%s: %d", other.what, answer.Status))
		if _, err = s.ask(ctx, http.MethodDelete, api.PathServers+"/"+made.ID, nil); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (p *probe) delete(ctx context.Context, s *suite) error {
	if err := p.awaitParts(ctx, s); err != nil {
		return err
	}
	// A server whose POST was not answered may show until lists have caught up.
	_ = s.awaitFor(ctx, s.settle, "an answer to each POST", func(context.Context) (string, bool, error) {
		return "", len(s.guard.Unanswered()) == 0, nil
	})
	for _, t := range s.guard.Things() {
		if t.Kind != api.KindServer || t.Status == api.StatusDeleting {
			continue
		}
		answer, err := s.ask(ctx, http.MethodDelete, api.PathServers+"/"+t.ID, nil)
		if err != nil {
			return err
		}
		if !answer.Succeeded() && answer.Status != http.StatusNotFound && t.ID == p.id {
			return fmt.Errorf("wanted: DELETE of server %s is accepted; seen: %d %s", t.ID, answer.Status, answer.Text())
		}
	}
	if err := s.expectNothingLeft(ctx); err != nil {
		return err
	}
	answer, err := s.ask(ctx, http.MethodDelete, api.PathServers+"/"+p.id, nil)
	s.guard.Note(guard.RowNobody, fmt.Sprintf("DELETE of a deleted server: %d", answer.Status))
	return err
}
