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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// cli is the stackit CLI with a home of its own, talking to one mock.
type cli struct {
	path string
	env  []string
}

// newCLI takes the CLI that make has built. What it wants from anywhere but loopback ends
// at a proxy that refuses, and fails the spec.
func newCLI(url string) *cli {
	GinkgoHelper()
	path := filepath.Join(root(), "bin", "stackit")
	Expect(path).To(BeAnExistingFile(), "run 'make bin/stackit'")
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
		"STACKIT_TOKEN_CUSTOM_ENDPOINT=" + url + "/token",
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

// The parts of the CLI's JSON that the specs look at.
type (
	cliServer struct {
		ID, Name, Status, PowerStatus, MachineType string
		Labels                                     map[string]string
		NICs                                       []struct{ NICID, NetworkID, IPv4 string }
		Volumes                                    []string
		BootVolume                                 struct {
			ID                  string
			DeleteOnTermination bool
		}
	}
	cliNIC struct {
		ID, NetworkID, Device, IPv4 string
		AllowedAddresses            []string
	}
	cliVolume struct {
		ID, Status, ServerID string
		Size                 int64
	}
)
