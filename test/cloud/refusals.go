// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

func escape(text string) string { return url.QueryEscape(text) }

// expectRefusals sends what the API has to refuse. The form of each refusal is measured by
// the witness.
func (s *suite) expectRefusals(ctx context.Context) {
	GinkgoHelper()
	refused := func(what string, send func(context.Context) (api.Answer, error)) {
		GinkgoHelper()
		s.eventually(ctx, func(ctx context.Context) (int, error) {
			answer, err := send(ctx)
			return answer.Status, err
		}).Should(And(BeNumerically(">=", 400), BeNumerically("<", 500), Not(Equal(http.StatusTooManyRequests))), what)
	}
	get := func(path string) func(context.Context) (api.Answer, error) {
		return func(ctx context.Context) (api.Answer, error) { return s.api.Do(ctx, http.MethodGet, path, nil) }
	}
	refused("GET of a server that does not exist", get(api.PathServers+"/"+nobody))
	refused("GET of a server whose ID is no UUID", get(api.PathServers+"/no-uuid"))
	refused("GET of a NIC that does not exist", get(s.api.PathNICs()+"/"+nobody))
	refused("a selector that ends in a comma", get(api.PathServers+"?label_selector="+escape(mark.Selector(s.name)+",")))
	refused("DELETE of a server that does not exist", func(ctx context.Context) (api.Answer, error) {
		return s.api.Do(ctx, http.MethodDelete, api.PathServers+"/"+nobody, nil)
	})
	refused("a list without a token", func(ctx context.Context) (api.Answer, error) {
		return s.api.DoWithoutToken(ctx, http.MethodGet, api.PathServers)
	})
	refused("a list of a project that is not the key's", func(ctx context.Context) (api.Answer, error) {
		return s.api.DoElsewhere(ctx, nobody, s.Settings.Region, http.MethodGet, api.PathServers)
	})
	name := mark.Name(s.name, "refused")
	labels := mark.Labels(s.name, name, mark.Name(s.name, "api"))
	for what, fields := range map[string]map[string]any{
		"a server without a network":               {"networking": map[string]any{}},
		"a server with a status":                   {"status": api.StatusActive},
		"a server with a name that may not be one": {"name": "-" + name},
	} {
		refused(what, func(ctx context.Context) (api.Answer, error) {
			return s.api.Do(ctx, http.MethodPost, api.PathServers, s.body(name, labels, fields))
		})
	}
}
