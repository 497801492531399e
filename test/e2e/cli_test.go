// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// cliTimeout allows for building the CLI, and for its waits: it looks every 5 s.
const cliTimeout = 8 * time.Minute

var _ = Describe("The stackit CLI", func() {
	It("takes a server of the mock through its life, and reads the catalogue", journey, func(ctx SpecContext) {
		cloud := iaasmock.New(iaasmock.WithBootDuration(time.Second), iaasmock.WithDeleteDuration(time.Second))
		api := httptest.NewServer(cloud)
		DeferCleanup(api.Close)
		stackit := newCLI(api.URL)
		key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
		Expect(err).NotTo(HaveOccurred())
		_, err = stackit.try(ctx, stackit.path, "server", "list")
		Expect(err).To(MatchError(ContainSubstring("not authenticated")))
		stackit.authenticate(ctx, key)

		var server cliServer
		stackit.read(ctx, &server, "server", "create", "--assume-yes", "--name", "by-hand",
			"--machine-type", iaasmock.DefaultMachineType, "--network-id", iaasmock.DefaultNetworkID,
			"--boot-volume-source-type", "image", "--boot-volume-source-id", iaasmock.DefaultImageID,
			"--boot-volume-size", "20", "--boot-volume-delete-on-termination", "--labels", "team=platform")
		var listed []cliServer
		stackit.read(ctx, &listed, "server", "list", "--label-selector", "team=platform")
		Expect(listed).To(ConsistOf(And(HaveField("ID", server.ID), HaveField("Status", iaasmock.StatusActive))))
		Expect(stackit.run(ctx, "server", "describe", server.ID)).To(MatchRegexp(`NAME +│ by-hand`))
		Expect(stackit.run(ctx, "server", "volume", "list", "--server-id", server.ID)).To(ContainSubstring(server.Volumes[0]))
		for _, resource := range []string{"network-interface", "volume"} { // what is attached, and to what
			Expect(stackit.run(ctx, resource, "list", "--output-format", "json")).To(ContainSubstring(server.ID))
		}

		before := cloud.Volumes()
		stackit.run(ctx, "server", "delete", server.ID, "--assume-yes")
		Expect(cloud.Servers()).To(BeEmpty())
		Expect(cloud.Volumes()).To(HaveLen(len(before)-1), "the boot volume is to go with its server")
		_, err = stackit.try(ctx, stackit.path, "server", "describe", server.ID)
		Expect(err).To(MatchError(ContainSubstring("server not found")))
		Expect(stackit.run(ctx, "server", "list")).To(ContainSubstring(`No servers found for project "default"`))

		By("reading the catalogue")
		for command, shown := range map[string]string{
			"quota list":                        "vcpus?",
			"server machine-type list":          iaasmock.DefaultMachineType,
			"image list":                        iaasmock.DefaultImageID,
			"network list":                      iaasmock.DefaultNetworkID,
			"security-group list":               iaasmock.DefaultSecurityGroupID,
			"key-pair list":                     iaasmock.DefaultKeypairName,
			"affinity-group list":               iaasmock.DefaultAffinityGroupID,
			"volume performance-class list":     "storage_premium_perf1",
			"image describe":                    iaasmock.DefaultImageID,
			"server machine-type describe":      iaasmock.DefaultMachineType,
			"network describe":                  iaasmock.DefaultNetworkID,
			"security-group describe":           iaasmock.DefaultSecurityGroupID,
			"key-pair describe":                 iaasmock.DefaultKeypairName,
			"affinity-group describe":           iaasmock.DefaultAffinityGroupID,
			"volume describe":                   iaasmock.DefaultVolumeID,
			"volume performance-class describe": "storage_premium_perf1",
		} {
			args := strings.Fields(command)
			if args[len(args)-1] == "describe" {
				args = append(args, shown)
			}
			Expect(stackit.run(ctx, args...)).To(MatchRegexp("(?i)"+shown), command)
		}
		Expect(cloud.CallCounts()).NotTo(HaveKey("Unknown"), "calls that the mock does not know")
	}, NodeTimeout(cliTimeout))

	It("does what the mock's README says", func(ctx SpecContext) {
		readme, err := os.ReadFile("../iaasmock/README.md")
		Expect(err).NotTo(HaveOccurred())
		section := regexp.MustCompile("(?s)\n## With the stackit CLI\n.*?\n```sh\n(export .*?)```").
			FindStringSubmatch(string(readme))
		Expect(section).NotTo(BeNil(), "the README has no examples with the CLI")

		cloud := iaasmock.New(iaasmock.WithoutAuthentication(),
			iaasmock.WithBootDuration(time.Second), iaasmock.WithDeleteDuration(time.Second))
		api := httptest.NewServer(cloud)
		DeferCleanup(api.Close)
		script := strings.ReplaceAll(section[1], "http://127.0.0.1:8080", api.URL)
		printed, err := newCLI(api.URL).try(ctx, "sh", "-euc", script)
		Expect(err).NotTo(HaveOccurred())
		Expect(printed).To(MatchRegexp(`(?s)ACTIVE.*10\.0\.0\.3.*team: platform`))
		Expect(cloud.History()).To(And(HaveField("ServersCreated", 1), HaveField("ServersDeleted", 1)))
	}, NodeTimeout(cliTimeout))
})

// cli is the stackit CLI with a home of its own, talking to one mock.
type cli struct {
	path string
	env  []string
}

// newCLI takes the CLI that make has built. What it wants from anywhere but loopback ends
// at a proxy that refuses, and fails the spec.
func newCLI(url string) *cli {
	GinkgoHelper()
	path := built("bin/stackit")
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		w.WriteHeader(http.StatusForbidden)
		Fail("the CLI wants to leave this computer: " + r.Method + " " + r.Host)
	}))
	DeferCleanup(outside.Close)
	return &cli{path: path, env: []string{
		// Without a session bus, credentials go to a file in HOME, not to a keyring.
		"HOME=" + GinkgoT().TempDir(),
		"PATH=" + filepath.Dir(path) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HTTP_PROXY=" + outside.URL, "HTTPS_PROXY=" + outside.URL,
		"STACKIT_IAAS_CUSTOM_ENDPOINT=" + url,
		"STACKIT_TOKEN_CUSTOM_ENDPOINT=" + url + "/oauth/v2/token",
		"STACKIT_RESOURCE_MANAGER_CUSTOM_ENDPOINT=" + url + "/resource-manager",
		"STACKIT_PROJECT_ID=" + iaasmock.DefaultProjectID,
		"STACKIT_REGION=" + iaasmock.DefaultRegion,
	}}
}

// authenticate hands the CLI a service-account key, as a file.
func (c *cli) authenticate(ctx context.Context, key []byte) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "sa-key.json")
	Expect(os.WriteFile(path, key, 0o600)).To(Succeed())
	Expect(c.run(ctx, "auth", "activate-service-account", "--service-account-key-path", path)).
		To(MatchRegexp(`successfully authenticated(.|\n)*mock-[0-9a-f]+@sa\.stackit\.cloud`))
}

// run answers what the CLI prints. It must succeed.
func (c *cli) run(ctx context.Context, args ...string) string {
	GinkgoHelper()
	stdout, err := c.try(ctx, c.path, args...)
	Expect(err).NotTo(HaveOccurred(), "stackit %q", args)
	return stdout
}

// read decodes what the CLI prints as JSON.
func (c *cli) read(ctx context.Context, into any, args ...string) {
	GinkgoHelper()
	printed := c.run(ctx, append(args, "--output-format", "json")...)
	Expect(json.Unmarshal([]byte(printed), into)).To(Succeed(), "stackit %q prints %s", args, printed)
}

// try runs a program in the CLI's environment; the error has what it says.
func (c *cli) try(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = c.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	_, _ = fmt.Fprintf(GinkgoWriter, "%s %q\n%s%s", filepath.Base(program), args, &stdout, &stderr)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, &stderr)
	}
	return stdout.String(), nil
}

// cliServer is what the specs look at in the CLI's JSON.
type cliServer struct {
	ID, Status string
	Volumes    []string
}
