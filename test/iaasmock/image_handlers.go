// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"time"
)

type imageView struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	DiskFormat  string            `json:"diskFormat"`
	MinDiskSize int64             `json:"minDiskSize"`
	MinRAM      int64             `json:"minRam"`
	Owner       string            `json:"owner,omitempty"`
	Scope       string            `json:"scope"`
	Status      string            `json:"status"`
	Config      map[string]any    `json:"config,omitempty"`
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

func showImage(i *Image, _ time.Time) imageView {
	view := imageView{
		ID: i.ID, Name: i.Name, DiskFormat: i.DiskFormat, MinDiskSize: i.MinDiskSize, MinRAM: i.MinRAM,
		Owner: i.ProjectID, Scope: "public", Status: i.Status, Config: i.Config,
		Labels: orEmptyMap(i.Labels), CreatedAt: i.CreatedAt.UTC(), UpdatedAt: i.UpdatedAt.UTC(),
	}
	if i.ProjectID != "" {
		view.Scope = "local"
	}
	return view
}

// listImages ignores the parameter all: what it adds is not documented.
func (c *Cloud) listImages(r *request) (any, *apiError) {
	return listed(c, r, &c.images, showImage)
}

func (c *Cloud) getImage(r *request) (any, *apiError) {
	return shown(c, r, &c.images, namedImage, showImage)
}
