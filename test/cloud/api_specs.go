// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

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
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/report"
)

// bootVolumeSize is the size of each server's boot volume in GB.
const bootVolumeSize = 20

// Rows of the report that the specs fill.
const (
	rowParts     = "A server that goes takes its NIC and its boot volume with it, if deleteOnTermination was sent"
	rowSelectors = "Selectors of other forms than key=value are never sent; those that must exclude the server"
	rowSlashes   = "Labels may have keys such as kubernetes.io/cluster"
	rowManyLabel = "A server may have 256 labels"
	rowPatch     = "A PATCH of labels merges: labels that it does not name stay"
	rowMetadata  = "Metadata that was sent shows"
	rowConsole   = "The console log can be read"
	rowRequestID = "An X-Request-Id that was sent is kept"
	rowBootable  = "Volumes show bootable"
	rowTwin      = "Names of servers are not unique"
	rowCreating  = "A server may be deleted while it is CREATING"
	rowUserData  = "userData over 64 KiB"
	rowRefusals  = "What names nothing, or has no right, is refused"
	rowAllowed   = "A NIC shows the allowedAddresses that were sent"
	rowCodes     = "What is wrong with a class or a key is told by a code"
)

// unknowns are the rows of every report, in order. A row without an observation says "not met".
func unknowns() []report.Row {
	row := func(assumption string, where ...string) report.Row {
		return report.Row{Assumption: assumption, Where: where}
	}
	return []report.Row{
		row(rowParts, "pkg/provider/helpers.go", "pkg/provider/delete.go"), row(rowSelectors, "pkg/provider/reads.go"),
		row(rowSlashes, "pkg/provider/ownership.go"), row(rowManyLabel, "pkg/provider/apis/validation"),
		row(rowPatch, "pkg/provider/ownership.go"), row(rowMetadata, "pkg/provider/helpers.go"),
		row(rowConsole, "pkg/provider/console.go"), row(rowRequestID, "pkg/spi/metrics.go"),
		row(rowBootable, "pkg/provider/openstack.go"), row(rowTwin, "pkg/provider/reads.go"),
		row(rowCreating, "pkg/provider/delete.go"), row(rowUserData, "pkg/provider/apis/validation"),
		row(rowRefusals, "pkg/provider/errors.go"), row(rowAllowed, "pkg/provider/nics.go"),
		row(rowCodes, "pkg/provider/errors.go"),
	}
}

// probe is the server on which the API is measured.
type probe struct {
	id, name string
	labels   map[string]string
}

func apiSpecs() []spec {
	p := &probe{}
	return []spec{
		{"the API makes a network", func(ctx context.Context, s *suite) error { return s.makeNetwork(ctx) }},
		{"the API shows a new server until it is ACTIVE, to GET, lists and selectors", p.make},
		{"the API selects by labels", p.selects},
		{"the API takes labels and metadata as they are", p.label},
		{"the API refuses what is wrong", p.refuse},
		{"the API takes other servers, and deletes one that is CREATING", p.makeOthers},
		{"the API deletes a server, and leaves nothing of it", p.delete},
	}
}

// makeNetwork creates the run's network. A POST without an answer may have created it.
func (s *suite) makeNetwork(ctx context.Context) error {
	name := mark.Network(s.name)
	body := map[string]any{
		"name": name, "ipv4": map[string]any{"prefixLength": 24},
		"labels": map[string]string{mark.ClusterLabel: mark.Network(s.name)},
	}
	return s.await(ctx, "network "+name, func(ctx context.Context) (string, bool, error) {
		networks, err := s.api.Networks(ctx)
		if err != nil {
			return "", false, err
		}
		for _, network := range networks {
			if network.Name == name {
				s.network = network.ID
				s.sweep.SetNetwork(network.ID)
				return network.Status, network.Status == "CREATED" || network.Status == "UPDATED", nil
			}
		}
		if s.network != "" {
			return "lists do not show it", false, nil
		}
		answer, err := s.api.Do(ctx, http.MethodPost, api.PathNetworks, body)
		if err != nil || !decided(answer) {
			return fmt.Sprintf("POST answered %d", answer.Status), false, errors.Join(err, api.Pause(ctx, s.Settle))
		}
		var made api.Network
		switch _, labelled := body["labels"]; {
		case answer.Status < http.StatusBadRequest && json.Unmarshal(answer.Body, &made) == nil && made.ID != "":
			if labelled {
				s.note(rowSlashes, fmt.Sprintf("network: %d", answer.Status))
			}
			s.network = made.ID
			s.sweep.SetNetwork(made.ID)
			s.say("      made network %s (%s)", made.ID, name)
		case answer.Status == http.StatusBadRequest && labelled:
			s.note(rowSlashes, fmt.Sprintf("network: %d", answer.Status))
			delete(body, "labels")
		default:
			return "", false, hopeless{fmt.Errorf("POST answered %d %s", answer.Status, cut(answer.Body))}
		}
		return made.Status, false, nil
	})
}

// body returns the body of a POST for a server with a Machine's labels; fields override its own.
func (s *suite) body(name string, labels map[string]string, fields map[string]any) map[string]any {
	body := map[string]any{
		"name": name, "machineType": s.Settings.MachineType, "labels": labels,
		"networking": map[string]any{"networkId": s.network},
		"bootVolume": map[string]any{
			"size": bootVolumeSize, "deleteOnTermination": true,
			"source": map[string]any{"type": "image", "id": s.Settings.ImageID},
		},
	}
	if s.Settings.Zone != "" {
		body["availabilityZone"] = s.Settings.Zone
	}
	maps.Copy(body, fields)
	return body
}

// makeServer creates a server as the driver does, without its code. If the answer does not tell
// whether the server exists, it looks for the server before the next POST.
func (s *suite) makeServer(
	ctx context.Context, name string, labels map[string]string, fields map[string]any,
) (id string, err error) {
	err = s.await(ctx, "server "+name, func(ctx context.Context) (string, bool, error) {
		answer, err := s.api.Do(ctx, http.MethodPost, api.PathServers, s.body(name, labels, fields))
		var made api.Server
		switch {
		case err == nil && answer.Status == http.StatusCreated:
			// An answer with another server does not count.
			if json.Unmarshal(answer.Body, &made) == nil && made.Name == name {
				id = made.ID
				return "", true, nil
			}
		case err == nil && decided(answer):
			return "", false, hopeless{fmt.Errorf("POST answered %d %s", answer.Status, cut(answer.Body))}
		}
		seen := fmt.Sprintf("POST answered %d", answer.Status)
		if err := api.Pause(ctx, s.Settle); err != nil {
			return seen, false, err
		}
		id, err = s.find(ctx, name)
		return seen, id != "", err
	})
	return id, err
}

// find returns the ID of a server of this name that is not being deleted; "" if there is none.
func (s *suite) find(ctx context.Context, name string) (string, error) {
	servers, err := s.api.Servers(ctx, mark.Selector(s.name))
	for _, server := range servers {
		if server.Name == name && server.Live() {
			return server.ID, err
		}
	}
	return "", err
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
	p.name = mark.Name(s.name, "probe")
	p.labels = mark.Labels(s.name, p.name, mark.Name(s.name, "api"))
	metadata := map[string]any{"mcm-cloud-test": "probe"}
	if p.id, err = s.makeServer(ctx, p.name, p.labels, map[string]any{"metadata": metadata}); err != nil {
		return err
	}
	_, _ = s.api.Server(ctx, p.id) // whether it is there at once
	byMachine := provider.StackitMachineLabel + "=" + p.name
	for _, selector := range []string{"", mark.Selector(s.name), byMachine, mark.Selector(s.name) + "," + byMachine} {
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
	err = s.await(ctx, "server "+p.id+" ACTIVE", func(ctx context.Context) (string, bool, error) {
		server, err := s.api.Server(ctx, p.id)
		if text, failed := s.witness.Failed(p.name); failed {
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
	server, err := s.server(ctx, p.id)
	shown, _ := json.Marshal(server.Metadata)
	s.note(rowMetadata, fmt.Sprintf("sent 1 key, shown %s", shown))
	return err
}

// selects sends selectors that must each exclude the probe. Otherwise an API that ignores selectors
// would seem to support them.
func (p *probe) selects(ctx context.Context, s *suite) error {
	key, value := mark.ClusterLabel, mark.Network(s.name)
	for _, selector := range []string{
		key + "=" + value + "-none", key + "!=" + value, "!" + key, "mcm-cloud-test-none",
		key + " in (" + value + "-none)", key + " notin (" + value + ")",
	} {
		answer, err := s.ask(ctx, http.MethodGet, api.PathServers+"?label_selector="+url.QueryEscape(selector), nil)
		if err != nil {
			return err
		}
		seen := fmt.Sprintf("%d", answer.Status)
		if answer.Status == http.StatusOK {
			seen = "excludes it"
			if strings.Contains(string(answer.Body), p.id) {
				seen = "IGNORED: shows it"
			}
		}
		form := strings.ReplaceAll(strings.ReplaceAll(selector, value, "value"), key, "key")
		s.note(rowSelectors, form+": "+seen)
	}
	return nil
}

// label measures how the API treats labels.
func (p *probe) label(ctx context.Context, s *suite) error {
	const key = "mcm-cloud-test-probe"
	path := api.PathServers + "/" + p.id
	many := map[string]any{}
	for i := range 256 {
		many[fmt.Sprintf("%s-%d", key, i)] = "probe"
	}
	none := map[string]any{}
	for name := range many {
		none[name] = nil
	}
	// The order matters: null means nothing for a label that does not exist.
	for _, patch := range []struct {
		row, what string
		labels    map[string]any
	}{
		{rowPatch, "a new label", map[string]any{key: "probe"}},
		{rowPatch, "null", map[string]any{key: nil}},
		{rowSlashes, "server", map[string]any{"example.com/" + key: "probe"}},
		{rowManyLabel, "256 more", many},
		{rowManyLabel, "null for them", none},
	} {
		answer, err := s.ask(ctx, http.MethodPatch, path, map[string]any{"labels": patch.labels})
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
		s.note(patch.row, fmt.Sprintf("%s: %d, %d of them shown, %d of %d others kept",
			patch.what, answer.Status, there, kept, len(p.labels)))
	}
	return p.labelParts(ctx, s)
}

// labelParts gives the NIC and the boot volume of the probe a label with a slash.
func (p *probe) labelParts(ctx context.Context, s *suite) error {
	server, err := s.server(ctx, p.id)
	if err != nil {
		return err
	}
	paths := map[string]string{}
	for _, nic := range server.NICs {
		paths["NIC"] = api.PathNICs(nic.NetworkID) + "/" + nic.ID
	}
	if volume := server.BootVolume.ID; volume != "" {
		paths["volume"] = api.PathVolumes + "/" + volume
		if err := s.noteVolume(ctx, volume); err != nil {
			return err
		}
	}
	body := map[string]any{"labels": map[string]any{mark.ClusterLabel: mark.Network(s.name)}}
	for kind, path := range paths {
		answer, err := s.ask(ctx, http.MethodPatch, path, body)
		if err != nil {
			return err
		}
		seen := fmt.Sprintf("%s: %d", kind, answer.Status)
		if answer.Status == http.StatusForbidden {
			seen += ", not allowed"
		}
		s.note(rowSlashes, seen)
	}
	return nil
}

func (s *suite) noteVolume(ctx context.Context, id string) error {
	answer, err := s.ask(ctx, http.MethodGet, api.PathVolumes+"/"+id, nil)
	if err != nil {
		return err
	}
	if answer.Status == http.StatusForbidden {
		s.note(rowBootable, "not allowed")
		return nil
	}
	var volume api.Volume
	_ = json.Unmarshal(answer.Body, &volume) // what is no volume does not show it
	s.note(rowBootable, fmt.Sprintf("of a boot volume: %v", volume.Bootable))
	return nil
}

// refuse sends requests for resources that do not exist, and requests without authorization. The
// driver relies on a 404 for the former; the witness has a row for the form of each refusal.
func (p *probe) refuse(ctx context.Context, s *suite) error {
	withComma := api.PathServers + "?label_selector=" + url.QueryEscape(mark.Selector(s.name)+",")
	for _, call := range []struct {
		what, method, path string
		wanted             int
	}{
		{"GET of a server that does not exist", http.MethodGet, api.PathServers + "/" + mark.Nobody, http.StatusNotFound},
		{"GET of a NIC that does not exist", http.MethodGet, api.PathNICs(s.network) + "/" + mark.Nobody, 0},
		{"DELETE of a server that does not exist", http.MethodDelete, api.PathServers + "/" + mark.Nobody, 0},
		{"GET of a server whose ID is no UUID", http.MethodGet, api.PathServers + "/no-uuid", 0},
		{"a selector that ends in a comma", http.MethodGet, withComma, 0},
	} {
		answer, err := s.ask(ctx, call.method, call.path, nil)
		if err != nil {
			return err
		}
		s.note(rowRefusals, fmt.Sprintf("%s: %d", call.what, answer.Status))
		if call.wanted != 0 && call.wanted != answer.Status {
			return fmt.Errorf("wanted: %s answers %d; seen: %d", call.what, call.wanted, answer.Status)
		}
	}
	if answer, err := s.api.GetWithoutToken(ctx, api.PathServers); err == nil {
		s.note(rowRefusals, fmt.Sprintf("a list without a token: %d", answer.Status))
	}
	if answer, err := s.api.GetElsewhere(ctx, mark.Nobody, s.Settings.Region, api.PathServers); err == nil {
		s.note(rowRefusals, fmt.Sprintf("a list of a project that is not the key's: %d", answer.Status))
	}
	const id = "req-0123456789abcdef0123456789abcdef"
	if answer, err := s.api.GetWithHeader(ctx, api.PathServers+"/"+p.id, "X-Request-Id", id); err == nil {
		answered := answer.Header.Get("X-Request-Id")
		s.note(rowRequestID, map[bool]string{true: "kept", false: fmt.Sprintf("answered with %q", answered)}[answered == id])
	}
	return p.readConsole(ctx, s)
}

// readConsole reads the console log. Some images do not write one.
func (p *probe) readConsole(ctx context.Context, s *suite) error {
	began, path := time.Now(), api.PathServers+"/"+p.id+"/log?length=500"
	for {
		answer, err := s.ask(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		var log struct{ Output string }
		_ = json.Unmarshal(answer.Body, &log) // what is no JSON has no log
		after := time.Since(began).Round(time.Second)
		switch {
		case answer.Status == http.StatusForbidden:
			s.note(rowConsole, "not allowed")
		case answer.Status != http.StatusOK:
			s.note(rowConsole, fmt.Sprint(answer.Status))
		case log.Output != "":
			s.note(rowConsole, fmt.Sprintf("%d characters, at most %s after ACTIVE was seen", len(log.Output), after))
		case after < s.Settle:
			if err := api.Pause(ctx, s.Poll); err != nil {
				return err
			}
			continue
		default:
			s.note(rowConsole, fmt.Sprintf("200, empty for %s", after))
		}
		return nil
	}
}

// makeOthers creates a second server of the probe's name and a server with long userData, and deletes
// both at once.
func (p *probe) makeOthers(ctx context.Context, s *suite) error {
	body := s.body(p.name, mark.Labels(s.name, mark.Name(s.name, "twin"), mark.Name(s.name, "api")), nil)
	if err := s.makeAndDelete(ctx, rowTwin, "a second server of a name", body); err != nil {
		return err
	}
	name := mark.Name(s.name, "data")
	body = s.body(name, mark.Labels(s.name, name, mark.Name(s.name, "api")), map[string]any{
		"userData": strings.Repeat("IyBjbG91ZC1pbml0", 70<<10/16), // base64
	})
	return s.makeAndDelete(ctx, rowUserData, "70 KiB of base64", body)
}

func (s *suite) makeAndDelete(ctx context.Context, row, what string, body map[string]any) error {
	// One attempt: if its outcome is unknown, the watch finds the server and the next spec
	// deletes it.
	answer, err := s.api.Do(ctx, http.MethodPost, api.PathServers, body)
	var made api.Server
	_ = json.Unmarshal(answer.Body, &made) // what is no JSON has no name
	if err != nil || answer.Status >= http.StatusBadRequest || made.Name != body["name"] {
		s.note(row, fmt.Sprintf("%s: %d %s", what, answer.Status, cut(answer.Body)))
		return ctx.Err()
	}
	s.note(row, fmt.Sprintf("%s: %d", what, answer.Status))
	if answer, err = s.ask(ctx, http.MethodDelete, api.PathServers+"/"+made.ID, nil); err != nil {
		return err
	}
	s.note(rowCreating, fmt.Sprintf("%d", answer.Status))
	return nil
}

func (p *probe) delete(ctx context.Context, s *suite) error {
	// Note its NICs and volumes first: the API may keep them.
	err := s.await(ctx, "the NIC and the boot volume of server "+p.id, func(context.Context) (string, bool, error) {
		return "GET does not show both", !slices.Contains(s.guard.Unnoted(), p.id), nil
	})
	if err != nil {
		s.note(rowParts, "the probe never showed both")
	}
	if err := s.deleteServers(ctx); err != nil {
		return err
	}
	if err := s.expectNothingLeft(ctx); err != nil {
		return err
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		answer, err := s.ask(ctx, method, api.PathServers+"/"+p.id, nil)
		if err != nil {
			return err
		}
		s.note(rowRefusals, fmt.Sprintf("%s of a deleted server: %d", method, answer.Status))
	}
	return nil
}

// deleteServers deletes the servers that are not being deleted yet.
func (s *suite) deleteServers(ctx context.Context) error {
	// A server whose POST was not answered may show until lists have caught up.
	_ = s.awaitFor(ctx, s.Settle, "an answer to each POST", func(context.Context) (string, bool, error) {
		return "", len(s.guard.Unanswered()) == 0, nil
	})
	for _, t := range s.guard.Things() {
		if t.Kind != mark.KindServer || t.Deleting {
			continue
		}
		answer, err := s.ask(ctx, http.MethodDelete, api.PathServers+"/"+t.ID, nil)
		if err != nil {
			return err
		}
		if answer.Status >= http.StatusBadRequest && answer.Status != http.StatusNotFound {
			return fmt.Errorf("wanted: DELETE of server %s is accepted; seen: %d %s", t.ID, answer.Status, cut(answer.Body))
		}
	}
	return nil
}

// cut returns the beginning of a body.
func cut(body []byte) string { return string(body[:min(len(body), 200)]) }
