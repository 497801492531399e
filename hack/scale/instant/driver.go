// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// instantDriver makes and deletes servers with one call each and remembers them;
// everything else it answers from memory.
type instantDriver struct {
	servers string
	client  *http.Client

	mu       sync.Mutex
	machines map[string]machine
}

// machine is what the driver made for a Machine, by whose name it is kept.
type machine struct {
	serverID, class string
}

var _ driver.Driver = (*instantDriver)(nil)

// newInstantDriver returns a driver for the default project and region of the
// mock at this URL.
func newInstantDriver(endpoint string) *instantDriver {
	return &instantDriver{
		servers: endpoint + "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/" + iaasmock.DefaultRegion + "/servers",
		// Hundreds of machines are made at a time; their connections are kept.
		client:   &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
		machines: map[string]machine{},
	}
}

func providerID(m machine) string { return "stackit://" + iaasmock.DefaultProjectID + "/" + m.serverID }

// CreateMachine makes a server unless this process has made it, and does not wait
// for it to boot.
func (d *instantDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	name, class := req.Machine.Name, req.MachineClass.Name
	made, found := d.machine(name)
	if !found {
		id, err := d.post(ctx, name, class)
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		made = machine{serverID: id, class: class}
		d.remember(name, made)
	}
	return &driver.CreateMachineResponse{ProviderID: providerID(made), NodeName: name}, nil
}

// InitializeMachine has nothing to do.
func (d *instantDriver) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, status.Error(codes.Unimplemented, "there is nothing to initialize")
}

// DeleteMachine deletes the server and does not wait until it is gone.
func (d *instantDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if made, found := d.machine(req.Machine.Name); found {
		if err := d.call(ctx, http.MethodDelete, d.servers+"/"+made.serverID, nil, http.StatusNoContent, nil); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		d.forget(req.Machine.Name)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus finds what CreateMachine has made.
func (d *instantDriver) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	made, found := d.machine(req.Machine.Name)
	if !found {
		return nil, status.Error(codes.NotFound, "no server was made for "+req.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: providerID(made), NodeName: req.Machine.Name}, nil
}

// ListMachines returns what was made of the class and not deleted.
func (d *instantDriver) ListMachines(_ context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := map[string]string{}
	for name, made := range d.machines {
		if made.class == req.MachineClass.Name {
			list[providerID(made)] = name
		}
	}
	return &driver.ListMachinesResponse{MachineList: list}, nil
}

// GetVolumeIDs knows no volumes.
func (d *instantDriver) GetVolumeIDs(context.Context, *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return &driver.GetVolumeIDsResponse{}, nil
}

func (d *instantDriver) machine(name string) (machine, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, found := d.machines[name]
	return made, found
}

func (d *instantDriver) remember(name string, made machine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.machines[name] = made
}

func (d *instantDriver) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.machines, name)
}

// post makes a server and returns its ID.
func (d *instantDriver) post(ctx context.Context, name, class string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"name":        name,
		"machineType": iaasmock.DefaultMachineType,
		"labels":      map[string]string{"kubernetes.io/machine": name, "kubernetes.io/machineclass": class},
		"networking":  map[string]string{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": map[string]any{"size": 20, "deleteOnTermination": true,
			"source": map[string]string{"type": "image", "id": iaasmock.DefaultImageID}},
	})
	if err != nil {
		return "", err
	}
	var server struct{ ID string }
	err = d.call(ctx, http.MethodPost, d.servers, body, http.StatusCreated, &server)
	return server.ID, err
}

// call expects an answer with the status want, and decodes it if into is given.
func (d *instantDriver) call(ctx context.Context, method, url string, body []byte, want int, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != want {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
