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

func showImage(i *Image) imageView {
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

func (r *request) sees(i *Image) bool {
	return (i.ProjectID == "" || i.ProjectID == r.project()) && (i.Region == "" || i.Region == r.region())
}

func (c *Cloud) findImage(r *request, id string) (*Image, bool) {
	image, ok := c.images.get(id)
	return image, ok && r.sees(image)
}

// withImage runs f on the image that the path names.
func (c *Cloud) withImage(r *request, f func(i *Image, now time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		image, ok := c.findImage(r, r.vars["imageId"])
		if !ok {
			err = notFound("image")
			return
		}
		err = f(image, now)
	})
	return err
}

// listImages ignores the parameter all: what it adds is not documented.
func (c *Cloud) listImages(r *request) (any, *apiError) {
	if _, err := r.flag("all"); err != nil {
		return nil, err
	}
	return listed(c, r, &c.images, func(i *Image, _ time.Time) (any, map[string]string, bool) {
		return showImage(i), i.Labels, r.sees(i)
	})
}

func (c *Cloud) getImage(r *request) (view any, err *apiError) {
	err = c.withImage(r, func(i *Image, _ time.Time) *apiError {
		view = showImage(i)
		return nil
	})
	return view, err
}
