// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// userDataCanary stands in the userData of every Secret here.
const userDataCanary = "canary-in-the-user-data"

var (
	bootstrapToken = regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`)
	// jwt is how the cloud's access tokens and our assertions look.
	jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.`)
)

// canaries are what must appear in no log, no status, no event and no metric of
// an environment.
type canaries struct {
	env    *localenv.Env
	mu     sync.Mutex
	tokens map[string]bool
}

// watchSecrets collects the bootstrap tokens that pass through the cloud, and
// looks for canaries when the container's last spec has ended.
func watchSecrets(env *localenv.Env) {
	c := &canaries{env: env, tokens: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for ; ctx.Err() == nil; <-ticker.C {
			c.collect()
		}
	}()
	DeferCleanup(func() {
		cancel()
		<-done
		c.expectSilence(context.Background())
	})
}

func (c *canaries) collect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, server := range c.env.Cloud().Servers() {
		for _, token := range bootstrapToken.FindAllString(string(server.UserData), -1) {
			c.tokens[token] = true
		}
	}
}

func (c *canaries) expectSilence(ctx context.Context) {
	GinkgoHelper()
	sidecar, err := c.env.Logs(localenv.PartSidecar)
	Expect(err).NotTo(HaveOccurred())
	Expect(sidecar).To(ContainSubstring("Limiting the log's verbosity"), "the sidecar is to run at its highest verbosity")
	c.expectNone("the sidecar's log", sidecar)
	manager, err := c.env.Logs(localenv.PartManager)
	Expect(err).NotTo(HaveOccurred())
	c.expectNone("the manager's log", manager)

	var events corev1.EventList
	Expect(c.env.Client().List(ctx, &events)).To(Succeed())
	stored, err := json.Marshal(events.Items)
	Expect(err).NotTo(HaveOccurred())
	c.expectNone("the events", string(stored))

	response, err := http.Get(c.env.SidecarMetricsURL())
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(response.Body.Close()).To(Succeed()) }()
	metrics, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	if len(c.tokens) > 0 { // servers were made
		Expect(string(metrics)).To(ContainSubstring("mcm_cloud_api_requests_total"))
	}
	c.expectNone("the metrics", string(metrics))
}

// expectNone looks for each canary, also as it stands in base64 in a Secret or a
// request.
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
	for _, line := range privateKeyLines(c.env.ServiceAccountKey()) {
		found("the private key", line)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for token := range c.tokens {
		found("a bootstrap token", token)
	}
	Expect(jwt.MatchString(text)).To(BeFalse(), "an access token in %s", where)
}

// privateKeyLines are some lines from the inside of the key's PEM.
func privateKeyLines(key []byte) []string {
	GinkgoHelper()
	var file struct {
		Credentials struct {
			PrivateKey string `json:"privateKey"`
		} `json:"credentials"`
	}
	Expect(json.Unmarshal(key, &file)).To(Succeed())
	lines := strings.Split(file.Credentials.PrivateKey, "\n")
	Expect(len(lines)).To(BeNumerically(">", 10))
	return lines[2:6]
}
