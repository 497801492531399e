// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"github.com/stackitcloud/stackit-sdk-go/core/config"
	"github.com/stackitcloud/stackit-sdk-go/core/oapierror"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// sdkClient is the official client, with a key of its own.
func sdkClient(t *testing.T, m *mock) iaas.DefaultAPI {
	t.Helper()
	raw, _ := newKey(t, m.cloud, iaasmock.DefaultProjectID)
	var key clients.ServiceAccountKeyResponse
	if err := json.Unmarshal(raw, &key); err != nil {
		t.Fatal(err)
	}
	flow := &clients.KeyFlow{}
	if err := flow.Init(&clients.KeyFlowConfig{
		ServiceAccountKey: &key, PrivateKey: *key.Credentials.PrivateKey, TokenUrl: m.url + "/token",
		HTTPTransport: http.DefaultTransport, AuthHTTPClient: http.DefaultClient,
	}); err != nil {
		t.Fatal(err)
	}
	client, err := iaas.NewAPIClient(config.WithEndpoint(m.url), config.WithCustomAuth(flow))
	if err != nil {
		t.Fatal(err)
	}
	return client.DefaultAPI
}

func sdkServer(name string) iaas.CreateServerPayload {
	network := iaas.NewCreateServerNetworking()
	network.SetNetworkId(iaasmock.DefaultDualStackNetworkID)
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name,
		iaas.CreateServerNetworkingAsCreateServerPayloadAllOfNetworking(network))
	boot := iaas.NewBootVolume()
	boot.SetSize(20)
	boot.SetDeleteOnTermination(true)
	boot.SetSource(*iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image"))
	payload.SetBootVolume(*boot)
	payload.SetLabels(map[string]any{"kubernetes.io/machine": name})
	payload.SetUserData("I2Nsb3VkLWNvbmZpZwo=")
	payload.SetAffinityGroup(iaasmock.DefaultAffinityGroupID)
	payload.SetKeypairName(iaasmock.DefaultKeypairName)
	payload.SetSecurityGroups([]string{iaasmock.DefaultSecurityGroupID})
	payload.SetServiceAccountMails([]string{"node@sa.stackit.cloud"})
	payload.SetMetadata(map[string]any{"a": "b"})
	return *payload
}

func TestSDKServerLife(t *testing.T) {
	m := newMock(t)
	api, ctx := sdkClient(t, m), t.Context()
	const project, region = iaasmock.DefaultProjectID, iaasmock.DefaultRegion

	created, err := api.CreateServer(ctx, project, region).CreateServerPayload(sdkServer("sdk")).Execute()
	if err != nil {
		t.Fatal(err)
	}
	id := created.GetId()
	m.clock.Step(boot)

	found, err := api.ListServers(ctx, project, region).Details(true).LabelSelector("kubernetes.io/machine=sdk").Execute()
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("listed %v, %v", found, err)
	}
	listed := found.Items[0]
	if listed.GetId() != id || listed.GetStatus() != "ACTIVE" || listed.GetUserData() != "I2Nsb3VkLWNvbmZpZwo=" ||
		len(listed.GetNics()) != 1 || listed.GetLaunchedAt().IsZero() {
		t.Errorf("listed as %+v", listed)
	}

	nics, err := api.ListServerNICs(ctx, project, region, id).Execute()
	if err != nil || len(nics.Items) != 1 || nics.Items[0].GetDevice() != id || nics.Items[0].GetIpv4() == "" {
		t.Fatalf("NICs %+v, %v", nics, err)
	}
	prefix := "100.64.0.0/10"
	renamed := "renamed"
	change := iaas.NewUpdateNicPayload()
	change.SetAllowedAddresses([]iaas.AllowedAddressesInner{iaas.StringAsAllowedAddressesInner(&prefix)})
	nic, err := api.UpdateNic(ctx, project, region, iaasmock.DefaultDualStackNetworkID, nics.Items[0].GetId()).UpdateNicPayload(*change).Execute()
	if err != nil || len(nic.AllowedAddresses) != 1 || *nic.AllowedAddresses[0].String != prefix {
		t.Errorf("updated to %+v, %v", nic, err)
	}
	if _, err := api.UpdateServer(ctx, project, region, id).UpdateServerPayload(iaas.UpdateServerPayload{Name: &renamed}).Execute(); err != nil {
		t.Error(err)
	}
	attached, err := api.ListAttachedVolumes(ctx, project, region, id).Execute()
	if err != nil || len(attached.Items) != 1 || !attached.Items[0].GetDeleteOnTermination() {
		t.Errorf("volumes %+v, %v", attached, err)
	}

	if err := api.DeleteServer(ctx, project, region, id).Execute(); err != nil {
		t.Fatal(err)
	}
	m.clock.Step(remove)
	_, err = api.GetServer(ctx, project, region, id).Execute()
	wantModel(t, err, 404, "server not found")
}

// wantModel checks that the SDK decodes documented errors into its model.
func wantModel(t *testing.T, err error, code int, message string) {
	t.Helper()
	failure, ok := err.(*oapierror.GenericOpenAPIError) //nolint:errorlint // the type as returned
	if !ok {
		t.Fatalf("error is %T %v", err, err)
	}
	model, ok := failure.Model.(iaas.Error)
	if !ok || failure.StatusCode != code || model.Code != int64(code) || model.Msg != message {
		t.Errorf("got %d %+v", failure.StatusCode, failure.Model)
	}
}

func TestSDKRenewsItsToken(t *testing.T) {
	// The SDK checks tokens by the real clock, five seconds early.
	m := newMock(t, iaasmock.WithTokenLifetime(4*time.Second))
	api := sdkClient(t, m)
	for range 3 {
		if _, err := api.ListServers(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.cloud.CallCounts()["Token"]; got != 3 {
		t.Errorf("%d tokens were fetched", got)
	}
}
