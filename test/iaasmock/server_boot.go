// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

// maxVolumeSize is in GB.
const maxVolumeSize = 16000

// sourceVolume is the source type of a server that boots from an existing volume.
const sourceVolume = "volume"

// resolveBoot decides what the server boots from: an image on the machine
// type's own disk, or a volume. With both, the imageId is the boot volume's source
// unless that has one of its own: a driver in production sends both so.
func (o *serverOrder) resolveBoot() *apiError {
	boot, imageID := o.payload.BootVolume, o.payload.ImageID
	switch {
	case imageID != "" && boot != nil && o.cloud.limits.oneBootDevice:
		return badRequest("imageId and bootVolume exclude each other")
	case imageID != "" && boot == nil:
		_, err := o.cloud.imageOf(o.request, imageID)
		o.server.ImageID = imageID
		return err
	case imageID != "" && boot.Source == nil:
		boot.Source = &sourcePayload{Type: "image", ID: imageID}
	}
	if boot == nil || boot.Source == nil {
		return badRequest("boot device is missing: either imageId or bootVolume.source is required")
	}
	o.server.BootVolume = &BootVolume{
		Size: boot.Size, PerformanceClass: boot.PerformanceClass, DeleteOnTermination: boot.DeleteOnTermination,
		SourceType: boot.Source.Type, SourceID: boot.Source.ID,
	}
	if boot.Source.Type == sourceVolume {
		return o.bootFromVolume(boot.Source.ID)
	}
	return o.bootFromNewVolume()
}

func (o *serverOrder) bootFromVolume(id string) *apiError {
	volume, err := o.cloud.volumeOf(o.request, id)
	if err != nil {
		return err
	}
	if volume.ServerID != "" {
		return conflict()
	}
	if !volume.Bootable {
		return badRequest("Block Device %s is not bootable.", id)
	}
	o.boot, o.server.BootVolume.ID = volume, id
	o.server.BootVolume.Size, o.server.BootVolume.PerformanceClass = volume.Size, volume.PerformanceClass
	return nil
}

func (o *serverOrder) bootFromNewVolume() *apiError {
	boot := o.server.BootVolume
	if err := o.cloud.checkPerformanceClass(boot.PerformanceClass); err != nil {
		return err
	}
	minimum, err := o.cloud.sourceSize(o.request, boot.SourceType, boot.SourceID)
	if err != nil {
		return err
	}
	if boot.Size < max(minimum, 1) || boot.Size > maxVolumeSize {
		return badRequest("boot device size is not valid or missing")
	}
	boot.ID, o.bootIsNew = o.cloud.newID(), true
	o.boot = &Volume{
		ID: boot.ID, ProjectID: o.server.ProjectID, Region: o.server.Region, Bootable: true,
		Size: boot.Size, PerformanceClass: boot.PerformanceClass,
		SourceType: boot.SourceType, SourceID: boot.SourceID, MadeByServer: true,
	}
	return nil
}

// sourceSize finds what a volume is to be made from, and the size in GB that
// the volume has to have at least.
func (c *Cloud) sourceSize(r *request, kind, id string) (int64, *apiError) {
	switch kind {
	case "image":
		image, err := c.imageOf(r, id)
		return image.MinDiskSize, err
	case "snapshot":
		snapshot, err := c.snapshotOf(r, id)
		if err != nil {
			return 0, err
		}
		return snapshot.Size, nil
	case sourceVolume:
		volume, err := c.volumeOf(r, id)
		if err != nil {
			return 0, err
		}
		return volume.Size, nil
	default:
		return 0, badRequest("source type %q is not supported", kind)
	}
}
