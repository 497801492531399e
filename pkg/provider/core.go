// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// The methods here implement the exported methods, which instrument.go documents and wraps.

func (p *Provider) createMachine(
	ctx context.Context, request *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	c, err := p.newMachineCall(request.Machine, request.MachineClass, request.Secret, strict)
	if err != nil {
		return nil, err
	}
	defer c.join()()
	id, addresses, err := c.create(ctx)
	if err != nil {
		return nil, err
	}
	c.records.change(&c.ref, func(known *record) {
		c.meters.observe(c.meters.creation, c.class, known.postedAt)
		known.postedAt = time.Time{}
	})
	return &driver.CreateMachineResponse{ProviderID: c.providerID(id), NodeName: c.machine, Addresses: addresses}, nil
}

func (p *Provider) initializeMachine(
	ctx context.Context, request *driver.InitializeMachineRequest,
) (*driver.InitializeMachineResponse, error) {
	c, err := p.newMachineCall(request.Machine, request.MachineClass, request.Secret, strict)
	if err != nil {
		return nil, err
	}
	defer c.join()()
	id, addresses, err := c.initialize(ctx)
	if errors.Is(err, errGone) || errors.Is(err, errUnusable) {
		return nil, newError(ReasonNotReady, "machine %s has no server to initialize", c.machine)
	}
	if err != nil {
		return nil, err
	}
	return &driver.InitializeMachineResponse{
		ProviderID: c.providerID(id), NodeName: c.machine, Addresses: addresses,
	}, nil
}

func (p *Provider) getMachineStatus(
	ctx context.Context, request *driver.GetMachineStatusRequest,
) (*driver.GetMachineStatusResponse, error) {
	c, err := p.newMachineCall(request.Machine, request.MachineClass, request.Secret, lenient)
	if err != nil {
		return nil, err
	}
	w, err := c.readStatus(ctx)
	switch {
	case errors.Is(err, errUnusable):
		return nil, newError(ReasonNoServer, "machine %s has no known running server", c.machine)
	case c.isDeleted && (err == nil || isNotOurs(err)): // DeleteMachine decides
		return &driver.GetMachineStatusResponse{ProviderID: c.providerID(w.id), NodeName: c.machine}, nil
	case err != nil:
		return nil, err
	}
	connected, err := w.awaitConnection(ctx)
	if err != nil {
		return nil, err
	}
	response := &driver.GetMachineStatusResponse{
		ProviderID: c.providerID(w.id), NodeName: c.machine, Addresses: connected.addresses,
	}
	switch missing := c.missing(connected); missing {
	case "":
		return response, nil
	case missingAllowed:
		return response, newError(ReasonNotInitialized, "server %s: %s", w.id, missing)
	default:
		return nil, newError(ReasonNotReady, "server %s: %s", w.id, missing)
	}
}

func (p *Provider) deleteMachine(
	ctx context.Context, request *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	machine := request.Machine
	c, err := p.newMachineCall(machine, request.MachineClass, request.Secret, lenient)
	switch {
	case err != nil:
	case c.isDeleted:
		defer c.join()()
		err = c.deleteAll(ctx)
	case c.serverID == "":
		err = newError(ReasonInvalidInput,
			"machine %s has neither a ProviderID nor a deletionTimestamp: cannot tell which server to delete", c.machine)
	case machine.CreationTimestamp.IsZero(): // made up by the orphan collector
		err = c.deleteOrphan(ctx)
	default:
		defer c.join()()
		err = c.deleteNamed(ctx)
	}
	if err != nil {
		return nil, err
	}
	if machine.DeletionTimestamp != nil {
		p.process.records.forget(refTo(machine))
	}
	return &driver.DeleteMachineResponse{}, nil
}

func (p *Provider) listMachines(
	ctx context.Context, request *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	if err := unlistable(request.MachineClass); err != nil {
		return p.listNone(request.MachineClass.Name, err), nil
	}
	c, err := p.newCall(nil, request.MachineClass, request.Secret, lenient)
	machines := map[string]string{}
	if err != nil {
		return nil, err
	}
	if c.unlabelable {
		return &driver.ListMachinesResponse{MachineList: machines}, nil
	}
	defer c.join()()
	listed, err := c.list(ctx, time.Time{}, c.classSelector(), "the servers of the class could not be listed")
	if err != nil {
		return nil, err
	}
	var servers []Server
	for i := range listed.items {
		server := &listed.items[i]
		name := server.Labels[StackitMachineLabel]
		_, contradicts := c.contradiction(server.Labels)
		if contradicts || !matches(server, c.classSelector()) || name == "" {
			continue
		}
		machines[providerid.Format(c.place.project, server.ID)] = name
		servers = append(servers, *server)
	}
	c.meters.listed(c.class, servers)
	return &driver.ListMachinesResponse{MachineList: machines}, nil
}

// listNone returns the answer for a class whose servers are indistinguishable from others. An error
// would end the manager's orphan run for all later classes (v0.62.1 machine_safety.go:224).
func (p *Provider) listNone(class string, reason error) *driver.ListMachinesResponse {
	if p.noteWarning("unlisted " + class) {
		klog.InfoS("Returning an empty list of servers for a MachineClass; the manager cannot find its orphans",
			"machineClass", loggable(class), "reason", reason.Error())
	}
	return &driver.ListMachinesResponse{MachineList: map[string]string{}}
}

// CSI drivers whose volume handles are IDs of IaaS volumes. SKE has both.
const (
	csiDriver       = "block-storage.csi.stackit.cloud"
	legacyCSIDriver = "cinder.csi.openstack.org"
)

func (p *Provider) getVolumeIDs(
	_ context.Context, request *driver.GetVolumeIDsRequest,
) (*driver.GetVolumeIDsResponse, error) {
	response := &driver.GetVolumeIDsResponse{VolumeIDs: []string{}}
	for _, spec := range request.PVSpecs {
		if id := volumeID(spec); id != "" {
			response.VolumeIDs = append(response.VolumeIDs, id)
		}
	}
	return response, nil
}

func volumeID(spec *corev1.PersistentVolumeSpec) string {
	switch {
	case spec == nil:
		return ""
	case spec.Cinder != nil: // the in-tree plugin, served by the CSI driver now
		return spec.Cinder.VolumeID
	case spec.CSI != nil && (spec.CSI.Driver == csiDriver || spec.CSI.Driver == legacyCSIDriver):
		return spec.CSI.VolumeHandle
	default:
		return ""
	}
}

func (p *Provider) waitUntilServerRunning(ctx context.Context, projectID, region, serverID string) error {
	server, err := p.await(ctx, projectID, region, serverID, func(server *Server) bool {
		return server.Status == statusActive || server.Status == statusError
	})
	switch {
	case errors.Is(err, errGone):
		return newError(ReasonNoServer, "server %s is gone", serverID)
	case err != nil:
		return err
	case server.Status == statusError:
		return faultyError(server, "")
	default:
		return nil
	}
}

func (p *Provider) waitUntilServerDeleted(ctx context.Context, projectID, region, serverID string) error {
	_, err := p.await(ctx, projectID, region, serverID, func(*Server) bool { return false })
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// await reads a server until done returns true. It is for calls without a Secret.
func (p *Provider) await(
	ctx context.Context, projectID, region, serverID string, done func(*Server) bool,
) (*Server, error) {
	session, opened := p.sessions.Lookup(projectID)
	if !opened {
		return nil, newError(ReasonInvalidInput, "no session for project %s has been opened yet: "+
			"first call a method with the Secret of the project", projectID)
	}
	c := p.newSessionCall(session, region)
	c.hasWorked = true // it only waits
	return c.watch(serverID).until(ctx, done)
}
