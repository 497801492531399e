// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/netip"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ValidateProviderSpec checks a spec whose defaults are set. All errors are
// returned, each with the path of its field.
func ValidateProviderSpec(spec *apis.ProviderSpec, path *field.Path) field.ErrorList {
	errs := ValidateRegion(spec.Region, path.Child("region"))
	errs = append(errs, requiredName(spec.MachineType, path.Child("machineType"), "the name of a machine type")...)
	errs = append(errs, optionalUUID(spec.ImageID, path.Child("imageId"))...)
	errs = append(errs, ValidateLabels(spec.Labels, path.Child("labels"))...)
	errs = append(errs, validateNetworking(spec.Networking, path.Child("networking"))...)
	errs = append(errs, validateAllowedAddresses(spec.AllowedAddresses, path.Child("allowedAddresses"))...)
	errs = append(errs, unique(spec.SecurityGroups, path.Child("securityGroups"), validateSecurityGroup)...)
	errs = append(errs, validateUserData(spec.UserData, path.Child("userData"))...)
	errs = append(errs, validateBoot(spec, path)...)
	errs = append(errs, unique(spec.Volumes, path.Child("volumes"), requiredUUID)...)
	errs = append(errs, validateKeypairName(spec.KeypairName, path.Child("keypairName"))...)
	errs = append(errs, optionalUUID(spec.AffinityGroup, path.Child("affinityGroup"))...)
	errs = append(errs, validateServiceAccountMails(spec.ServiceAccountMails, path.Child("serviceAccountMails"))...)
	errs = append(errs, validateMetadata(spec.Metadata, path.Child("metadata"))...)
	return errs
}

// ValidateRegion checks the region that is used, from wherever it came.
func ValidateRegion(region string, path *field.Path) field.ErrorList {
	if region == "" {
		return field.ErrorList{field.Required(path, `set it here or as "region" in the Secret, e.g. eu01`)}
	}
	// The API takes any string; but it is part of every URL. The value may come from
	// the Secret and is not shown.
	if !urlSegment.MatchString(region) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a region such as eu01, here and in the Secret")}
	}
	return nil
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
		if !isAddress(address) {
			errs = append(errs, field.Invalid(path.Index(i), address, "must be an IP address or a CIDR, e.g. 100.64.0.0/12"))
		}
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

// maxUserData is the longest userData, in bytes before base64. The API document names no limit; Nova
// below it takes 64 KiB of base64.
const maxUserData = 256 << 10

// validateUserData does not show the value: it may hold secrets.
func validateUserData(userData string, path *field.Path) field.ErrorList {
	if len(userData) <= maxUserData {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{},
		fmt.Sprintf("has %d bytes, here or in the Secret, must have at most %d", len(userData), maxUserData))}
}

func validateKeypairName(name string, path *field.Path) field.ErrorList {
	if name == "" || (len(name) <= maxGenericName && keypairName.MatchString(name)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
		"must be at most %d letters, digits, '@', '.', '_' and '-'", maxGenericName))}
}

// maxServiceAccountMails and the length of one are schema rules of
// ServiceAccountMailsList.
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
		if utf8.RuneCountInString(mail) > maxMail || !serviceAccountMail.MatchString(mail) {
			errs = append(errs, field.Invalid(path.Index(i), mail, "must be the mail address of a service account"))
		}
	}
	return errs
}
