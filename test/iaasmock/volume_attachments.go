// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"
)

type attachmentView struct {
	ServerID            string `json:"serverId"`
	VolumeID            string `json:"volumeId"`
	DeleteOnTermination bool   `json:"deleteOnTermination"`
}

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

// detach makes the volume AVAILABLE, attached to no server.
func (v *Volume) detach(now time.Time) {
	v.ServerID, v.Status, v.UpdatedAt, v.DeleteOnTermination = "", VolumeAvailable, now, false
}

// withoutItem returns a new list without the item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == item })
}
