// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Command instant is a machine-controller whose driver answers at once. It shows the minimum time
// that machine-controller-manager (MCM) and a control plane take with any driver. It creates
// servers in a mock without authentication, so that Machines get their Nodes, and does not wait for
// them.
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
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"

	// The same metrics as the sidecar's, since they cost some time.
	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"
)

func main() {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()
	d, err := newInstantDriver(os.Getenv("STACKIT_IAAS_ENDPOINT"))
	if err == nil {
		err = app.Run(server, d)
	}
	klog.ErrorS(err, "Failed to run")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// instantDriver creates and deletes servers with one call each and remembers them; it answers everything else from
// memory.
type instantDriver struct {
	api iaas.DefaultAPI
	// machines are the created servers, by the names of their Machines.
	machines sync.Map
}

// machine is the server of a Machine.
type machine struct{ name, serverID, class string }

func (m machine) providerID() string {
	return "stackit://" + iaasmock.DefaultProjectID + "/" + m.serverID
}

// newInstantDriver returns a driver for the default project and region of the
// mock at this URL.
func newInstantDriver(endpoint string) (*instantDriver, error) {
	// Keep the connections: hundreds of machines are created at a time.
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	api, err := iaas.NewAPIClient(config.WithHTTPClient(client), config.WithEndpoint(endpoint),
		config.WithoutAuthentication())
	if err != nil {
		return nil, err
	}
	return &instantDriver{api: api.DefaultAPI}, nil
}

// CreateMachine creates a server unless this process has created it before, and does not wait for it to boot.
func (d *instantDriver) CreateMachine(
	ctx context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	made, found := d.machine(req.Machine.Name)
	if !found {
		server, err := d.api.CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
			CreateServerPayload(payload(req.Machine.Name, req.MachineClass.Name)).Execute()
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		made = machine{name: req.Machine.Name, serverID: server.GetId(), class: req.MachineClass.Name}
		d.machines.Store(made.name, made)
	}
	return &driver.CreateMachineResponse{ProviderID: made.providerID(), NodeName: made.name}, nil
}

func payload(name, class string) iaas.CreateServerPayload {
	return iaas.CreateServerPayload{
		Name:        name,
		MachineType: iaasmock.DefaultMachineType,
		Labels:      map[string]any{"kubernetes.io/machine": name, "kubernetes.io/machineclass": class},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: ptr.To(iaasmock.DefaultNetworkID)},
		},
		BootVolume: &iaas.BootVolume{
			Size: ptr.To[int64](20), DeleteOnTermination: ptr.To(true),
			Source: &iaas.BootVolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
		},
	}
}

// InitializeMachine is not implemented: there is nothing to initialize.
func (d *instantDriver) InitializeMachine(
	context.Context, *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "there is nothing to initialize")
}

// DeleteMachine deletes the server and does not wait until it is gone.
func (d *instantDriver) DeleteMachine(
	ctx context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	if made, found := d.machine(req.Machine.Name); found {
		err := d.api.DeleteServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, made.serverID).Execute()
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		d.machines.Delete(made.name)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus returns the server that CreateMachine created for the Machine.
func (d *instantDriver) GetMachineStatus(
	_ context.Context, req *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	made, found := d.machine(req.Machine.Name)
	if !found {
		return nil, status.Error(codes.NotFound, "no server was created for machine "+req.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: made.providerID(), NodeName: made.name}, nil
}

// ListMachines returns the class's servers that CreateMachine created and DeleteMachine has not
// deleted.
func (d *instantDriver) ListMachines(
	_ context.Context, req *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	list := map[string]string{}
	for _, value := range d.machines.Range {
		if made, _ := value.(machine); made.class == req.MachineClass.Name {
			list[made.providerID()] = made.name
		}
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

// GetVolumeIDs returns no volumes.
func (d *instantDriver) GetVolumeIDs(
	context.Context, *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}

func (d *instantDriver) machine(name string) (machine, bool) {
	value, found := d.machines.Load(name)
	made, _ := value.(machine)
	return made, found
}
