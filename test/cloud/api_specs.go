// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// probeMetadata is sent with the first server.
var probeMetadata = map[string]any{"mcm-cloud-test": "probe"}

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
		for _, selector := range []string{
			"", mark.Selector(s.name),
			provider.StackitMachineLabel + "=" + name, mark.Selector(s.name) + "," + provider.StackitMachineLabel + "=" + name,
		} {
			// The IDs alone: a failure is told with what there is, and names may be somebody else's.
			s.eventually(ctx, func(ctx context.Context) ([]string, error) { return s.ids(ctx, selector) }).
				Should(ContainElement(id), "the list with the selector %q", selector)
		}
		s.eventually(ctx, s.server(id)).Should(HaveField("Status", api.StatusActive))
		Consistently(ctx, s.server(id)).WithTimeout(5*s.Poll).WithPolling(s.Poll/2).
			Should(HaveField("Status", api.StatusActive), "a server that runs")
	})

	It("selects by labels", func(ctx SpecContext) {
		s := current
		other := mark.Cluster(s.name) + "-none"
		Expect(s.ids(ctx, mark.ClusterLabel+"="+other)).To(BeEmpty(), "servers with a label that no server has: the selector is ignored")
		for what, selector := range map[string]string{
			"a key alone": mark.ClusterLabel, "in": mark.ClusterLabel + " in (" + mark.Cluster(s.name) + ")", "!=": mark.ClusterLabel + "!=" + other,
		} {
			answer, err := s.api.Do(ctx, http.MethodGet, api.PathServers+"?label_selector="+url.QueryEscape(selector), nil)
			Expect(err).NotTo(HaveOccurred())
			s.note("Selectors of other forms than key=value are never sent", fmt.Sprintf("%s: %d, shows the server: %t", what, answer.Status, strings.Contains(string(answer.Body), id)),
				"pkg/provider/reads.go")
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
		s.eventually(ctx, func(ctx context.Context) error { return s.tag(ctx, id) }).Should(Succeed(), "reading the NICs and volumes of the server, which is the run's")
		s.eventually(ctx, func(ctx context.Context) (int, error) {
			answer, err := s.api.Do(ctx, http.MethodDelete, api.PathServers+"/"+id, nil)
			return answer.Status, err
		}).Should(BeElementOf(http.StatusNoContent, http.StatusOK, http.StatusAccepted, http.StatusNotFound), "DELETE of the server")
		deleted := time.Now()
		s.expectNothingLeft(ctx)
		s.note("A server that goes takes its NIC and its boot volume with it, if deleteOnTermination was sent",
			fmt.Sprintf("none of %d was left %s after the DELETE", s.sweeper.Known.Parts(), time.Since(deleted).Round(s.Poll/10)), "pkg/provider/helpers.go", "pkg/provider/delete.go")
		_, err := s.api.Do(ctx, http.MethodGet, api.PathServers+"/"+id, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = s.api.Do(ctx, http.MethodDelete, api.PathServers+"/"+id, nil)
		Expect(err).NotTo(HaveOccurred())
	})
}

// patchLabels measures what a PATCH of labels does to those that it does not name.
func (s *suite) patchLabels(ctx context.Context, id string, labels map[string]string) {
	GinkgoHelper()
	const key = "mcm-cloud-test-probe"
	// In this order: null says nothing about a label that is not there.
	for _, patch := range []struct {
		what  string
		value any
	}{{"a new label", "probe"}, {"null", nil}} {
		answer, err := s.api.Do(ctx, http.MethodPatch, api.PathServers+"/"+id, map[string]any{"labels": map[string]any{key: patch.value}})
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
		s.note("A PATCH of labels merges: labels that it does not name stay", fmt.Sprintf("%s: %d, the label is there: %t, of %d others %d are kept", patch.what, answer.Status, is, len(labels), kept),
			"pkg/provider/ownership.go")
	}
}
