// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"maps"
	"net/http"
	"time"
)

// updateVolume changes what the document lists; imageConfig is merged.
func (c *Cloud) updateVolume(r *request) (view any, err *apiError) {
	var payload struct {
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Bootable    *bool          `json:"bootable"`
		ImageConfig map[string]any `json:"imageConfig"`
		Labels      map[string]any `json:"labels"`
	}
	if err := r.decode("UpdateVolumePayload", schemaUpdateVolume, &payload); err != nil {
		return nil, err
	}
	err = c.withVolume(r, func(v *Volume, now time.Time) *apiError {
		labels, err := mergeLabels(v.Labels, payload.Labels)
		if err != nil {
			return err
		}
		v.Labels, v.UpdatedAt = labels, now
		if payload.Name != nil {
			v.Name = *payload.Name
		}
		if payload.Description != nil {
			v.Description = *payload.Description
		}
		if payload.Bootable != nil {
			v.Bootable = *payload.Bootable
		}
		if payload.ImageConfig != nil {
			config := maps.Clone(v.ImageConfig)
			if config == nil {
				config = map[string]any{}
			}
			maps.Copy(config, schemaImageConfig.known(payload.ImageConfig))
			v.ImageConfig = config
		}
		view = showVolume(*v)
		return nil
	})
	return view, err
}

// resizeVolume is done at once, attached or not.
func (c *Cloud) resizeVolume(r *request) (any, *apiError) {
	var payload struct {
		Size int64 `json:"size"`
	}
	if err := r.decodeOptional("ResizeVolumePayload", schemaResizeVolume, &payload); err != nil {
		return nil, err
	}
	return nil, c.withVolume(r, func(v *Volume, now time.Time) *apiError {
		if payload.Size <= v.Size || payload.Size > maxVolumeSize {
			return badRequest("volume size is not valid or missing: it must be more than %d and at most %d", v.Size, maxVolumeSize)
		}
		if err := c.allowGigabytes(http.StatusConflict, v.ProjectID, v.Region, payload.Size-v.Size); err != nil {
			return err
		}
		v.Size, v.UpdatedAt = payload.Size, now
		return nil
	})
}

// withVolume runs f on the volume that the path names.
func (c *Cloud) withVolume(r *request, f func(v *Volume, now time.Time) *apiError) *apiError {
	var err *apiError
	c.locked(func(now time.Time) {
		var volume *Volume
		if volume, err = c.volumeOf(r, r.vars["volumeId"]); err == nil {
			err = f(volume, now)
		}
	})
	return err
}
