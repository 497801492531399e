// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

func (c *Cloud) unrescueServer(r *request) (any, *apiError) { return nil, c.act(r, actionUnrescue) }

// rescueServer boots the server from an image; its own disks are kept and come
// back with unrescue.
func (c *Cloud) rescueServer(r *request) (any, *apiError) {
	var payload struct {
		Image string `json:"image"`
	}
	if err := r.decode("RescueServerPayload", schemaRescueServer, &payload); err != nil {
		return nil, err
	}
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		if _, err := c.imageOf(r, payload.Image); err != nil {
			return err
		}
		if !slices.Contains(actionRescue.from, s.stateAt(now).status) {
			return conflict()
		}
		c.begin(r, s, now, actionRescue)
		return nil
	})
}

// resizeServer shows the new machine type from the start and ends in the state
// it began in. Without room for it, the server stays as it was; OpenStack also
// finds that out only on the way.
func (c *Cloud) resizeServer(r *request) (any, *apiError) {
	var payload struct {
		MachineType string `json:"machineType"`
	}
	if err := r.decode("ResizeServerPayload", schemaResizeServer, &payload); err != nil {
		return nil, err
	}
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		wanted, ok := c.findMachineType(payload.MachineType)
		if !ok || wanted.Name == s.MachineType {
			return badRequest("machine type is not valid")
		}
		status := s.stateAt(now).status
		if status != StatusActive && status != StatusInactive {
			return conflict()
		}
		before, _ := c.findMachineType(s.MachineType)
		more := quotaOrder{vcpus: wanted.VCPUs - before.VCPUs, ram: wanted.RAM - before.RAM}
		if err := c.allowServer(s.ProjectID, s.Region, more); err != nil {
			return err
		}
		if c.hasRoom(wanted.Name, s.AvailabilityZone, s) {
			s.MachineType = wanted.Name
		}
		c.begin(r, s, now, action{during: StatusResizing, end: status})
		return nil
	})
}
