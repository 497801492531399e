// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/probes/project"
)

// Against the mock each probe has an answer, and nothing is left.
func TestEachProbeHasAnAnswer(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithBootDuration(200*time.Millisecond),
		iaasmock.WithDeleteDuration(100*time.Millisecond))
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	p := newProbes(project.Project{
		ID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, NetworkID: iaasmock.DefaultNetworkID,
		ImageID: iaasmock.DefaultImageID, MachineType: iaasmock.DefaultMachineType, Key: string(key),
	}, spi.Config{Endpoint: server.URL, TokenURL: server.URL + "/oauth/v2/token"})
	p.poll, p.idle = 10*time.Millisecond, []time.Duration{10 * time.Millisecond}
	var out strings.Builder
	if err := p.run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		`404 .*server not found`, `email.*valid for 600 s`, `404 .*region not found`, `after \d`, `1 shown, 1 was sent`,
		`it is CREATING; accepted`, `at once: DELETING; gone after .* 404 `, `not told: the quota leaves -1 GB`,
		`64 KiB of base64: accepted; .*: accepted`, `accepted`, `accepted; gone after .*; it showed no boot volume`,
		`in ERROR after .*; gone after `, `10ms: still open`, `Content-Length.*X-Request-Id`,
	} {
		if i >= len(rows) || !regexp.MustCompile(`^\| .* \| .*`+want).MatchString(rows[i]) {
			t.Fatalf("row %d: want %s in\n%s", i, want, out.String())
		}
	}
	if left := len(cloud.Servers()) + len(cloud.NICs()) + len(cloud.Volumes()); left != 3 {
		t.Errorf("%d resources are left, want the catalogue's 3", left)
	}
}
