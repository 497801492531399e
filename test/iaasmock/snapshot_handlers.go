// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
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

func showSnapshot(s *Snapshot) snapshotView {
	return snapshotView{
		ID: s.ID, Name: s.Name, Description: s.Description, Status: cmp.Or(s.Status, SnapshotAvailable), Size: s.Size, VolumeID: s.VolumeID,
		AvailabilityZone: s.AvailabilityZone, Labels: orEmptyMap(s.Labels), CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

// findSnapshot finds a snapshot in the request's project and region.
func (c *Cloud) findSnapshot(r *request, id string) (*Snapshot, bool) {
	snapshot, ok := c.snapshots.get(id)
	return snapshot, ok && r.covers(snapshot.ProjectID, snapshot.Region)
}

// withSnapshot runs f on the snapshot that the path names.
func (c *Cloud) withSnapshot(r *request, f func(s *Snapshot, now time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		snapshot, ok := c.findSnapshot(r, r.vars["snapshotId"])
		if !ok {
			err = notFound("snapshot")
			return
		}
		err = f(snapshot, now)
	})
	return err
}

func (c *Cloud) getSnapshot(r *request) (view any, err *apiError) {
	err = c.withSnapshot(r, func(s *Snapshot, _ time.Time) *apiError {
		view = showSnapshot(s)
		return nil
	})
	return view, err
}
