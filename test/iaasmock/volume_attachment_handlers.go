// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

type attachmentView struct {
	ServerID            string `json:"serverId"`
	VolumeID            string `json:"volumeId"`
	DeleteOnTermination bool   `json:"deleteOnTermination"`
}

func (s *server) attachment(v *Volume) attachmentView {
	view := attachmentView{ServerID: s.ID, VolumeID: v.ID, DeleteOnTermination: v.DeleteOnTermination}
	if s.isBootVolume(v.ID) {
		view.DeleteOnTermination = s.BootVolume.DeleteOnTermination
	}
	return view
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
