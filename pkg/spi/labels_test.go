// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stackitcloud/stackit-sdk-go/core/config"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
)

// TestOperationsAreNamedAsTheSDKNamesThem calls the SDK's functions, so that a path that it
// changes does not become an UnknownOperation.
func TestOperationsAreNamedAsTheSDKNamesThem(t *testing.T) {
	var sent *http.Request
	client, err := iaas.NewAPIClient(config.WithoutAuthentication(), config.WithEndpoint("https://proxy.invalid/iaas"),
		config.WithHTTPClient(&http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
			sent = request
			return nil, errors.New("not sent")
		})}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, api := context.Background(), client.DefaultAPI
	const project, region, id = "00000000-0000-4000-8000-000000000000", "eu01", "11111111-1111-4111-8111-111111111111"
	var named []string
	for name, call := range map[string]func(){
		"CreateServer": func() {
			_, _ = api.CreateServer(ctx, project, region).CreateServerPayload(*iaas.NewCreateServerPayload("g1a.1d", "a",
				iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{}})).Execute()
		},
		"ListServers":     func() { _, _ = api.ListServers(ctx, project, region).LabelSelector("a=b").Execute() },
		"GetServerLog":    func() { _, _ = api.GetServerLog(ctx, project, region, id).Execute() },
		"GetServer":       func() { _, _ = api.GetServer(ctx, project, region, id).Details(true).Execute() },
		"DeleteServer":    func() { _ = api.DeleteServer(ctx, project, region, id).Execute() },
		"ListServerNICs":  func() { _, _ = api.ListServerNICs(ctx, project, region, id).Execute() },
		"ListNics":        func() { _, _ = api.ListNics(ctx, project, region, id).Execute() },
		"ListProjectNICs": func() { _, _ = api.ListProjectNICs(ctx, project, region).Execute() },
		"GetNic":          func() { _, _ = api.GetNic(ctx, project, region, id, id).Execute() },
		"DeleteNic":       func() { _ = api.DeleteNic(ctx, project, region, id, id).Execute() },
		"ListVolumes":     func() { _, _ = api.ListVolumes(ctx, project, region).Execute() },
		"GetVolume":       func() { _, _ = api.GetVolume(ctx, project, region, id).Execute() },
		"DeleteVolume":    func() { _ = api.DeleteVolume(ctx, project, region, id).Execute() },
		"UpdateNic": func() {
			_, _ = api.UpdateNic(ctx, project, region, id, id).UpdateNicPayload(iaas.UpdateNicPayload{}).Execute()
		},
		operationUnknown: func() { _, _ = api.GetProjectDetails(ctx, project).Execute() },
	} {
		named = append(named, name)
		sent = nil
		call()
		if sent == nil {
			t.Errorf("%s sent nothing", name)
		} else if got := operationOf(sent); got != name {
			t.Errorf("%s %s is %s, want %s", sent.Method, sent.URL.Path, got, name)
		}
	}
	for _, known := range operations {
		if !slices.Contains(named, known.name) {
			t.Errorf("%s is not called", known.name)
		}
	}
}

// TestLabelsAreBounded lets a server answer with every status, and keys name many hosts.
func TestLabelsAreBounded(t *testing.T) {
	codes := map[string]bool{}
	for code := range 1000 {
		codes[statusLabel(code)] = true
	}
	if len(codes) > 80 || !codes["network_error"] || !codes["503"] || codes["0"] {
		t.Errorf("%d codes", len(codes))
	}
	if got := statusLabel(599); got != "5xx" {
		t.Errorf("599 is %s, want 5xx, which the alerts count among 5..", got)
	}
	var names hostNames
	labels := map[string]bool{}
	for i := range 1000 {
		labels[names.label(fmt.Sprintf("%d.stackit.invalid", i))] = true
	}
	if len(labels) != mostHosts+1 || !labels["other"] || names.label("0.stackit.invalid") != "0.stackit.invalid" {
		t.Errorf("%d hosts: %v", len(labels), labels)
	}
}
