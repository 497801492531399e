// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"net/http"
	"testing"

	"github.com/stackitcloud/stackit-sdk-go/core/runtime"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// sdkRig is the official client and a server that runs.
type sdkRig struct {
	*mock
	iaas.DefaultAPI
	id string
}

func newSDKRig(t *testing.T) *sdkRig {
	t.Helper()
	m := newMock(t)
	r := &sdkRig{mock: m, DefaultAPI: sdkClient(t, m)}
	created, err := r.CreateServer(t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(sdkServer("sdk")).Execute()
	if err != nil {
		t.Fatal(err)
	}
	r.id = created.GetId()
	m.clock.Step(boot)
	return r
}

// sdkStep is a call of the official client, named by its operation.
type sdkStep struct {
	operation string
	call      func() error
}

// run carries the steps out in order; each is counted under its name.
func (r *sdkRig) run(steps []sdkStep) {
	r.t.Helper()
	for _, step := range steps {
		before := r.cloud.CallCounts()[step.operation]
		if err := step.call(); err != nil {
			r.t.Errorf("%s: %v", step.operation, err)
		}
		if after := r.cloud.CallCounts()[step.operation]; after != before+1 {
			r.t.Errorf("%s is not counted: %v", step.operation, r.cloud.CallCounts())
		}
		r.clock.Step(action)
	}
}

// second drops what an answer holds: that it could be read is enough.
func second[T any](_ T, err error) error { return err }

func TestSDKDevicesOfAServer(t *testing.T) {
	const project, region, volume, group = iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultVolumeID, iaasmock.DefaultSecurityGroupID
	const other, mail = "40000000-0000-4000-8000-000000000002", "node@sa.stackit.cloud"
	r, ctx := newSDKRig(t), t.Context()
	keep := true
	r.run([]sdkStep{
		{"AddVolumeToServer", func() error {
			return second(r.AddVolumeToServer(ctx, project, region, r.id, volume).AddVolumeToServerPayload(iaas.AddVolumeToServerPayload{DeleteOnTermination: &keep}).Execute())
		}},
		{"GetAttachedVolume", func() error {
			attachment, err := r.GetAttachedVolume(ctx, project, region, r.id, volume).Execute()
			if err == nil && (attachment.GetServerId() != r.id || !attachment.GetDeleteOnTermination()) {
				t.Errorf("attached as %+v", attachment)
			}
			return err
		}},
		{"UpdateAttachedVolume", func() error {
			return second(r.UpdateAttachedVolume(ctx, project, region, r.id, volume).UpdateAttachedVolumePayload(iaas.UpdateAttachedVolumePayload{}).Execute())
		}},
		{"RemoveVolumeFromServer", func() error { return r.RemoveVolumeFromServer(ctx, project, region, r.id, volume).Execute() }},
		{"AddVolumeToServer", func() error {
			return second(r.AddVolumeToServer(ctx, project, region, r.id, volume).AddVolumeToServerPayload(iaas.AddVolumeToServerPayload{}).Execute())
		}},
		{"AddNicToServer", func() error { return r.AddNicToServer(ctx, project, region, r.id, iaasmock.DefaultNICID).Execute() }},
		{"RemoveNicFromServer", func() error {
			return r.RemoveNicFromServer(ctx, project, region, r.id, iaasmock.DefaultNICID).Execute()
		}},
		{"AddNetworkToServer", func() error {
			return r.AddNetworkToServer(ctx, project, region, r.id, iaasmock.DefaultNetworkID).Execute()
		}},
		{"RemoveNetworkFromServer", func() error {
			return r.RemoveNetworkFromServer(ctx, project, region, r.id, iaasmock.DefaultNetworkID).Execute()
		}},
		{"AddSecurityGroupToServer", func() error { return r.AddSecurityGroupToServer(ctx, project, region, r.id, other).Execute() }},
		{"RemoveSecurityGroupFromServer", func() error { return r.RemoveSecurityGroupFromServer(ctx, project, region, r.id, group).Execute() }},
		{"ListServerServiceAccounts", func() error { return second(r.ListServerServiceAccounts(ctx, project, region, r.id).Execute()) }},
		{"RemoveServiceAccountFromServer", func() error {
			return second(r.RemoveServiceAccountFromServer(ctx, project, region, r.id, mail).Execute())
		}},
		{"AddServiceAccountToServer", func() error {
			return second(r.AddServiceAccountToServer(ctx, project, region, r.id, mail).Execute())
		}},
		{"RescueServer", func() error {
			return r.RescueServer(ctx, project, region, r.id).RescueServerPayload(iaas.RescueServerPayload{Image: iaasmock.DefaultImageID}).Execute()
		}},
		{"UnrescueServer", func() error { return r.UnrescueServer(ctx, project, region, r.id).Execute() }},
		{"ResizeServer", func() error {
			return r.ResizeServer(ctx, project, region, r.id).ResizeServerPayload(iaas.ResizeServerPayload{MachineType: "g2i.4"}).Execute()
		}},
		{"GetServerConsole", func() error { return second(r.GetServerConsole(ctx, project, region, r.id).Execute()) }},
		{"GetServerLog", func() error { return second(r.GetServerLog(ctx, project, region, r.id).Length(5).Execute()) }},
	})
	if got := r.server(r.id); got.MachineType != "g2i.4" || len(got.VolumeIDs) != 2 || len(got.NICIDs) != 1 || len(got.SecurityGroups) != 1 || got.SecurityGroups[0] != other {
		t.Errorf("in the end it is %+v", got)
	}
}

func TestSDKVolumesPublicIPsAndProjects(t *testing.T) {
	const project, region, volume = iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultVolumeID
	r, ctx := newSDKRig(t), t.Context()
	var ip string
	name := "renamed"
	r.run([]sdkStep{
		{"UpdateVolume", func() error {
			return second(r.UpdateVolume(ctx, project, region, volume).UpdateVolumePayload(iaas.UpdateVolumePayload{Name: &name}).Execute())
		}},
		{"ResizeVolume", func() error {
			return r.ResizeVolume(ctx, project, region, volume).ResizeVolumePayload(iaas.ResizeVolumePayload{Size: 40}).Execute()
		}},
		{"ListVolumePerformanceClasses", func() error { return second(r.ListVolumePerformanceClasses(ctx, project, region).Execute()) }},
		{"GetVolumePerformanceClass", func() error {
			return second(r.GetVolumePerformanceClass(ctx, project, region, "storage_premium_perf1").Execute())
		}},
		{"CreatePublicIP", func() error {
			made, err := r.CreatePublicIP(ctx, project, region).CreatePublicIPPayload(iaas.CreatePublicIPPayload{}).Execute()
			ip = made.GetId()
			return err
		}},
		{"AddPublicIpToServer", func() error { return r.AddPublicIpToServer(ctx, project, region, r.id, ip).Execute() }},
		{"GetPublicIP", func() error {
			got, err := r.GetPublicIP(ctx, project, region, ip).Execute()
			if err == nil && got.GetNetworkInterface() != r.server(r.id).NICIDs[0] {
				t.Errorf("it is attached to %q", got.GetNetworkInterface())
			}
			return err
		}},
		{"RemovePublicIpFromServer", func() error { return r.RemovePublicIpFromServer(ctx, project, region, r.id, ip).Execute() }},
		{"UpdatePublicIP", func() error {
			var payload iaas.UpdatePublicIPPayload
			payload.SetNetworkInterfaceNil()
			return second(r.UpdatePublicIP(ctx, project, region, ip).UpdatePublicIPPayload(payload).Execute())
		}},
		{"ListPublicIPs", func() error { return second(r.ListPublicIPs(ctx, project, region).Execute()) }},
		{"ListPublicIPRanges", func() error { return second(r.ListPublicIPRanges(ctx).Execute()) }},
		{"DeletePublicIP", func() error { return r.DeletePublicIP(ctx, project, region, ip).Execute() }},
		{"ListQuotas", func() error {
			got, err := r.ListQuotas(ctx, project, region).Execute()
			if err == nil && (got.Quotas.Vcpu.Usage != 2 || got.Quotas.Gigabytes.Usage != 100) {
				t.Errorf("used are %+v", got.Quotas)
			}
			return err
		}},
		{"GetProjectDetails", func() error { return second(r.GetProjectDetails(ctx, project).Execute()) }},
	})
}

// TestSDKFollowsARequest the way that the SDK waits for one: by the ID in the
// header of the answer.
func TestSDKFollowsARequest(t *testing.T) {
	const project, region = iaasmock.DefaultProjectID, iaasmock.DefaultRegion
	r := newSDKRig(t)
	var response *http.Response
	ctx := runtime.WithCaptureHTTPResponse(t.Context(), &response)
	if err := r.StopServer(ctx, project, region, r.id).Execute(); err != nil {
		t.Fatal(err)
	}
	r.clock.Step(action)
	id := response.Header.Get("X-Request-Id")
	done, err := r.GetProjectRequest(t.Context(), project, region, id).Execute()
	if err != nil || done.RequestId != id || done.RequestAction != "UPDATE" || done.Status != "UPDATED" || done.Resources[0].Id != r.id {
		t.Errorf("it came to %+v, %v", done, err)
	}
}
