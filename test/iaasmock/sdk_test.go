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

func TestSDKDecodesEverything(t *testing.T) {
	m := newMock(t)
	api, ctx := sdkClient(t, m), t.Context()
	const project, region, network = iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultDualStackNetworkID
	server, err := api.CreateServer(ctx, project, region).CreateServerPayload(sdkServer("sdk")).Execute()
	if err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateNic(ctx, project, region, network).CreateNicPayload(*iaas.NewCreateNicPayload()).Execute()
	if err != nil {
		t.Fatal(err)
	}
	volume := iaas.NewCreateVolumePayload("eu01-1")
	volume.SetSize(30)
	volume.SetSource(*iaas.NewVolumeSource(iaasmock.DefaultImageID, "image"))
	disk, err := api.CreateVolume(ctx, project, region).CreateVolumePayload(*volume).Execute()
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"GetServer": func() error {
			_, err := api.GetServer(ctx, project, region, server.GetId()).Details(true).Execute()
			return err
		},
		"ListProjectNICs": func() error { _, err := api.ListProjectNICs(ctx, project, region).Execute(); return err },
		"GetProjectNIC":   func() error { _, err := api.GetProjectNIC(ctx, project, region, made.GetId()).Execute(); return err },
		"ListNics":        func() error { _, err := api.ListNics(ctx, project, region, network).Execute(); return err },
		"GetNic":          func() error { _, err := api.GetNic(ctx, project, region, network, made.GetId()).Execute(); return err },
		"DeleteNic": func() error {
			return api.DeleteNic(ctx, project, region, iaasmock.DefaultNetworkID, iaasmock.DefaultNICID).Execute()
		},
		"ListVolumes":  func() error { _, err := api.ListVolumes(ctx, project, region).Execute(); return err },
		"GetVolume":    func() error { _, err := api.GetVolume(ctx, project, region, disk.GetId()).Execute(); return err },
		"DeleteVolume": func() error { return api.DeleteVolume(ctx, project, region, iaasmock.DefaultVolumeID).Execute() },
		"ListNetworks": func() error { _, err := api.ListNetworks(ctx, project, region).Execute(); return err },
		"GetNetwork":   func() error { _, err := api.GetNetwork(ctx, project, region, network).Execute(); return err },
		"ListImages":   func() error { _, err := api.ListImages(ctx, project, region).All(true).Execute(); return err },
		"GetImage": func() error {
			_, err := api.GetImage(ctx, project, region, iaasmock.DefaultImageID).Execute()
			return err
		},
		"ListMachineTypes":   func() error { _, err := api.ListMachineTypes(ctx, project, region).Execute(); return err },
		"GetMachineType":     func() error { _, err := api.GetMachineType(ctx, project, region, "n1.14d.g1").Execute(); return err },
		"ListSecurityGroups": func() error { _, err := api.ListSecurityGroups(ctx, project, region).Execute(); return err },
		"GetSecurityGroup": func() error {
			_, err := api.GetSecurityGroup(ctx, project, region, iaasmock.DefaultSecurityGroupID).Execute()
			return err
		},
		"ListAffinityGroups": func() error { _, err := api.ListAffinityGroups(ctx, project, region).Execute(); return err },
		"GetAffinityGroup": func() error {
			_, err := api.GetAffinityGroup(ctx, project, region, iaasmock.DefaultAffinityGroupID).Execute()
			return err
		},
		"ListAvailabilityZones": func() error { _, err := api.ListAvailabilityZones(ctx, region).Execute(); return err },
		"ListKeyPairs":          func() error { _, err := api.ListKeyPairs(ctx).Execute(); return err },
		"GetKeyPair":            func() error { _, err := api.GetKeyPair(ctx, iaasmock.DefaultKeypairName).Execute(); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m.cloud.CallCounts()[name] == 0 {
			t.Errorf("%s is not counted under its name: %v", name, m.cloud.CallCounts())
		}
	}
	bad := sdkServer("-")
	_, err = api.CreateServer(ctx, project, region).CreateServerPayload(bad).Execute()
	if failure, ok := err.(*oapierror.GenericOpenAPIError); !ok || failure.StatusCode != 400 { //nolint:errorlint // as above
		t.Errorf("a bad name: %v", err)
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
