// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
)

// The methods here are the stories behind the exported ones, which instrument.go
// documents and wraps.

func (p *Provider) createMachine(ctx context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if err := checkMachine(request.Machine); err != nil {
		return nil, err
	}
	c, err := p.newCall(request.Machine, request.MachineClass, request.Secret, strict)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()

	creation := &creation{
		call: c, exhausted: p.exhausted, boots: p.boots, settle: *p.settle,
		predecessors: func() time.Time { return p.predecessorsUntil(request.Machine) }, urged: map[string]bool{},
		rawSpec: string(request.MachineClass.ProviderSpec.Raw),
	}
	server, err := creation.ensureServer(ctx)
	if err != nil {
		return nil, err
	}
	if err := creation.awaitActive(ctx, server); err != nil {
		return nil, err
	}
	addresses, err := creation.awaitAddresses(ctx, server.ID)
	if err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{
		ProviderID: formatProviderID(c.projectID, server.ID),
		NodeName:   request.Machine.Name,
		Addresses:  addresses,
	}, nil
}

func (p *Provider) initializeMachine(ctx context.Context, request *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	if err := checkMachine(request.Machine); err != nil {
		return nil, err
	}
	c, err := p.newCall(request.Machine, request.MachineClass, request.Secret, strict)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	serverID, err := c.runningServer(ctx, request.Machine)
	if errors.Is(err, errGone) {
		return nil, newError(codes.Unavailable, fmt.Sprintf("the server of machine %s is not there (any more)", request.Machine.Name))
	}
	if err != nil {
		return nil, err
	}
	if err := c.ensureAllowedAddresses(ctx, serverID); err != nil {
		return nil, err
	}
	return &driver.InitializeMachineResponse{
		ProviderID: formatProviderID(c.projectID, serverID),
		NodeName:   request.Machine.Name,
		Addresses:  c.knownAddresses(serverID),
	}, nil
}

func (p *Provider) getMachineStatus(ctx context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if err := checkMachine(request.Machine); err != nil {
		return nil, err
	}
	c, err := p.newCall(request.Machine, request.MachineClass, request.Secret, lenient)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	c.soon.patient = request.Machine.DeletionTimestamp != nil
	server, err := c.currentServer(ctx, request.Machine)
	if errors.Is(err, errGone) {
		return nil, newError(codes.NotFound, fmt.Sprintf("there is no running server of machine %s", request.Machine.Name))
	}
	if err != nil {
		return nil, err
	}
	response := &driver.GetMachineStatusResponse{
		ProviderID: formatProviderID(c.projectID, server.ID),
		NodeName:   request.Machine.Name,
	}
	if request.Machine.DeletionTimestamp != nil {
		return response, nil // DeleteMachine looks closer
	}
	if err := c.checkOwned(server, request.Machine.Spec.ProviderID != ""); err != nil {
		return nil, err
	}
	// Whatever its state: lists lag, and a server that seems not to run yet may have
	// been created and be waiting for its initialization only. The manager calls
	// InitializeMachine no more once it was answered OK.
	c.adopt(server.ID)
	initialized, err := c.inspectNICs(ctx, server.ID)
	if err != nil {
		return nil, err
	}
	response.Addresses = c.knownAddresses(server.ID)
	if !initialized {
		return response, newError(codes.Uninitialized, fmt.Sprintf("server %s does not carry all allowedAddresses yet", server.ID))
	}
	return response, nil
}

func (p *Provider) deleteMachine(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := checkMachine(request.Machine); err != nil {
		return nil, err
	}
	c, err := p.newCall(request.Machine, request.MachineClass, request.Secret, lenient)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()

	c.soon.patient = true
	known, predecessor := c.ledger.get(c.key), p.predecessorsUntil(request.Machine)
	deletion := &deletion{call: c, machine: request.Machine,
		certain:  known.certainFrom(*p.settle, predecessor),
		answered: known.answered() && !predecessor.After(known.posted)}
	servers, err := deletion.victims(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.deleteServers(ctx, servers); err != nil {
		return nil, err
	}
	deletion.finish(servers)
	return &driver.DeleteMachineResponse{}, nil
}

func (p *Provider) listMachines(ctx context.Context, request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	c, err := p.newCall(nil, request.MachineClass, request.Secret, lenient)
	if err != nil {
		return nil, err
	}
	if c.nameless {
		return &driver.ListMachinesResponse{MachineList: map[string]string{}}, nil
	}
	if c.clusterUnknown {
		return nil, newError(codes.InvalidArgument, "the providerSpec's labels cannot be read, so that the cluster's servers cannot be told from others")
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	listed := c.inventory.find(ctx, c.classSelector(), when{patient: true})
	if listed.err != nil {
		return nil, listed.err
	}
	machines := map[string]string{}
	for i := range listed.value {
		server := &listed.value[i]
		name := server.Labels[StackitMachineLabel]
		if _, contradicts := c.contradiction(server); contradicts || name == "" || server.leaving() {
			continue
		}
		machines[formatProviderID(c.projectID, server.ID)] = name
	}
	return &driver.ListMachinesResponse{MachineList: machines}, nil
}

// CSI drivers whose volume handles are IDs of IaaS volumes. SKE has both.
const (
	csiDriver       = "block-storage.csi.stackit.cloud"
	legacyCSIDriver = "cinder.csi.openstack.org"
)

func (p *Provider) getVolumeIDs(_ context.Context, request *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	response := &driver.GetVolumeIDsResponse{VolumeIDs: []string{}}
	for _, spec := range request.PVSpecs {
		if id := volumeID(spec); id != "" {
			response.VolumeIDs = append(response.VolumeIDs, id)
		}
	}
	return response, nil
}

func volumeID(spec *corev1.PersistentVolumeSpec) string {
	if spec == nil || spec.CSI == nil || (spec.CSI.Driver != csiDriver && spec.CSI.Driver != legacyCSIDriver) {
		return ""
	}
	return spec.CSI.VolumeHandle
}

func (p *Provider) waitUntilServerRunning(ctx context.Context, projectID, region, serverID string) error {
	look, err := p.lookAt(projectID, region)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	server, err := look.await(ctx, serverID, nil, noLull, func(server *Server) bool {
		return server.Status == statusActive || server.Status == statusError
	})
	switch {
	case errors.Is(err, errGone):
		return newError(codes.NotFound, fmt.Sprintf("server %s is gone", serverID))
	case err != nil:
		return err
	case server.Status == statusError:
		return faultyError(server)
	default:
		return nil
	}
}

func (p *Provider) waitUntilServerDeleted(ctx context.Context, projectID, region, serverID string) error {
	look, err := p.lookAt(projectID, region)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	_, err = look.await(ctx, serverID, nil, noLull, func(*Server) bool { return false })
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// lookAt is for calls that come without a Secret.
func (p *Provider) lookAt(projectID, region string) (look, error) {
	p.begin()
	session := p.newestSession(projectID)
	if session == nil {
		return look{}, newError(codes.FailedPrecondition, fmt.Sprintf("no session with project %s was opened yet", projectID))
	}
	return look{inventory: p.inventoryOf(session, region)}, nil
}
