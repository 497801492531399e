// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"net/http"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
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

func (c *Cloud) listSnapshots(r *request) (any, *apiError) {
	return listed(c, r, &c.snapshots, func(s *Snapshot, _ time.Time) (any, map[string]string, bool) {
		return showSnapshot(s), s.Labels, r.covers(s.ProjectID, s.Region)
	})
}

func (c *Cloud) getSnapshot(r *request) (view any, err *apiError) {
	err = c.withSnapshot(r, func(s *Snapshot, _ time.Time) *apiError {
		view = showSnapshot(s)
		return nil
	})
	return view, err
}

// createSnapshot makes a snapshot that is AVAILABLE at once. The volume may be attached.
// The snapshot of an unknown volume, or of one in ERROR, is in ERROR.
func (c *Cloud) createSnapshot(r *request) (view any, err *apiError) {
	var payload struct {
		VolumeID    string         `json:"volumeId"`
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Labels      map[string]any `json:"labels"`
	}
	if err := r.decode("CreateSnapshotPayload", schema.CreateSnapshot, &payload); err != nil {
		return nil, err
	}
	labels, err := mergeLabels(nil, payload.Labels)
	if err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		status := SnapshotAvailable
		volume, ok := c.findVolume(r, payload.VolumeID)
		if !ok {
			if err = c.unconfirmed(noSuch("volume")); err != nil {
				return
			}
			volume, status = &Volume{ID: payload.VolumeID}, SnapshotError
		}
		if volume.Status == VolumeError {
			status = SnapshotError
		}
		if err = c.allowSnapshot(r.project(), r.region(), volume.Size); err != nil {
			return
		}
		snapshot := &Snapshot{
			ID: c.newID(), ProjectID: r.project(), Region: r.region(), VolumeID: volume.ID, Name: payload.Name, Status: status,
			Description: payload.Description, Size: volume.Size, AvailabilityZone: volume.AvailabilityZone, Labels: labels,
			CreatedAt: now, UpdatedAt: now,
		}
		c.snapshots.put(snapshot.ID, snapshot)
		view = showSnapshot(snapshot)
	})
	return view, err
}

func (c *Cloud) updateSnapshot(r *request) (view any, err *apiError) {
	var payload struct {
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Labels      map[string]any `json:"labels"`
	}
	if err := r.decode("UpdateSnapshotPayload", schema.UpdateSnapshot, &payload); err != nil {
		return nil, err
	}
	err = c.withSnapshot(r, func(s *Snapshot, now time.Time) *apiError {
		labels, err := mergeLabels(s.Labels, payload.Labels)
		if err != nil {
			return err
		}
		s.Labels, s.UpdatedAt = labels, now
		if payload.Name != nil {
			s.Name = *payload.Name
		}
		if payload.Description != nil {
			s.Description = *payload.Description
		}
		view = showSnapshot(s)
		return nil
	})
	return view, err
}

// deleteSnapshot keeps the volumes that were made from it.
func (c *Cloud) deleteSnapshot(r *request) (any, *apiError) {
	return nil, c.withSnapshot(r, func(s *Snapshot, _ time.Time) *apiError {
		c.snapshots.remove(s.ID)
		return nil
	})
}

// allowSnapshot refuses a snapshot that would exceed a quota, with OpenStack's message.
func (c *Cloud) allowSnapshot(project, region string, gigabytes int64) *apiError {
	used, most := c.usage(project, region).Snapshots, c.quotaOf(project).Snapshots
	if used+1 > most {
		// Source: the document: a quota has a limit; 413 of CreateSnapshot.
		return newError(http.StatusRequestEntityTooLarge,
			"SnapshotLimitExceeded: Maximum number of snapshots allowed (%d) exceeded for quota 'snapshots'.", most)
	}
	return c.allowGigabytes(http.StatusRequestEntityTooLarge, project, region, gigabytes)
}
