// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "fmt"

// resolveBoot finds what the server boots from: an image on the machine type's own disk,
// or a volume. With both, imageId is the boot volume's source unless that has its own: a
// driver in production sends both.
func (o *serverCreation) resolveBoot() *apiError {
	boot, imageID := o.payload.BootVolume, o.payload.ImageID
	if imageID != "" && boot == nil {
		o.server.ImageID = imageID
		_, problem, err := o.cloud.sourceSize(o.request, sourceImage, imageID)
		if problem != "" {
			o.fail(problem)
		}
		return err
	}
	if imageID != "" {
		if err := o.cloud.unconfirmed(badRequest("imageId and bootVolume exclude each other")); err != nil {
			return err
		}
		if boot.Source == nil {
			boot.Source = &sourcePayload{Type: sourceImage, ID: imageID}
		}
	}
	if boot == nil || boot.Source == nil {
		return o.cannot("boot device is missing.",
			badRequest("boot device is missing: either imageId or bootVolume.source is required"))
	}
	switch boot.Source.Type {
	case sourceVolume:
		return o.bootFromVolume(boot)
	case sourceImage, sourceSnapshot:
		return o.bootFromNewVolume(boot)
	default:
		// Source: the document: possible values of BootVolumeSourceTypes; that there are
		// snapshots as well is from the public STACKIT provider for machine-controller-manager.
		return badRequest("source type %q is not supported", boot.Source.Type)
	}
}

func (o *serverCreation) bootFromVolume(boot *bootVolumePayload) *apiError {
	id := boot.Source.ID
	volume, ok := found(o.request, &o.cloud.volumes, id)
	switch {
	case !ok:
		return o.cannot("volume "+id+" not found.", noSuch("volume"))
	case volume.Status != VolumeAvailable:
		return o.cannot("volume "+id+" is not available.", conflict())
	case !volume.Bootable:
		return o.cannot("Block Device "+id+" is not bootable.", badRequest("Block Device %s is not bootable.", id))
	}
	o.boot = volume
	o.server.BootVolume = &BootVolume{
		ID: id, Size: volume.Size, PerformanceClass: volume.PerformanceClass,
		DeleteOnTermination: boot.DeleteOnTermination, SourceType: sourceVolume, SourceID: id,
	}
	return nil
}

func (o *serverCreation) bootFromNewVolume(boot *bootVolumePayload) *apiError {
	if boot.Size < 1 || boot.Size > maxVolumeSize {
		// Source: clients of STACKIT have seen a 400 with this message; the document:
		// CreateVolumePayload's description has the largest size.
		return badRequest("boot device size is not valid or missing")
	}
	if err := o.cloud.checkPerformanceClass(boot.PerformanceClass); err != nil {
		return err
	}
	minimum, problem, err := o.cloud.sourceSize(o.request, boot.Source.Type, boot.Source.ID)
	switch {
	case err != nil:
		return err
	case problem != "":
		o.fail(problem)
		return nil
	case boot.Size < minimum:
		return o.cannot(fmt.Sprintf("a volume of %d GB is too small for its source.", boot.Size),
			badRequest("boot device size is not valid or missing"))
	}
	o.bootIsNew = true
	o.boot = &Volume{
		ID: o.cloud.newID(), ProjectID: o.server.ProjectID, Region: o.server.Region, Bootable: true,
		Size: boot.Size, PerformanceClass: boot.PerformanceClass,
		SourceType: boot.Source.Type, SourceID: boot.Source.ID, MadeByServer: true,
	}
	if o.request.fault.OwnBootVolume {
		o.boot.Name, boot.DeleteOnTermination = "boot-volume-"+o.boot.ID[:8], false
	}
	o.server.BootVolume = &BootVolume{
		ID: o.boot.ID, Size: boot.Size, PerformanceClass: boot.PerformanceClass,
		DeleteOnTermination: boot.DeleteOnTermination, SourceType: boot.Source.Type, SourceID: boot.Source.ID,
	}
	return nil
}
