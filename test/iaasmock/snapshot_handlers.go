// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

// snapshotView is a snapshot as the API shows it.
type snapshotView struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Status           string            `json:"status"`
	Size             int64             `json:"size"`
	VolumeID         string            `json:"volumeId"`
	AvailabilityZone string            `json:"availabilityZone,omitempty"`
	Labels           map[string]string `json:"labels"`
	CreatedAt        time.Time         `json:"createdAt"`
	UpdatedAt        time.Time         `json:"updatedAt"`
}

func showSnapshot(s *Snapshot, _ time.Time) snapshotView {
	return snapshotView{
		ID: s.ID, Name: s.Name, Description: s.Description, Status: s.Status, Size: s.Size, VolumeID: s.VolumeID,
		AvailabilityZone: s.AvailabilityZone, Labels: orEmptyMap(s.Labels), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

func (c *Cloud) getSnapshot(r *request) (any, *apiError) {
	return shown(c, r, &c.snapshots, namedSnapshot, showSnapshot)
}
