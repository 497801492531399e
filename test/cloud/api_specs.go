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
	// posted is when the answer to its POST came.
	posted time.Time
}

func apiSpecs() []spec {
	p := &probe{}
	return []spec{
		{"the API makes a network", makeNetwork},
		{"the API shows a new server until it is ACTIVE, to GET, lists and selectors", p.make},
		{"the API shows a server's console log", p.readConsole},
		{"the API selects by labels", p.selects},
		{"the API takes labels and metadata as they are", p.label},
		{"the API takes other servers, and deletes one that is CREATING", p.makeOthers},
		{"the API deletes a server, and leaves nothing of it", p.delete},
	}
}

// makeNetwork creates the run's network.
func makeNetwork(ctx context.Context, s *suite) (err error) {
	name := api.NetworkName(s.name)
	body := map[string]any{"name": name, "ipv4": map[string]any{"prefixLength": 24}}
	s.network, err = s.create(ctx, api.PathNetworks, body)
	if err != nil {
		return err
	}
	s.say("      made network %s (%s)", s.network, name)
	return s.await(ctx, "network "+name+" made", func(ctx context.Context) (string, bool, error) {
		answer, err := s.api.Do(ctx, http.MethodGet, api.PathNetworks+"/"+s.network, nil)
		network := api.Item[api.Network](answer)
		seen := fmt.Sprintf("%d %s", answer.Status, network.Status)
		return seen, network.Status == "CREATED" || network.Status == "UPDATED", err
	})
}

// body returns the body of a POST for a server with a Machine's labels, as the driver sends it, without its
// code; fields override its own.
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

func (p *probe) make(ctx context.Context, s *suite) (err error) {
	p.name = api.Name(s.name, "probe")
	labels := api.ServerLabels(s.name, p.name, api.Name(s.name, "api"))
	body := s.body(p.name, labels, map[string]any{"metadata": map[string]any{"mcm-cloud-test": "probe"}})
	if p.id, err = s.create(ctx, api.PathServers, body); err != nil {
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
	shown, err := json.Marshal(server.Metadata)
	s.guard.Note(guard.RowMetadata, fmt.Sprintf("sent 1 key, shown %s", shown))
	return err
}

// readConsole reads the console log. Some images do not write one.
func (p *probe) readConsole(ctx context.Context, s *suite) error {
	var seen string
	_ = s.awaitFor(ctx, s.settle, "a console log", func(ctx context.Context) (string, bool, error) {
		answer, err := s.api.Do(ctx, http.MethodGet, api.PathServers+"/"+p.id+"/log?length=500", nil)
		text, after := len(api.Item[struct{ Output string }](answer).Output), time.Since(p.posted).Round(time.Second)
		seen = fmt.Sprintf("%s, %d characters %s after its POST", status(answer), text, after)
		return seen, text > 0 || answer.Status == http.StatusForbidden, err
	})
	s.guard.Note(guard.RowConsole, seen)
	return context.Cause(ctx)
}

// selects sends selectors that must each exclude the probe. Otherwise an API that ignores selectors
// would seem to support them.
func (p *probe) selects(ctx context.Context, s *suite) error {
	key, value := api.ClusterLabel, api.NetworkName(s.name)
	for _, selector := range []string{
		key + "=" + value + "-none", key + "!=" + value, "!" + key, "mcm-cloud-test-none",
		key + " in (" + value + "-none)", key + " notin (" + value + ")",
	} {
		answer, err := s.measure(ctx, http.MethodGet, api.PathServers+"?label_selector="+url.QueryEscape(selector), nil)
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

// label gives the probe, its NIC and its volume a label with a slash, and the probe 256 more. An API that
// never shows the NIC and the volume is none to be red about.
func (p *probe) label(ctx context.Context, s *suite) error {
	known := func() []api.Thing {
		return slices.DeleteFunc(s.guard.Things(), func(t api.Thing) bool { return t.Name != p.name })
	}
	_ = s.awaitFor(ctx, s.settle, "the NIC and the volume of the probe", func(context.Context) (string, bool, error) {
		return "", len(known()) > 2, nil
	})
	patch := func(t api.Thing, labels map[string]any) (api.Answer, error) {
		return s.measure(ctx, http.MethodPatch, t.Path(), map[string]any{"labels": labels})
	}
	for _, t := range known() {
		if t.Kind == api.KindVolume {
			_, _ = s.api.Do(ctx, http.MethodGet, t.Path(), nil) // The guard sees whether it shows bootable.
		}
		answer, err := patch(t, map[string]any{"example.com/mcm-cloud-test": "probe"})
		if err != nil {
			return err
		}
		s.guard.Note(guard.RowSlashes, t.Kind+": "+status(answer))
	}
	many := map[string]any{}
	for i := range 256 {
		many[fmt.Sprintf("mcm-cloud-test-%d", i)] = "probe"
	}
	answer, err := patch(api.Thing{Kind: api.KindServer, ID: p.id}, many)
	shown := len(api.Item[api.Server](answer).Labels)
	s.guard.Note(guard.RowManyLabel, fmt.Sprintf("256 more: %s, %d shown in all", status(answer), shown))
	return err
}

// status is an answer's status as a row shows it.
func status(a api.Answer) string {
	if a.Status == http.StatusForbidden {
		return "not allowed (403)"
	}
	return fmt.Sprint(a.Status)
}

// makeOthers creates a second server of the probe's name and a server with long userData, and deletes
// both at once.
func (p *probe) makeOthers(ctx context.Context, s *suite) error {
	class, twin, data := api.Name(s.name, "api"), api.Name(s.name, "twin"), api.Name(s.name, "data")
	long := map[string]any{"userData": strings.Repeat("IyBjbG91ZC1pbml0", 70<<10/16)}
	for _, other := range []struct {
		row, what string
		body      map[string]any
	}{
		{guard.RowTwin, "a second server of a name", s.body(p.name, api.ServerLabels(s.name, twin, class), nil)},
		{guard.RowUserData, "70 KiB of base64", s.body(data, api.ServerLabels(s.name, data, class), long)},
	} {
		var answer api.Answer
		err := s.await(ctx, "an answer to a POST", func(ctx context.Context) (string, bool, error) {
			answer, _ = s.api.Do(ctx, http.MethodPost, api.PathServers, other.body)
			isBusy := answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable
			return fmt.Sprint(answer.Status), !isBusy, nil
		})
		seen, made := fmt.Sprintf("%s: %d", other.what, answer.Status), api.Item[api.Server](answer)
		switch {
		case err != nil:
		case made.Name == other.body["name"]:
			_, _ = s.api.Server(ctx, made.ID) // The guard notes its parts: the API may keep them.
			// Where it is refused while the server is CREATING, the next spec asks again.
			_, err = s.measure(ctx, http.MethodDelete, api.PathServers+"/"+made.ID, nil)
		case answer.Unknown(): // The next spec deletes what lists show by then.
			err = api.Pause(ctx, s.settle)
		default:
			seen += " " + answer.Text()
		}
		s.guard.Note(other.row, seen)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) delete(ctx context.Context, s *suite) error {
	for _, t := range s.guard.Things() {
		if t.Kind != api.KindServer || t.Status == api.StatusDeleting {
			continue
		}
		absent := 0
		// An API may refuse it while the server is CREATING.
		err := s.await(ctx, "a DELETE of "+t.String()+" accepted", func(ctx context.Context) (string, bool, error) {
			answer, err := s.api.Do(ctx, http.MethodDelete, t.Path(), nil)
			if absent++; !answer.Absent(t.Deleting) {
				absent = 0
			}
			return fmt.Sprint(answer.Status), answer.Succeeded() || absent > 1, err
		})
		if err != nil {
			return err
		}
	}
	return s.expectNothingLeft(ctx)
}
