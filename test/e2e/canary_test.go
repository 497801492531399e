// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// userDataCanary stands in the userData of every Secret here.
const userDataCanary = "canary-in-the-user-data"

var (
	bootstrapToken = regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`)
	// jwt is how the cloud's access tokens and our assertions look.
	jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.`)
)

// canaries are what must appear in no log, no status, no event and no metric of an environment.
type canaries struct{ env *localenv.Env }

// expectNoSecrets looks for canaries in what the spec stored and printed.
func (c *cluster) expectNoSecrets(ctx SpecContext) {
	silent := &canaries{env: c.env}
	for in, lists := range map[client.Client][]client.ObjectList{
		c.Client: {&v1alpha1.MachineList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{},
			&corev1.EventList{}},
		c.target: {&corev1.NodeList{}},
	} {
		for _, list := range lists {
			Expect(in.List(ctx, list)).To(Succeed())
			stored, err := json.Marshal(list)
			Expect(err).NotTo(HaveOccurred())
			silent.expectNone(fmt.Sprintf("a %T", list), string(stored))
		}
	}
	for part, logged := range controllerLogs(c.env) {
		silent.expectNone(fmt.Sprintf("the log of %s", part), logged)
	}
	if c.env.PID(localenv.PartSidecar) != 0 {
		metrics := readMetrics(ctx, c.env.SidecarMetricsURL())
		silent.expectNone("the metrics", metrics)
		Expect(metrics).NotTo(ContainSubstring("UnknownOperation"), "requests that have no name")
	}
}

// readMetrics returns what a process shows at the URL.
func readMetrics(ctx context.Context, url string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(metrics)
}

// expectNone looks for each canary, also as it stands in base64 in a Secret or a request.
func (c *canaries) expectNone(where, text string) {
	GinkgoHelper()
	found := func(what, canary string) {
		GinkgoHelper()
		Expect(strings.Contains(text, canary)).To(BeFalse(), "%s in %s", what, where)
		for shift := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
			// The first and last characters depend on what stands around.
			Expect(strings.Contains(text, encoded[4:len(encoded)-4])).To(BeFalse(), "%s in base64 in %s", what, where)
		}
	}
	found("userData", userDataCanary)
	var key struct {
		Credentials struct{ PrivateKey string }
	}
	Expect(json.Unmarshal(c.env.ServiceAccountKey(), &key)).To(Succeed())
	for _, line := range strings.Split(key.Credentials.PrivateKey, "\n")[2:6] {
		found("the private key", line)
	}
	for _, server := range c.env.Cloud().Servers() {
		for _, token := range bootstrapToken.FindAllString(string(server.UserData), -1) {
			found("a bootstrap token", token)
		}
	}
	Expect(jwt.MatchString(text)).To(BeFalse(), "an access token in %s", where)
}
