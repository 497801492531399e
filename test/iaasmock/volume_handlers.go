// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// volumeView is a volume as the API shows it.
type volumeView struct {
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Status           string            `json:"status"`
	Size             int64             `json:"size"`
	PerformanceClass string            `json:"performanceClass,omitempty"`
	AvailabilityZone string            `json:"availabilityZone"`
	Bootable         bool              `json:"bootable"`
	Encrypted        bool              `json:"encrypted"`
	ServerID         string            `json:"serverId,omitempty"`
	Source           *sourcePayload    `json:"source,omitempty"`
	ImageConfig      map[string]any    `json:"imageConfig,omitempty"`
	Labels           map[string]string `json:"labels"`
	CreatedAt        time.Time         `json:"createdAt"`
	UpdatedAt        time.Time         `json:"updatedAt"`
}

func showVolume(v Volume) volumeView {
	view := volumeView{
		ID: v.ID, Name: v.Name, Description: v.Description, Status: v.Status, Size: v.Size, PerformanceClass: v.PerformanceClass,
		AvailabilityZone: v.AvailabilityZone, Bootable: v.Bootable, ServerID: v.ServerID, ImageConfig: v.ImageConfig,
		Labels: orEmptyMap(v.Labels), CreatedAt: v.CreatedAt.UTC(), UpdatedAt: v.UpdatedAt.UTC(),
	}
	if v.SourceType != "" {
		view.Source = &sourcePayload{Type: v.SourceType, ID: v.SourceID}
	}
	return view
}

// volumeOf finds a volume in the request's project and region.
func (c *Cloud) volumeOf(r *request, id string) (*Volume, *apiError) {
	volume, ok := c.volumes.get(id)
	if !ok || volume.ProjectID != r.project() || volume.Region != r.region() {
		return nil, notFound("volume")
	}
	return volume, nil
}

func (c *Cloud) listVolumes(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []volumeView{}
	c.locked(func(time.Time) {
		for _, v := range c.volumes.all() {
			inScope := v.ProjectID == r.project() && v.Region == r.region()
			if inScope && selector.Matches(labels.Set(v.Labels)) {
				views = append(views, showVolume(*v))
			}
		}
	})
	return items(views), nil
}

func (c *Cloud) getVolume(r *request) (view any, err *apiError) {
	c.locked(func(time.Time) {
		var volume *Volume
		if volume, err = c.volumeOf(r, r.vars["volumeId"]); err == nil {
			view = showVolume(*volume)
		}
	})
	return view, err
}

// createVolume makes a volume that is AVAILABLE at once.
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
	if err := r.decode("CreateVolumePayload", schemaCreateVolume, &payload); err != nil {
		return nil, err
	}
	volumeLabels, err := mergeLabels(nil, payload.Labels)
	if err != nil {
		return nil, err
	}
	if err := c.checkPerformanceClass(payload.PerformanceClass); err != nil {
		return nil, err
	}
	if !slices.Contains(c.catalogue.Regions[r.region()], payload.AvailabilityZone) {
		return nil, badRequest("The requested availability zone is not available")
	}
	c.locked(func(now time.Time) {
		volume := &Volume{
			ID: c.newID(), ProjectID: r.project(), Region: r.region(), Name: payload.Name,
			Description: payload.Description, Size: payload.Size, PerformanceClass: payload.PerformanceClass, AvailabilityZone: payload.AvailabilityZone,
			Bootable: payload.Bootable, Status: VolumeAvailable, Labels: volumeLabels, CreatedAt: now, UpdatedAt: now,
		}
		if err = c.fillVolume(r, volume, payload.Source); err != nil {
			return
		}
		if err = c.allowVolume(volume.ProjectID, volume.Region, volume.Size); err != nil {
			return
		}
		c.volumes.put(volume.ID, volume)
		c.totals.VolumesCreated++
		view = showVolume(*volume)
	})
	return view, err
}

// fillVolume applies the source, whose size is the default for all but images.
func (c *Cloud) fillVolume(r *request, volume *Volume, source *sourcePayload) *apiError {
	minimum := int64(1)
	if source != nil {
		size, err := c.sourceSize(r, source.Type, source.ID)
		if err != nil {
			return err
		}
		minimum = max(size, 1)
		volume.SourceType, volume.SourceID, volume.Bootable = source.Type, source.ID, true
		if volume.Size == 0 && source.Type != "image" {
			volume.Size = size
		}
	}
	if volume.Size < minimum || volume.Size > maxVolumeSize {
		return badRequest("volume size is not valid or missing")
	}
	return nil
}

func (c *Cloud) deleteVolume(r *request) (_ any, err *apiError) {
	if _, err := r.flag("cascade"); err != nil {
		return nil, err
	}
	c.locked(func(time.Time) {
		var volume *Volume
		if volume, err = c.volumeOf(r, r.vars["volumeId"]); err != nil {
			return
		}
		if volume.ServerID != "" {
			err = conflict()
			return
		}
		c.removeVolume(volume)
	})
	return nil, err
}
