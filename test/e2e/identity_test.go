// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("The component workload-identity under kubernetes/", long, func() {
	It("makes and removes a machine without a key, by a token of kube-apiserver's for the pod", func(ctx SpecContext) {
		const folder = "/var/run/secrets/stackit.cloud/serviceaccount"
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithoutManager(), localenv.WithoutSidecar()))
		user := serviceAccount{c.env.Namespace(), account}
		email, err := c.env.Cloud().NewFederatedServiceAccount(iaasmock.DefaultProjectID, c.identityProvider(ctx, user))
		Expect(err).NotTo(HaveOccurred())

		objects := renderIn("machines", "workload-identity")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		user.awaitRights(ctx, c.target, targetRights)
		pod := c.startPod(ctx, c.deploymentIn(ctx, objects), "only")
		c.createSecret(ctx, func(data map[string][]byte) {
			delete(data, "serviceAccountKey")
			data["serviceAccountEmail"] = []byte(email)
			data["workloadIdentityTokenFile"] = []byte(c.env.PodPath(pod, folder+"/token"))
		})
		c.createClass(ctx, "small", specWith(nil))
		machine := c.createMachine(ctx, "keyless", "small")
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(1))

		Expect(c.Delete(ctx, machine)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		c.expectAllowed()
	})
})

// identityProvider trusts the tokens that the control cluster's API server issues for a
// service account.
func (c *cluster) identityProvider(ctx context.Context, user serviceAccount) iaasmock.FederatedIdentityProvider {
	GinkgoHelper()
	var discovery struct{ Issuer string }
	Expect(json.Unmarshal(c.readRaw(ctx, "/.well-known/openid-configuration"), &discovery)).To(Succeed())
	return iaasmock.FederatedIdentityProvider{
		Issuer: discovery.Issuer,
		Assertions: map[string]string{
			"aud": "sts.accounts.stackit.cloud",
			"sub": "system:serviceaccount:" + user.namespace + ":" + user.name,
		},
		JWKS: c.readRaw(ctx, "/openid/v1/jwks"),
	}
}

// readRaw returns what the control cluster's API server answers for a path.
func (c *cluster) readRaw(ctx context.Context, path string) []byte {
	GinkgoHelper()
	config := c.env.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return body
}
