// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/spf13/pflag"
	"github.com/stackitcloud/stackit-sdk-go/core/config"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"

	// The same metrics as the sidecar's, since they cost some time.
	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"
)

// runInstant is a machine-controller whose driver answers at once. It shows the minimum time
// that machine-controller-manager (MCM) and a control plane take with any driver.
func runInstant() {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	// Keep the connections: hundreds of machines are created at a time.
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	api, err := iaas.NewAPIClient(config.WithHTTPClient(client), config.WithoutAuthentication(),
		config.WithEndpoint(os.Getenv("STACKIT_IAAS_ENDPOINT")))
	if err == nil {
		err = app.Run(server, &instantDriver{api: api.DefaultAPI})
	}
	klog.ErrorS(err, "Failed to run")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// instantDriver creates and deletes servers with one call each, so that Machines get their Nodes, and does not wait
// for them. It answers everything else from memory.
type instantDriver struct {
	driver.Driver // nil: the manager calls no other method

	api iaas.DefaultAPI
	// servers are the IDs of the servers, by the names of their Machines.
	servers sync.Map
}

// serverID returns the ID of a Machine's server; "" if it has none.
func (d *instantDriver) serverID(name string) string {
	value, _ := d.servers.Load(name)
	id, _ := value.(string)
	return id
}

// providerID returns the ProviderID of a server.
func providerID(serverID string) string {
	return "stackit://" + iaasmock.DefaultProjectID + "/" + serverID
}

// CreateMachine creates a server, unless it did before.
func (d *instantDriver) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	name := req.Machine.Name
	if d.serverID(name) == "" {
		server, err := d.api.CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
			CreateServerPayload(iaas.CreateServerPayload{
				Name: name, MachineType: iaasmock.DefaultMachineType,
				Networking: iaas.CreateServerPayloadAllOfNetworking{
					CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: ptr.To(iaasmock.DefaultNetworkID)},
				},
				BootVolume: &iaas.BootVolume{Size: ptr.To[int64](20), DeleteOnTermination: ptr.To(true),
					Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image")},
			}).Execute()
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		d.servers.Store(name, server.GetId())
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(d.serverID(name)), NodeName: name}, nil
}

// InitializeMachine has nothing to initialize.
func (d *instantDriver) InitializeMachine(
	context.Context, *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "there is nothing to initialize")
}

// DeleteMachine deletes the server.
func (d *instantDriver) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	if id := d.serverID(req.Machine.Name); id != "" {
		err := d.api.DeleteServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).Execute()
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		d.servers.Delete(req.Machine.Name)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus returns what CreateMachine did.
func (d *instantDriver) GetMachineStatus(
	_ context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	id := d.serverID(req.Machine.Name)
	if id == "" {
		return nil, status.Error(codes.NotFound, "no server was created for machine "+req.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: providerID(id), NodeName: req.Machine.Name}, nil
}

// ListMachines returns no machines: there are no orphans.
func (d *instantDriver) ListMachines(
	context.Context, *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	return &driver.ListMachinesResponse{}, nil
}

// GetVolumeIDs returns no volumes.
func (d *instantDriver) GetVolumeIDs(
	context.Context, *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}
