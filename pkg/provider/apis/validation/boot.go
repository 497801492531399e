// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// maxVolumeSize in gigabytes, by the API document's description of SizeInGB.
const maxVolumeSize = 16000

// sourceTypes are those of the API's document and "snapshot", which it does not
// list but the cloud takes.
var sourceTypes = []string{apis.SourceImage, apis.SourceSnapshot, apis.SourceVolume}

// validateBoot checks what the server boots from: imageId and bootVolume together.
func validateBoot(spec *apis.ProviderSpec, path *field.Path) field.ErrorList {
	if spec.BootVolume == nil || spec.BootVolume.Source == nil {
		return append(
			field.ErrorList{field.Required(path.Child("imageId"), "set imageId or bootVolume.source")},
			validateBootVolume(spec.BootVolume, path.Child("bootVolume"))...)
	}
	errs := validateBootVolume(spec.BootVolume, path.Child("bootVolume"))
	source := spec.BootVolume.Source
	if spec.ImageID == "" || (source.Type == apis.SourceImage && source.ID == spec.ImageID) {
		// A source that was made from a wrong imageId is told once, as the imageId.
		return slices.DeleteFunc(errs, func(err *field.Error) bool {
			return spec.ImageID != "" && err.Field == path.Child("bootVolume", "source", "id").String()
		})
	}
	return append(errs, field.Forbidden(path.Child("imageId"), "differs from bootVolume.source: set only one of them"))
}

func validateBootVolume(volume *apis.BootVolume, path *field.Path) field.ErrorList {
	if volume == nil {
		return nil
	}
	errs := optionalName(volume.PerformanceClass, path.Child("performanceClass"), "the name of a performance class")
	if volume.Size != nil && (*volume.Size < 1 || *volume.Size > maxVolumeSize) {
		errs = append(errs, field.Invalid(path.Child("size"), *volume.Size, "must be 1 to 16000 (gigabytes)"))
	}
	if volume.Source == nil {
		return errs
	}
	source := path.Child("source")
	if !slices.Contains(sourceTypes, volume.Source.Type) {
		errs = append(errs, field.NotSupported(source.Child("type"), volume.Source.Type, sourceTypes))
	} else if volume.Source.ID == "" {
		errs = append(errs, field.Required(source.Child("id"), uuidRule))
	} else {
		errs = append(errs, requiredUUID(volume.Source.ID, source.Child("id"))...)
	}
	if volume.Source.Type == apis.SourceVolume && volume.DeleteOnTermination != nil && *volume.DeleteOnTermination {
		errs = append(errs, field.Forbidden(path.Child("deleteOnTermination"),
			"true would destroy the existing volume of source.type volume with its server: leave it out"))
	}
	return errs
}
