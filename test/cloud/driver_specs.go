// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/guard"
)

// secret is the name of the Secret with the account's credentials.
const secret = "credentials"

// driver is the state of the driver's specs.
type driver struct {
	*cluster

	// first and next are the names of the Machines that stay until the end.
	first, next string
}

func driverSpecs() []spec {
	d := &driver{}
	return []spec{
		{"the driver makes a server with labels, allowedAddresses and addresses for a Machine", d.make},
		{"the driver adopts the server that it made before it was killed", d.adopt},
		{"the driver says what is wrong with a class, and makes no server that runs", d.refuse},
		{"the driver finds an orphan and deletes it, and nothing else", d.findOrphan},
		// All Machines are deleted from here on: that takes the manager half a minute. The last spec waits
		// for it.
		{"the driver deletes a server that is being created", d.deleteEarly},
		{"the driver leaves nothing", d.leaveNothing},
	}
}

func (d *driver) make(ctx context.Context, s *suite) (err error) {
	if d.cluster, err = s.startCluster(ctx); err != nil {
		return err
	}
	if err := d.createSecret(ctx, secret); err != nil {
		return err
	}
	d.first = api.Name(s.name, "first")
	if err := d.createMachine(ctx, d.first, nil); err != nil {
		return err
	}
	machine, err := d.awaitAvailable(ctx, d.first)
	if err != nil {
		return err
	}
	server, err := d.onlyServer(ctx, d.first)
	if err != nil {
		return err
	}
	for key, value := range api.ServerLabels(s.name, d.first, d.first) {
		if seen := server.Labels[key]; seen != value {
			return fmt.Errorf("wanted: the label %s of server %s is %q; seen: %q", key, server.ID, value, seen)
		}
	}
	if wanted, seen := "stackit://"+s.settings.ProjectID+"/"+server.ID, machine.Spec.ProviderID; seen != wanted {
		return fmt.Errorf("wanted: the ProviderID %s; seen: %s", wanted, seen)
	}
	internal := func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP }
	if !slices.ContainsFunc(machine.Status.Addresses, internal) {
		return fmt.Errorf("wanted: an address of the Machine; seen: %d", len(machine.Status.Addresses))
	}
	return d.expectAllowedAddresses(ctx, server.ID)
}

// onlyServer returns a Machine's server. Having more or fewer than one is an error. It filters again: an
// API may ignore the selector.
func (c *cluster) onlyServer(ctx context.Context, machine string) (only api.Server, err error) {
	const key = provider.StackitMachineLabel
	err = c.suite.await(ctx, "one server of Machine "+machine, func(ctx context.Context) (string, bool, error) {
		servers, err := c.suite.api.Servers(ctx, key+"="+machine)
		servers = slices.DeleteFunc(servers, func(server api.Server) bool { return server.Labels[key] != machine })
		if len(servers) > 0 {
			only = servers[0]
		}
		return fmt.Sprintf("%d servers", len(servers)), len(servers) == 1, err
	})
	return only, err
}

// expectAllowedAddresses waits until the NIC of a server shows what its class allows.
func (c *cluster) expectAllowedAddresses(ctx context.Context, id string) error {
	wanted := fmt.Sprintf("the NIC of server %s shows %s", id, podCIDR)
	return c.suite.await(ctx, wanted, func(ctx context.Context) (string, bool, error) {
		nics, err := c.suite.api.NICs(ctx, c.suite.network)
		return "none does", slices.ContainsFunc(nics, func(nic api.NIC) bool {
			return nic.Device == id && slices.Contains(nic.AllowedAddresses, podCIDR)
		}), err
	})
}

func (d *driver) adopt(ctx context.Context, s *suite) error {
	d.next = api.Name(s.name, "next")
	if err := d.createMachine(ctx, d.next, nil); err != nil {
		return err
	}
	if _, err := d.onlyServer(ctx, d.next); err != nil {
		return err
	}
	d.env.KillSidecar()
	if err := d.env.StartSidecar(ctx); err != nil {
		return err
	}
	if _, err := d.awaitAvailable(ctx, d.next); err != nil {
		return err
	}
	_, err := d.onlyServer(ctx, d.next)
	return err
}

// refuse creates Machines that cannot get a server, and expects the reason on each.
func (d *driver) refuse(ctx context.Context, s *suite) error {
	wrong := map[string]any{"imageId": api.Nobody, "machineType": "mcm-cloud-test.0"}
	for field, value := range wrong {
		if err := d.createMachine(ctx, api.Name(s.name, strings.ToLower(field)), map[string]any{field: value}); err != nil {
			return err
		}
	}
	for field := range wrong {
		if err := d.expectRefusal(ctx, api.Name(s.name, strings.ToLower(field)), field); err != nil {
			return err
		}
	}
	return nil
}

// expectRefusal waits for the reason why a Machine has no server.
func (d *driver) expectRefusal(ctx context.Context, name, field string) error {
	var machine v1alpha1.Machine
	wanted := fmt.Sprintf("an error of the Machine whose %s does not exist", field)
	err := d.suite.await(ctx, wanted, func(ctx context.Context) (_ string, _ bool, err error) {
		machine, err = d.machine(ctx, name)
		if isAvailable(machine) {
			err = hopeless{errors.New("it is Available")}
		}
		return describe(machine), machine.Status.LastOperation.ErrorCode != "", err
	})
	if err != nil {
		return err
	}
	last := machine.Status.LastOperation
	d.suite.guard.Note(guard.RowCodes, fmt.Sprintf("%s: %s, %s", field, last.ErrorCode, last.Description))
	// At once: each attempt of the manager may create a server that ends in ERROR.
	return d.Delete(ctx, &machine)
}

func (d *driver) findOrphan(ctx context.Context, s *suite) error {
	orphan := api.Name(s.name, "orphan")
	id, err := s.create(ctx, api.PathServers, s.body(orphan, api.ServerLabels(s.name, orphan, d.first), nil))
	if err != nil {
		return err
	}
	err = s.await(ctx, "a DELETE of the orphan, server "+id, func(context.Context) (string, bool, error) {
		deleted := func(t api.Thing) bool { return t.ID == id && t.Deleting }
		return "none", slices.ContainsFunc(s.guard.Things(), deleted), nil
	})
	if err != nil {
		return err
	}
	for _, machine := range []string{d.first, d.next} {
		if _, err := d.onlyServer(ctx, machine); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) deleteEarly(ctx context.Context, s *suite) error {
	name := api.Name(s.name, "early")
	if err := d.createMachine(ctx, name, nil); err != nil {
		return err
	}
	if _, err := d.onlyServer(ctx, name); err != nil {
		return err
	}
	return d.deleteMachines(ctx)
}

func (d *driver) leaveNothing(ctx context.Context, s *suite) error {
	if err := d.awaitNoMachine(ctx); err != nil {
		return err
	}
	return s.expectNothingLeft(ctx)
}
