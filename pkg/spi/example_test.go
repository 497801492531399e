// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A service-account key opens a session, whose client lists the servers of the mock's project.
func Example() {
	cloud := iaasmock.New()
	api := httptest.NewServer(cloud)
	defer api.Close()
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		panic(err)
	}

	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: api.URL, TokenURL: api.URL + "/oauth/v2/token"}}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(key)})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := session.Reads.Wait(ctx); err != nil { // at most 8 reads a second
		panic(err)
	}
	servers, err := session.API.ListServers(ctx, session.ProjectID, iaasmock.DefaultRegion).Execute()
	if err != nil {
		panic(err)
	}
	fmt.Println("servers:", len(servers.Items))
	fmt.Println("requests for a token:", cloud.CallCounts()["Token"])
	// Output:
	// servers: 0
	// requests for a token: 1
}
