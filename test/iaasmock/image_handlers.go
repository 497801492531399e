// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"crypto/sha512"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// diskFormats are the formats that the document names.
var diskFormats = []string{"raw", "qcow2", "iso"}

// imagePayload is the body of CreateImage and UpdateImage.
type imagePayload struct {
	Name        *string        `json:"name"`
	DiskFormat  *string        `json:"diskFormat"`
	MinDiskSize *int64         `json:"minDiskSize"`
	MinRAM      *int64         `json:"minRam"`
	Protected   *bool          `json:"protected"`
	Config      map[string]any `json:"config"`
	Agent       map[string]any `json:"agent"`
	Labels      map[string]any `json:"labels"`
}

type imageView struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	DiskFormat  string             `json:"diskFormat"`
	MinDiskSize int64              `json:"minDiskSize"`
	MinRAM      int64              `json:"minRam"`
	Owner       string             `json:"owner,omitempty"`
	Scope       string             `json:"scope"`
	Status      string             `json:"status"`
	Protected   bool               `json:"protected"`
	Config      map[string]any     `json:"config,omitempty"`
	Agent       map[string]any     `json:"agent,omitempty"`
	Size        int64              `json:"size,omitempty"`
	Checksum    *imageChecksumView `json:"checksum,omitempty"`
	Labels      map[string]string  `json:"labels"`
	CreatedAt   time.Time          `json:"createdAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
}

type imageChecksumView struct {
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`
}

type imageCreatedView struct {
	ID        string `json:"id"`
	UploadURL string `json:"uploadUrl"`
}

func showImage(i *Image) imageView {
	view := imageView{
		ID: i.ID, Name: i.Name, DiskFormat: i.DiskFormat, MinDiskSize: i.MinDiskSize, MinRAM: i.MinRAM,
		Owner: i.ProjectID, Scope: "public", Status: i.Status, Protected: i.Protected, Config: i.Config, Agent: i.Agent,
		Size: i.Size, Labels: orEmptyMap(i.Labels), CreatedAt: i.CreatedAt.UTC(), UpdatedAt: i.UpdatedAt.UTC(),
	}
	if i.ProjectID != "" {
		view.Scope = "local"
	}
	if i.SHA512 != "" {
		view.Checksum = &imageChecksumView{Algorithm: "sha512", Digest: i.SHA512}
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

// withOwnImage is withImage for changes, which only the image's project may make.
func (c *Cloud) withOwnImage(r *request, f func(i *Image, now time.Time) *apiError) *apiError {
	return c.withImage(r, func(i *Image, now time.Time) *apiError {
		if i.ProjectID != r.project() { // by the document, it has to be inside the project
			return forbidden()
		}
		return f(i, now)
	})
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

// createImage makes an image without content. It is CREATING until its content is
// uploaded.
func (c *Cloud) createImage(r *request) (view any, err *apiError) {
	var payload imagePayload
	if err := r.decode("CreateImagePayload", schema.CreateImage, &payload); err != nil {
		return nil, err
	}
	c.locked(func(now time.Time) {
		image := &Image{ID: c.ids.uuid(), ProjectID: r.project(), Region: r.region(), Status: ImageCreating, CreatedAt: now}
		if err = c.changeImage(image, payload, now); err != nil {
			return
		}
		secret := c.ids.uuid()
		c.images.put(image.ID, image)
		c.uploads[secret] = image
		view = imageCreatedView{ID: image.ID, UploadURL: uploadURL(r.Request, secret)}
	})
	return view, err
}

func (c *Cloud) updateImage(r *request) (view any, err *apiError) {
	var payload imagePayload
	if err := r.decode("UpdateImagePayload", schema.UpdateImage, &payload); err != nil {
		return nil, err
	}
	err = c.withOwnImage(r, func(i *Image, now time.Time) *apiError {
		if err := c.changeImage(i, payload, now); err != nil {
			return err
		}
		view = showImage(i)
		return nil
	})
	return view, err
}

// changeImage sets the fields that the payload has. On error nothing is changed.
func (c *Cloud) changeImage(i *Image, payload imagePayload, now time.Time) *apiError {
	labels, err := mergeLabels(i.Labels, payload.Labels)
	if err != nil {
		return err
	}
	for _, size := range []*int64{payload.MinDiskSize, payload.MinRAM} {
		if size != nil && *size < 0 {
			if err := c.unconfirmed(badRequest("minDiskSize and minRam must not be negative")); err != nil {
				return err
			}
		}
	}
	if payload.DiskFormat != nil {
		if !slices.Contains(diskFormats, *payload.DiskFormat) {
			// Source: the document: possible values of DiskFormat.
			return badRequest("disk format %q is not supported", *payload.DiskFormat)
		}
		i.DiskFormat = *payload.DiskFormat
	}
	i.Labels, i.UpdatedAt = labels, now
	set(&i.Name, payload.Name)
	set(&i.MinDiskSize, payload.MinDiskSize)
	set(&i.MinRAM, payload.MinRAM)
	set(&i.Protected, payload.Protected)
	if payload.Config != nil {
		i.Config = schema.ImageConfig.Known(payload.Config)
	}
	if payload.Agent != nil {
		i.Agent = schema.ImageAgent.Known(payload.Agent)
	}
	return nil
}

// set sets a field if value is not nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// deleteImage deletes the image; volumes made from it stay.
func (c *Cloud) deleteImage(r *request) (any, *apiError) {
	return nil, c.withOwnImage(r, func(i *Image, _ time.Time) *apiError {
		if i.Protected {
			// Source: the document: ImageProtected's description; the 403 is the mock's choice.
			return newError(http.StatusForbidden, "Image %s is protected and cannot be deleted.", i.ID)
		}
		c.images.remove(i.ID)
		for secret, image := range c.uploads {
			if image == i {
				delete(c.uploads, secret)
			}
		}
		return nil
	})
}

// uploadPath is the path of every uploadUrl, without the secret. It is outside the API:
// on STACKIT it is in the object storage.
const uploadPath = "/upload/"

// uploadURL has the host by which the client has reached the API.
func uploadURL(r *http.Request, secret string) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + uploadPath + secret
}

// serveUpload receives the content of an image, which is AVAILABLE then. The mock keeps
// only its size and checksum.
func (c *Cloud) serveUpload(w http.ResponseWriter, r *http.Request) {
	secret := strings.TrimPrefix(r.URL.Path, uploadPath)
	known := false
	c.locked(func(time.Time) { _, known = c.uploads[secret] })
	if !known {
		// Source: RFC 9110, 15.5.5: there is no such address, or no more.
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPut {
		// Source: RFC 9110, 15.5.6.
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	sum := sha512.New()
	size, err := io.Copy(sum, r.Body)
	if err != nil {
		// Source: none; the client has disconnected, there is nothing to accept.
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.locked(func(now time.Time) {
		image, still := c.uploads[secret]
		if !still { // deleted meanwhile
			return
		}
		image.Status, image.Size, image.SHA512, image.UpdatedAt = ImageAvailable, size, hex.EncodeToString(sum.Sum(nil)), now
		delete(c.uploads, secret)
	})
	w.WriteHeader(http.StatusOK)
}
