// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the values that package apis decodes. Its rules are the IaaS API's own
// schema rules (document version 2), not narrower ones, so that future machine types, zones and
// regions pass.
package validation

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ValidateProviderSpec checks a spec after SetDefaults. It returns all errors, each with the path
// of its field.
func ValidateProviderSpec(spec *apis.ProviderSpec, path *field.Path) field.ErrorList {
	errs := ValidateRegion(spec.Region, path.Child("region"))
	errs = append(errs, requiredName(spec.MachineType, path.Child("machineType"), "the name of a machine type")...)
	errs = append(errs, optionalName(spec.AvailabilityZone, path.Child("availabilityZone"), "the name of a zone")...)
	errs = append(errs, optionalUUID(spec.ImageID, path.Child("imageId"))...)
	errs = append(errs, ValidateLabels(spec.Labels, path.Child("labels"))...)
	errs = append(errs, validateNetworking(spec.Networking, path.Child("networking"))...)
	errs = append(errs, validateAllowedAddresses(spec.AllowedAddresses, path.Child("allowedAddresses"))...)
	errs = append(errs, unique(spec.SecurityGroups, path.Child("securityGroups"), validateSecurityGroup)...)
	errs = append(errs, apis.CheckLength(len(spec.UserData), apis.MaxUserData, path.Child("userData"))...)
	errs = append(errs, validateBoot(spec, path)...)
	errs = append(errs, unique(spec.Volumes, path.Child("volumes"), requiredUUID)...)
	errs = append(errs, validateFallbacks(spec, path.Child("fallbacks"))...)
	errs = append(errs, validateKeypairName(spec.KeypairName, path.Child("keypairName"))...)
	errs = append(errs, optionalUUID(spec.AffinityGroup, path.Child("affinityGroup"))...)
	errs = append(errs, validateServiceAccountMails(spec.ServiceAccountMails, path.Child("serviceAccountMails"))...)
	errs = append(errs, validateMetadata(spec.Metadata, path.Child("metadata"))...)
	return errs
}

// ValidateRegion checks the region in use, which is from the spec or the Secret.
func ValidateRegion(region string, path *field.Path) field.ErrorList {
	if region == "" {
		return field.ErrorList{field.Required(path, `set it here or as "region" in the Secret, e.g. eu01`)}
	}
	// The API takes any string; but it is part of every URL. The value may come from
	// the Secret and is not shown.
	if len(region) > maxRegion {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("has %d bytes: must have at most %d, set here or in the Secret", len(region), maxRegion))}
	}
	return invalidUnless(urlSegment.MatchString(region), path, field.OmitValueType{},
		"must be a region such as eu01, set here or in the Secret")
}

func validateNetworking(networking *apis.Networking, path *field.Path) field.ErrorList {
	if networking == nil || (networking.NetworkID == "" && len(networking.NICIDs) == 0) {
		return field.ErrorList{field.Required(path, `set networkId or nicIds, or "networkId" in the Secret`)}
	}
	if networking.NetworkID != "" && len(networking.NICIDs) > 0 {
		return field.ErrorList{field.Forbidden(path, "networkId and nicIds exclude each other: set one")}
	}
	errs := optionalUUID(networking.NetworkID, path.Child("networkId"))
	return append(errs, unique(networking.NICIDs, path.Child("nicIds"), requiredUUID)...)
}

func validateAllowedAddresses(addresses []string, path *field.Path) field.ErrorList {
	errs := tooMany(len(addresses), path)
	if errs != nil {
		return errs
	}
	for i, address := range addresses {
		errs = append(errs, invalidUnless(isAddress(address), path.Index(i), address,
			"must be an IP address or a CIDR, e.g. 100.64.0.0/12")...)
	}
	return errs
}

func isAddress(text string) bool {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Zone() == ""
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

func validateSecurityGroup(group string, path *field.Path) field.ErrorList {
	return requiredName(group, path, "the name or UUID of a security group")
}

// maxFallbacks limits the fallbacks: a Machine has no time for more, as each may take as long as a
// boot.
const maxFallbacks = 8

func validateFallbacks(spec *apis.ProviderSpec, path *field.Path) (errs field.ErrorList) {
	if len(spec.Fallbacks) > maxFallbacks {
		return field.ErrorList{field.TooMany(path, len(spec.Fallbacks), maxFallbacks)}
	}
	choices := spec.Choices()
	for i, fallback := range spec.Fallbacks {
		at, choice := path.Index(i), choices[i+1]
		errs = append(errs, optionalName(fallback.MachineType, at.Child("machineType"), "the name of a machine type")...)
		errs = append(errs, optionalName(fallback.AvailabilityZone, at.Child("availabilityZone"), "the name of a zone")...)
		switch {
		case fallback == (apis.Choice{}):
			errs = append(errs, field.Required(at, "set machineType, availabilityZone or both"))
		case slices.Contains(choices[:i+1], choice):
			errs = append(errs, field.Invalid(at, choice.String(),
				"repeats the class's own machine type and zone or an earlier fallback: must be a new combination"))
		}
		if fallback.AvailabilityZone != "" && spec.IsExclusive() {
			errs = append(errs, field.Forbidden(at.Child("availabilityZone"),
				"the class's nicIds, volumes or bootVolume.source of type volume are bound to one zone: leave this field out"))
		}
	}
	return errs
}

func validateKeypairName(name string, path *field.Path) field.ErrorList {
	isValid := name == "" || len(name) <= maxGenericName && keypairName.MatchString(name)
	return invalidUnless(isValid, path, name, fmt.Sprintf(
		"must be at most %d letters, digits, '@', '.', '_' and '-'", maxGenericName))
}

// maxServiceAccountMails and maxMail are schema rules of ServiceAccountMailsList.
const (
	maxServiceAccountMails = 1
	maxMail                = 255
)

func validateServiceAccountMails(mails []string, path *field.Path) field.ErrorList {
	if len(mails) > maxServiceAccountMails {
		return field.ErrorList{field.TooMany(path, len(mails), maxServiceAccountMails)}
	}
	var errs field.ErrorList
	for i, mail := range mails {
		isValid := utf8.RuneCountInString(mail) <= maxMail && serviceAccountMail.MatchString(mail)
		errs = append(errs, invalidUnless(isValid, path.Index(i), mail, "must be the email address of a service account")...)
	}
	return errs
}

// maxVolumeSize is in gigabytes, from the API document's description of SizeInGB.
const maxVolumeSize = 16000

// sourceTypes are the types in the API document, and "snapshot", which is undocumented but works.
var sourceTypes = []string{apis.SourceImage, apis.SourceSnapshot, apis.SourceVolume}

// validateBoot checks imageId and bootVolume together.
func validateBoot(spec *apis.ProviderSpec, path *field.Path) field.ErrorList {
	if spec.BootVolume == nil && spec.ImageID != "" {
		return nil
	}
	if spec.BootVolume == nil || spec.BootVolume.Source == nil {
		return append(
			field.ErrorList{field.Required(path.Child("imageId"), "set imageId or bootVolume.source")},
			validateBootVolume(spec.BootVolume, path.Child("bootVolume"))...)
	}
	errs := validateBootVolume(spec.BootVolume, path.Child("bootVolume"))
	source := spec.BootVolume.Source
	if spec.ImageID == "" || (source.Type == apis.SourceImage && source.ID == spec.ImageID) {
		// A source that was derived from a wrong imageId is reported once, as the imageId.
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
	size := path.Child("size")
	switch {
	case volume.Size != nil:
		errs = append(errs, invalidUnless(*volume.Size >= 1 && *volume.Size <= maxVolumeSize, size, *volume.Size,
			"must be 1 to 16000 (gigabytes)")...)
	case volume.Source == nil || volume.Source.Type != apis.SourceVolume: // the API answers 400
		errs = append(errs, field.Required(size,
			"must be 1 to 16000 (gigabytes): a disk created from an image or snapshot needs a size"))
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
			"true would destroy the existing volume together with its server: leave this field out"))
	}
	return errs
}

// Patterns and lengths of the IaaS API's schemas of the same names.
var (
	uuid        = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	genericName = regexp.MustCompile(`^[A-Za-z0-9]+([ /._-]*[A-Za-z0-9]+)*$`)
	keypairName = regexp.MustCompile(`^[A-Za-z0-9@._-]*$`)
	urlSegment  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	serverName  = regexp.MustCompile(`^(([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])\.)*` +
		`([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])$`)
	serviceAccountMail = regexp.MustCompile(`[a-z0-9-]+(?:\.[a-z0-9]+)*@` +
		`(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`)
)

const (
	maxGenericName = 127
	maxServerName  = 63
	// maxRegion is far longer than any region; the region is part of every URL.
	maxRegion = 63
)

const uuidRule = "must be a UUID in lower case, e.g. d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// IsUUID reports whether text is a UUID in lower case, the API's form.
func IsUUID(text string) bool {
	return uuid.MatchString(text)
}

// invalidUnless returns an error about a value unless it is valid. rule describes valid values.
func invalidUnless(isValid bool, path *field.Path, value any, rule string) field.ErrorList {
	if isValid {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, rule)}
}

func requiredUUID(text string, path *field.Path) field.ErrorList {
	return invalidUnless(IsUUID(text), path, text, uuidRule)
}

func optionalUUID(text string, path *field.Path) field.ErrorList {
	return invalidUnless(text == "" || IsUUID(text), path, text, uuidRule)
}

// maxEntries is the maximum length of a list, and of labels and metadata. The API document limits
// only serviceAccountMails, but no server has nearly as many. A MachineClass may have a megabyte,
// and every call checks it.
const maxEntries = 256

// tooMany returns an error for a list that is too long; its items need no check then.
func tooMany(length int, path *field.Path) field.ErrorList {
	if length > maxEntries {
		return field.ErrorList{field.TooMany(path, length, maxEntries)}
	}
	return nil
}

// unique checks the items of a list. The API refuses duplicates: "Duplicate items in the list".
func unique(list []string, path *field.Path, check func(string, *field.Path) field.ErrorList) field.ErrorList {
	errs := tooMany(len(list), path)
	if errs != nil {
		return errs
	}
	seen := make(map[string]bool, len(list))
	for i, text := range list {
		if seen[text] {
			errs = append(errs, field.Duplicate(path.Index(i), text))
			continue
		}
		seen[text] = true
		errs = append(errs, check(text, path.Index(i))...)
	}
	return errs
}

func requiredName(name string, path *field.Path, what string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be "+what)}
	}
	return optionalName(name, path, what)
}

func optionalName(name string, path *field.Path, what string) field.ErrorList {
	isValid := name == "" || len(name) <= maxGenericName && genericName.MatchString(name)
	return invalidUnless(isValid, path, name, fmt.Sprintf(
		"must be %s: at most %d letters, digits and ' /._-' between them", what, maxGenericName))
}
