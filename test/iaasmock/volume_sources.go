// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "slices"

// checkPerformanceClass accepts any name if the catalogue has no classes. It refuses an
// unknown class only WithUnconfirmedRefusals: STACKIT was seen to use another class
// instead, without a message (terraform-provider-stackit issue 1004).
func (c *Cloud) checkPerformanceClass(name string) *apiError {
	if name == "" || len(c.catalogue.PerformanceClasses) == 0 {
		return nil
	}
	if slices.ContainsFunc(c.catalogue.PerformanceClasses, func(p PerformanceClass) bool { return p.Name == name }) {
		return nil
	}
	return c.unconfirmed(noSuch(kindPerformanceClass.what))
}

// maxVolumeSize is in GB.
const maxVolumeSize = 16000

// volumeSources are the sources that the document names for CreateVolume.
var volumeSources = []string{sourceImage, sourceVolume, sourceSnapshot, sourceBackup}

// sourceSize finds the source of a volume and returns the smallest size of the volume in
// GB. problem says why no volume can be made from it.
func (c *Cloud) sourceSize(r *request, kind, id string) (size int64, problem string, err *apiError) {
	var exists, broken bool
	switch kind {
	case sourceImage:
		var s shelved
		s, exists = c.shelved(r, kindImage, id)
		image, _ := s.of.(Image)
		if exists && image.Status != ImageAvailable {
			return 0, "Image " + id + " is not active.", c.unconfirmed(badRequest("Image %s is not active.", id))
		}
		size = image.MinDiskSize
	case sourceSnapshot:
		var s shelved
		s, exists = c.shelved(r, kindSnapshot, id)
		snapshot, _ := s.of.(Snapshot)
		size, broken = snapshot.Size, snapshot.Status == SnapshotError
	case sourceVolume:
		var volume *Volume
		if volume, exists = found(r, &c.volumes, id); exists {
			size, broken = volume.Size, volume.Status == VolumeError
		}
	}
	switch {
	case !exists:
		return 0, kind + " " + id + " not found.", c.unconfirmed(noSuch(kind))
	case broken:
		return size, kind + " " + id + " is in ERROR.", nil
	default:
		return size, "", nil
	}
}

type sourcePayload struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}
