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
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// nobody is the ID of nothing.
const nobody = "00000000-0000-4000-8000-00000000dead"

// probeMetadata is sent with the first server.
var probeMetadata = map[string]any{"mcm-cloud-test": "probe"}

// body returns what makes a server with the labels of a Machine, with these fields over it.
func (s *suite) body(name string, labels map[string]string, fields map[string]any) map[string]any {
	body := map[string]any{
		"name": name, "machineType": s.Settings.MachineType, "labels": labels,
		"networking": map[string]any{"networkId": s.Settings.NetworkID},
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

// makeServer makes a server as the driver does, but with nothing of its code. After an answer
// from which nobody knows whether there is one, it looks for the server before it asks again.
func (s *suite) makeServer(ctx context.Context, name string, labels map[string]string, fields map[string]any) (string, error) {
	for {
		answer, err := s.api.Do(ctx, http.MethodPost, api.PathServers, s.body(name, labels, fields))
		var made api.Server
		switch {
		case err == nil && answer.Status == http.StatusCreated:
			err := json.Unmarshal(answer.Body, &made)
			return made.ID, err
		case err == nil && answer.Status < 500 && answer.Status != http.StatusTooManyRequests:
			return "", fmt.Errorf("POST of server %s answered %d %s", name, answer.Status, answer.Body)
		}
		if err := api.Pause(ctx, s.Settle); err != nil {
			return "", err
		}
		servers, err := s.api.Servers(ctx, mark.Selector(s.name))
		if err != nil {
			return "", err
		}
		if at := slices.IndexFunc(servers, func(found api.Server) bool { return found.Name == name }); at >= 0 {
			return servers[at].ID, nil
		}
	}
}

// server returns a function that reads a server, for eventually.
func (s *suite) server(id string) func(context.Context) (api.Server, error) {
	return func(ctx context.Context) (api.Server, error) {
		server, err := s.api.Server(ctx, id)
		if err == nil && server == nil {
			err = errors.New("GET of the server answers 404")
		}
		if err != nil {
			return api.Server{}, err
		}
		return *server, nil
	}
}

func apiSpecs() {
	var id, name string
	var labels map[string]string

	It("shows a new server until it is ACTIVE, with its labels, to GET, lists and selectors", func(ctx SpecContext) {
		s := current
		name = mark.Name(s.name, "probe")
		labels = mark.Labels(s.name, name, mark.Name(s.name, "api"))
		var err error
		id, err = s.makeServer(ctx, name, labels, map[string]any{"metadata": probeMetadata})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.api.Do(ctx, http.MethodGet, api.PathServers+"/"+id, nil) // whether it is there at once
		Expect(err).NotTo(HaveOccurred())
		shown := ContainElement(HaveField("ID", id))
		for _, selector := range []string{
			"", mark.Selector(s.name),
			provider.StackitMachineLabel + "=" + name, mark.Selector(s.name) + "," + provider.StackitMachineLabel + "=" + name,
		} {
			s.eventually(ctx, func(ctx context.Context) ([]api.Server, error) { return s.api.Servers(ctx, selector) }).
				Should(shown, "the list with the selector %q", selector)
		}
		s.eventually(ctx, s.server(id)).Should(HaveField("Status", api.StatusActive))
		Consistently(ctx, s.server(id)).WithTimeout(5*s.Poll).WithPolling(s.Poll/2).
			Should(HaveField("Status", api.StatusActive), "a server that runs")
	})

	It("selects by labels", func(ctx SpecContext) {
		s := current
		other := mark.Cluster(s.name) + "-none"
		Expect(s.api.Servers(ctx, mark.ClusterLabel+"="+other)).To(BeEmpty(), "servers with a label that no server has: the selector is ignored")
		for what, selector := range map[string]string{
			"a key alone": mark.ClusterLabel, "in": mark.ClusterLabel + " in (" + mark.Cluster(s.name) + ")", "!=": mark.ClusterLabel + "!=" + other,
		} {
			answer, err := s.api.Do(ctx, http.MethodGet, api.PathServers+"?label_selector="+escape(selector), nil)
			Expect(err).NotTo(HaveOccurred())
			s.note("Selectors of other forms than key=value are never sent", fmt.Sprintf("%s: %d, shows the server: %t", what, answer.Status, strings.Contains(string(answer.Body), id)),
				"pkg/provider/servers.go")
		}
	})

	It("takes labels and metadata as they are", func(ctx SpecContext) {
		s := current
		s.patchLabels(ctx, id, labels)
		server, err := s.server(id)(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.note("Metadata that was sent shows", fmt.Sprintf("sent %d keys, shown: %s", len(probeMetadata), strings.Join(slices.Sorted(maps.Keys(server.Metadata)), ", ")), "pkg/provider/helpers.go")
	})

	It("refuses what is wrong, and makes nothing of it", func(ctx SpecContext) {
		s := current
		s.expectRefusals(ctx)
		Expect(s.left(ctx)).To(ConsistOf(HavePrefix("server "+id)), "servers of the run: the probe alone")
	})

	It("takes a deletion, and leaves nothing", func(ctx SpecContext) {
		s := current
		Expect(s.tag(ctx, id)).To(Succeed(), "reading the NICs and volumes of the server")
		s.eventually(ctx, func(ctx context.Context) (int, error) {
			answer, err := s.api.Do(ctx, http.MethodDelete, api.PathServers+"/"+id, nil)
			return answer.Status, err
		}).Should(BeElementOf(http.StatusNoContent, http.StatusOK, http.StatusAccepted, http.StatusNotFound), "DELETE of the server")
		deleted := time.Now()
		s.expectNothingLeft(ctx)
		s.note("A server that goes takes its NIC and its boot volume with it, if deleteOnTermination was sent",
			fmt.Sprintf("none of %d was left %s after the DELETE", s.belonging(), time.Since(deleted).Round(s.Poll/10)), "pkg/provider/helpers.go", "pkg/provider/delete.go")
		_, err := s.api.Do(ctx, http.MethodGet, api.PathServers+"/"+id, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.api.Do(ctx, http.MethodDelete, api.PathServers+"/"+id, nil)
		Expect(err).NotTo(HaveOccurred())
	})
}

// expectNothingLeft waits until nothing of the run is there.
func (s *suite) expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	s.eventually(ctx, s.left).Should(BeEmpty(), "what is left of the run, after all of it was deleted")
}

// patchLabels measures what a PATCH of labels does to those that it does not name.
func (s *suite) patchLabels(ctx context.Context, id string, labels map[string]string) {
	GinkgoHelper()
	const key = "mcm-cloud-test-probe"
	for what, value := range map[string]any{"a new label": "probe", "null": nil} {
		answer, err := s.api.Do(ctx, http.MethodPatch, api.PathServers+"/"+id, map[string]any{"labels": map[string]any{key: value}})
		Expect(err).NotTo(HaveOccurred())
		server, err := s.server(id)(ctx)
		Expect(err).NotTo(HaveOccurred())
		kept := 0
		for label, value := range labels {
			if server.Labels.Get(label) == value {
				kept++
			}
		}
		_, is := server.Labels[key]
		s.note("A PATCH of labels merges: labels that it does not name stay", fmt.Sprintf("%s: %d, the label is there: %t, of %d others %d are kept", what, answer.Status, is, len(labels), kept),
			"pkg/provider/ownership.go")
	}
}
