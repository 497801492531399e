// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// expectRefusals sends what names nothing that is there, or has no right. The driver rests on
// the answer to some of it; the form of every refusal is measured by the witness.
func (s *suite) expectRefusals(ctx context.Context) {
	GinkgoHelper()
	answered := func(send func(context.Context) (api.Answer, error), what string, accepted gomegatypes.GomegaMatcher) {
		GinkgoHelper()
		var status int
		s.eventually(ctx, func(ctx context.Context) (int, error) {
			answer, err := send(ctx)
			status = answer.Status
			return status, err
		}).Should(And(accepted, BeNumerically("<", http.StatusInternalServerError), Not(Equal(http.StatusTooManyRequests))), what)
		s.note("What names nothing, or has no right, is refused", fmt.Sprintf("%s: %d", what, status), "pkg/provider/errors.go")
	}
	call := func(method, path string) func(context.Context) (api.Answer, error) {
		return func(ctx context.Context) (api.Answer, error) { return s.api.Do(ctx, method, path, nil) }
	}
	anything, refusal := BeNumerically(">", 0), BeNumerically(">=", http.StatusBadRequest)
	answered(call(http.MethodGet, api.PathServers+"/"+nobody), "GET of a server that does not exist", Equal(http.StatusNotFound))
	answered(call(http.MethodGet, s.api.PathNICs()+"/"+nobody), "GET of a NIC that does not exist", Equal(http.StatusNotFound))
	answered(call(http.MethodDelete, api.PathServers+"/"+nobody), "DELETE of a server that does not exist", anything)
	answered(call(http.MethodGet, api.PathServers+"/no-uuid"), "GET of a server whose ID is no UUID", anything)
	answered(call(http.MethodGet, api.PathServers+"?label_selector="+url.QueryEscape(mark.Selector(s.name)+",")), "a selector that ends in a comma", anything)
	answered(func(ctx context.Context) (api.Answer, error) {
		return s.api.DoWithoutToken(ctx, http.MethodGet, api.PathServers)
	}, "a list without a token", refusal)
	answered(func(ctx context.Context) (api.Answer, error) {
		return s.api.DoElsewhere(ctx, nobody, s.Settings.Region, http.MethodGet, api.PathServers)
	}, "a list of a project that is not the key's", refusal)
}
