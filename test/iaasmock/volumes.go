// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

// showVolume returns a volume as the API shows it.
func (*Cloud) showVolume(v *Volume, _ time.Time) object {
	view := object{
		"id": v.ID, "name": v.Name, "description": v.Description, "status": v.Status, "serverId": v.ServerID,
		"size": v.Size, "performanceClass": v.PerformanceClass, "availabilityZone": v.AvailabilityZone,
		"bootable": v.Bootable, "encrypted": false, "labels": orEmptyMap(v.Labels),
		"createdAt": v.CreatedAt.UTC(), "updatedAt": v.UpdatedAt.UTC(),
	}
	if v.SourceType != "" {
		view["source"] = sourcePayload{Type: v.SourceType, ID: v.SourceID}
	}
	return filled(view, "name", "description", "performanceClass", "serverId")
}

// createVolume creates a volume that is AVAILABLE at once, or in ERROR if it cannot be created
// as requested.
func (c *Cloud) createVolume(r *request) (view any, err *apiError) {
	var payload struct {
		Name             string         `json:"name"`
		Description      string         `json:"description"`
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
	status := VolumeAvailable
	if !slices.Contains(c.catalogue.Regions[r.region()], payload.AvailabilityZone) {
		status = VolumeError
	}
	c.locked(func(now time.Time) {
		volume := &Volume{
			ID: c.newID(), ProjectID: r.project(), Region: r.region(), Name: payload.Name,
			Description: payload.Description, Size: payload.Size, PerformanceClass: payload.PerformanceClass,
			AvailabilityZone: payload.AvailabilityZone, Bootable: payload.Bootable, Status: status, Labels: volumeLabels,
			CreatedAt: now, UpdatedAt: now,
		}
		if err = c.fillVolume(r, volume, payload.Source); err != nil {
			return
		}
		c.volumes.put(volume.ID, volume)
		view = c.showVolume(volume, now)
	})
	return view, err
}

// fillVolume sets the source and the size. Without a size the volume gets its source's;
// for an image the size is required.
func (c *Cloud) fillVolume(r *request, volume *Volume, source *sourcePayload) *apiError {
	sizeless := source != nil && source.Type != sourceImage
	if volume.Size < 0 || volume.Size == 0 && !sizeless || volume.Size > maxVolumeSize {
		// Source: the document: CreateVolume's description requires a size in some cases,
		// CreateVolumePayload's limits it.
		return badRequest("volume size is not valid or missing")
	}
	if source == nil {
		return nil
	}
	size, problem := c.sourceSize(r, source.Type, source.ID)
	volume.SourceType, volume.SourceID, volume.Bootable = source.Type, source.ID, true
	if volume.Size == 0 {
		volume.Size = size
	}
	if problem != "" || volume.Size < size {
		volume.Status = VolumeError
	}
	return nil
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
	case source.Fields["status"] != statusAvailable:
		return 0, kind + " " + id + " is not available."
	default:
		return source.number(field), ""
	}
}

type sourcePayload struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}
