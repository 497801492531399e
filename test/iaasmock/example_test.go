// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/stackitcloud/stackit-sdk-go/core/config"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The answer to CreateServer is lost: the client sees an error, but the mock has the
// server.
func Example() {
	cloud := iaasmock.New()
	server := httptest.NewServer(cloud)
	defer server.Close()
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		panic(err)
	}
	client, err := iaas.NewAPIClient(config.WithEndpoint(server.URL),
		config.WithTokenEndpoint(server.URL+"/oauth/v2/token"), config.WithServiceAccountKey(string(key)))
	if err != nil {
		panic(err)
	}
	cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
	network, image := iaasmock.DefaultNetworkID, iaasmock.DefaultImageID
	_, err = client.DefaultAPI.CreateServer(context.Background(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(iaas.CreateServerPayload{Name: "mine", MachineType: iaasmock.DefaultMachineType, ImageId: &image,
			Networking: iaas.CreateServerPayloadAllOfNetworking{
				CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}}}).
		Execute()
	fmt.Println("the client sees an error:", err != nil)
	for _, made := range cloud.Servers() {
		fmt.Println("the mock has", made.Name, made.Status)
	}
	// Output:
	// the client sees an error: true
	// the mock has mine CREATING
}
