// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

// showVolume returns a volume as the API shows it.
func (*Cloud) showVolume(v *Volume, _ time.Time) object {
	view := object{
		"id": v.ID, "name": v.Name, "status": v.Status, "serverId": v.ServerID,
		"size": v.Size, "performanceClass": v.PerformanceClass, "availabilityZone": v.AvailabilityZone,
		"bootable": v.Bootable, "encrypted": false, "labels": orEmptyMap(v.Labels),
		"createdAt": v.CreatedAt.UTC(),
	}
	return filled(view, "name", "performanceClass", "serverId")
}

func (c *Cloud) listVolumes(r *request) (any, *apiError) {
	views, err := listWhere(c, r, &c.volumes, (*Cloud).showVolume, func(*Volume, time.Time) bool { return true })
	return items(views), err
}

// createVolume creates a volume that is AVAILABLE at once; one with a source is bootable.
func (c *Cloud) createVolume(r *request) (view any, err *apiError) {
	var payload struct {
		Name             string         `json:"name"`
		Size             int64          `json:"size"`
		PerformanceClass string         `json:"performanceClass"`
		AvailabilityZone string         `json:"availabilityZone"`
		Bootable         bool           `json:"bootable"`
		Source           *sourcePayload `json:"source"`
		Labels           map[string]any `json:"labels"`
	}
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	volumeLabels, err := mergeLabels(nil, payload.Labels)
	if err != nil {
		return nil, err
	}
	if payload.Size < 1 || payload.Size > maxVolumeSize {
		// Source: the document: CreateVolumePayload's description limits the size.
		return nil, badRequest("volume size is not valid or missing")
	}
	c.locked(func(now time.Time) {
		volume := &Volume{
			ID: c.random.uuid(), ProjectID: r.project(), Region: r.region(), Name: payload.Name, Size: payload.Size,
			PerformanceClass: payload.PerformanceClass, AvailabilityZone: payload.AvailabilityZone,
			Bootable: payload.Bootable || payload.Source != nil, Status: volumeAvailable, Labels: volumeLabels,
			CreatedAt: now,
		}
		c.volumes.put(volume.ID, volume)
		view = c.showVolume(volume, now)
	})
	return view, err
}

func (c *Cloud) deleteVolume(r *request) (any, *apiError) {
	return nil, onNamed(c, r, &c.volumes, namedVolume, func(volume *Volume, _ time.Time) *apiError {
		if volume.ServerID != "" {
			// Source: the document: DeleteVolume's description; 409 of DeleteVolume.
			return conflict()
		}
		c.volumes.remove(volume.ID)
		return nil
	})
}

// maxVolumeSize is in GB.
const maxVolumeSize = 16000

// sizeFields are the fields with a volume's minimum size, by the kind of its source.
var sizeFields = map[Kind]string{KindImage: "minDiskSize", KindSnapshot: "size"}

// sourceSize finds the source of a volume and returns the volume's minimum size in GB. problem is
// the reason if no volume can be created from it.
func (c *Cloud) sourceSize(r *request, kind, id string) (size int64, problem string) {
	field := sizeFields[Kind(kind)]
	source, exists := c.findResource(r, Kind(kind), id)
	switch {
	case !exists || field == "":
		return 0, kind + " " + id + " not found."
	case source.Fields["status"] != volumeAvailable:
		return 0, kind + " " + id + " is not available."
	default:
		return source.number(field), ""
	}
}

type sourcePayload struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}
