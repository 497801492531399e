// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

// attachmentPayload is the body of AddVolumeToServer and UpdateAttachedVolume.
type attachmentPayload struct {
	DeleteOnTermination *bool `json:"deleteOnTermination"`
}

type attachmentView struct {
	ServerID            string `json:"serverId"`
	VolumeID            string `json:"volumeId"`
	DeleteOnTermination bool   `json:"deleteOnTermination"`
}

// volumeStates are the states of a server in which volumes are attached and detached. The
// document says only that there is a 409; the states are the mock's choice.
var volumeStates = []string{StatusActive, StatusInactive, StatusDeallocated}

func (s *server) isBootVolume(id string) bool {
	return s.BootVolume != nil && s.BootVolume.ID == id
}

func (s *server) attachment(v *Volume) attachmentView {
	view := attachmentView{ServerID: s.ID, VolumeID: v.ID, DeleteOnTermination: v.DeleteOnTermination}
	if s.isBootVolume(v.ID) {
		view.DeleteOnTermination = s.BootVolume.DeleteOnTermination
	}
	return view
}

// deletes reports whether the volume is deleted with the server.
func (s *server) deletes(v *Volume) bool {
	if s.isBootVolume(v.ID) {
		return s.BootVolume.deletedWithServer()
	}
	return v.DeleteOnTermination
}

func (c *Cloud) listAttachedVolumes(r *request) (any, *apiError) {
	views := []attachmentView{}
	err := c.withServer(r, func(s *server, _ time.Time) *apiError {
		for _, id := range s.VolumeIDs {
			if volume, ok := c.volumes.get(id); ok {
				views = append(views, s.attachment(volume))
			}
		}
		return nil
	})
	return items(views), err
}

// withAttachment runs f on the server and the volume that the path names, if the volume
// is attached to the server.
func (c *Cloud) withAttachment(r *request, f func(s *server, v *Volume, now time.Time) *apiError) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		volume, ok := c.volumes.get(r.vars["volumeId"])
		if !ok || volume.ServerID != s.ID {
			return notFound("volume attachment")
		}
		return f(s, volume, now)
	})
}

func (c *Cloud) getAttachedVolume(r *request) (view any, err *apiError) {
	err = c.withAttachment(r, func(s *server, v *Volume, _ time.Time) *apiError {
		view = s.attachment(v)
		return nil
	})
	return view, err
}

// addVolumeToServer attaches the volume at once.
func (c *Cloud) addVolumeToServer(r *request) (view any, err *apiError) {
	var payload attachmentPayload
	if err := r.decodeOptional("AddVolumeToServerPayload", schema.Attachment, &payload); err != nil {
		return nil, err
	}
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		volume, err := c.volumeOf(r)
		if err != nil {
			return err
		}
		if !slices.Contains(volumeStates, s.stateAt(now).status) || volume.Status != VolumeAvailable {
			// Source: the document: 409 of AddVolumeToServer; the states are the mock's choice.
			return conflict()
		}
		volume.ServerID, volume.Status, volume.UpdatedAt = s.ID, VolumeAttached, now
		volume.DeleteOnTermination = payload.DeleteOnTermination != nil && *payload.DeleteOnTermination
		s.VolumeIDs, s.UpdatedAt = withItem(s.VolumeIDs, volume.ID), now
		view = s.attachment(volume)
		return nil
	})
	return view, err
}

func (c *Cloud) updateAttachedVolume(r *request) (view any, err *apiError) {
	var payload attachmentPayload
	if err := r.decode("UpdateAttachedVolumePayload", schema.Attachment, &payload); err != nil {
		return nil, err
	}
	err = c.withAttachment(r, func(s *server, v *Volume, now time.Time) *apiError {
		if payload.DeleteOnTermination != nil {
			s.keepOrDelete(v, *payload.DeleteOnTermination)
			s.UpdatedAt = now
		}
		view = s.attachment(v)
		return nil
	})
	return view, err
}

func (s *server) keepOrDelete(v *Volume, deleteOnTermination bool) {
	if !s.isBootVolume(v.ID) {
		v.DeleteOnTermination = deleteOnTermination
		return
	}
	boot := *s.BootVolume
	boot.DeleteOnTermination = deleteOnTermination
	s.BootVolume = &boot
}

// removeVolumeFromServer never detaches the boot volume, as in OpenStack.
func (c *Cloud) removeVolumeFromServer(r *request) (any, *apiError) {
	return nil, c.withAttachment(r, func(s *server, v *Volume, now time.Time) *apiError {
		if !slices.Contains(volumeStates, s.stateAt(now).status) || s.isBootVolume(v.ID) {
			// Source: the document: 409 of RemoveVolumeFromServer; the states are the mock's choice.
			return conflict()
		}
		v.detach(now)
		s.VolumeIDs, s.UpdatedAt = withoutItem(s.VolumeIDs, v.ID), now
		return nil
	})
}

// detach makes the volume AVAILABLE, attached to no server.
func (v *Volume) detach(now time.Time) {
	v.ServerID, v.Status, v.UpdatedAt, v.DeleteOnTermination = "", VolumeAvailable, now, false
}

// withItem returns a new list with the item at its end.
func withItem(list []string, item string) []string {
	return append(slices.Clip(slices.Clone(list)), item)
}

// withoutItem returns a new list without the item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == item })
}
