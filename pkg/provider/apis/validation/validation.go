// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the values that package apis decodes. Its rules are the IaaS API's own
// schema rules (document version 2), not narrower ones, so that future machine types, zones and
// regions pass.
package validation

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// ValidateProviderSpec checks a spec after SetDefaults. It returns all errors, each with the path
// of its field.
func ValidateProviderSpec(spec *apis.ProviderSpec, path *field.Path) field.ErrorList {
	rest := *spec
	rest.Region, rest.Labels, rest.Networking, rest.UserData = "", nil, nil, ""
	if boot := spec.BootVolume; boot != nil && hasImageAsSource(spec) { // then imageId has its errors
		rest.BootVolume = &apis.BootVolume{Size: boot.Size, PerformanceClass: boot.PerformanceClass}
	}
	return slices.Concat(
		ValidateRegion(spec.Region, path.Child("region")),
		checkLimits(rest, "", path),
		ValidateLabels(spec.Labels, path.Child("labels")),
		ValidateNetworking(spec.Networking, path.Child("networking")),
		validateAllowedAddresses(spec.AllowedAddresses, path.Child("allowedAddresses")),
		apis.CheckLength(len(spec.UserData), apis.MaxUserData, path.Child("userData")),
		validateBoot(spec, path),
		validateFallbacks(spec, path.Child("fallbacks")),
	)
}

// maxRegion is far longer than any region; the region is part of every URL.
const maxRegion = 63

// ValidateRegion checks the region in use, which is from the spec or the Secret.
func ValidateRegion(region string, path *field.Path) field.ErrorList {
	switch {
	case region == "":
		return field.ErrorList{field.Required(path, `set it here or as "region" in the Secret, e.g. eu01`)}
	case len(region) > maxRegion:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("has %d bytes: must have at most %d, set here or in the Secret", len(region), maxRegion))}
	default:
		return check(region, "region", path)
	}
}

// ValidateLabels checks the labels of a server. No key may have the prefix stackit-, which STACKIT
// reserves, and no cluster label may be empty: a template without the cluster's name renders the same
// empty value for every cluster, and all their servers would seem to belong to one cluster.
func ValidateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	errs := checkLimits(labels, "labels", path)
	if len(labels) > maxEntries {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, "stackit-") {
			errs = append(errs, field.Forbidden(path.Key(key), "the prefix stackit- is reserved by STACKIT: use another one"))
		}
		if strings.HasSuffix(key, "/cluster") && labels[key] == "" {
			errs = append(errs, field.Required(path.Key(key), "identifies the cluster that owns the servers: must not be empty"))
		}
	}
	return errs
}

// ValidateNetworking checks the networking in use, whose networkId may be from the Secret.
func ValidateNetworking(networking *apis.Networking, path *field.Path) field.ErrorList {
	if networking == nil || (networking.NetworkID == "" && len(networking.NICIDs) == 0) {
		return field.ErrorList{field.Required(path, `set networkId or nicIds, or "networkId" in the Secret`)}
	}
	if networking.NetworkID != "" && len(networking.NICIDs) > 0 {
		return field.ErrorList{field.Forbidden(path, "networkId and nicIds exclude each other: set one")}
	}
	return checkLimits(networking, "networking", path)
}

func validateAllowedAddresses(addresses []string, path *field.Path) (errs field.ErrorList) {
	if len(addresses) > maxEntries { // has an error
		return nil
	}
	for i, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			_, err = netip.ParsePrefix(text)
		}
		if err != nil || address.Zone() != "" {
			errs = append(errs, field.Invalid(path.Index(i), text, "must be an IP address or a CIDR, e.g. 100.64.0.0/12"))
		}
	}
	return errs
}

// hasImageAsSource reports whether the source of the boot volume is the spec's imageId.
func hasImageAsSource(spec *apis.ProviderSpec) bool {
	source := spec.BootVolume.Source
	return spec.ImageID != "" && source != nil && source.Type == apis.SourceImage && source.ID == spec.ImageID
}

// validateBoot checks imageId and bootVolume together.
func validateBoot(spec *apis.ProviderSpec, path *field.Path) (errs field.ErrorList) {
	boot := spec.BootVolume
	if spec.ImageID == "" && (boot == nil || boot.Source == nil) {
		errs = append(errs, field.Required(path.Child("imageId"), "set imageId or bootVolume.source"))
	}
	if boot == nil {
		return errs
	}
	if spec.ImageID != "" && !hasImageAsSource(spec) {
		errs = append(errs, field.Forbidden(path.Child("imageId"), "differs from bootVolume.source: set only one of them"))
	}
	isVolume := boot.Source != nil && boot.Source.Type == apis.SourceVolume
	if boot.Size == nil && !isVolume { // the API answers 400
		errs = append(errs, field.Required(path.Child("bootVolume", "size"),
			"must be 1 to 16000 (gigabytes): a disk created from an image or snapshot needs a size"))
	}
	if isVolume && boot.DeleteOnTermination != nil && *boot.DeleteOnTermination {
		errs = append(errs, field.Forbidden(path.Child("bootVolume", "deleteOnTermination"),
			"true would destroy the existing volume together with its server: leave this field out"))
	}
	return errs
}

func validateFallbacks(spec *apis.ProviderSpec, path *field.Path) (errs field.ErrorList) {
	for i, fallback := range spec.Fallbacks[:min(len(spec.Fallbacks), limits["fallbacks"].MaxItems)] {
		if fallback == (apis.Choice{}) {
			errs = append(errs, field.Required(path.Index(i), "set machineType, availabilityZone or both"))
		}
		if fallback.AvailabilityZone != "" && spec.IsExclusive() {
			errs = append(errs, field.Forbidden(path.Index(i).Child("availabilityZone"),
				"the class's nicIds, volumes or bootVolume.source of type volume are bound to one zone: leave this field out"))
		}
	}
	return errs
}

// ValidateMachineName checks the name of a Machine or MachineClass, which becomes a label of the
// server; a Machine's becomes the server's name, too. The API refuses longer names.
func ValidateMachineName(name string, path *field.Path) field.ErrorList {
	if problems := validation.IsValidLabelValue(name); name == "" || len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, "becomes a label of the server: must be 1 to 63 letters, digits, "+
			"'-' and '.'; shorten the name of the Machine, MachineDeployment or MachineClass")}
	}
	return nil
}

// IsUUID reports whether text is a UUID in lower case, the API's form.
func IsUUID(text string) bool { return uuid.Pattern.MatchString(text) }

// ValidateSecret checks the fields of a Secret that every driver call needs. It does not check the
// content of the service-account key or of the workload identity's token: package spi does. No error
// shows a value: it may be a key in the wrong field.
func ValidateSecret(secret *apis.Secret, path *field.Path) (errs field.ErrorList) {
	if secret.ProjectID == "" {
		errs = append(errs, field.Required(path.Child(apis.SecretProjectID), "must be the UUID of the STACKIT project"))
	} else if !IsUUID(secret.ProjectID) {
		errs = append(errs, field.Invalid(path.Child(apis.SecretProjectID), field.OmitValueType{}, uuidRule))
	}
	email := path.Child(apis.SecretServiceAccountEmail)
	switch {
	case !secret.HasIdentity():
		return errs
	case secret.ServiceAccountKey != "":
		values := []string{secret.ServiceAccountEmail, secret.Token}
		for i, key := range apis.SecretIdentity {
			if values[i] != "" {
				errs = append(errs, field.Forbidden(path.Child(key),
					"must not be set beside "+apis.SecretServiceAccountKey+": remove one of the two"))
			}
		}
		return errs
	case secret.ServiceAccountEmail == "":
		errs = append(errs, field.Required(email,
			"must be the email address of the service account that trusts the workload identity"))
	case len(check(secret.ServiceAccountEmail, "serviceAccountMails[]", email)) > 0:
		errs = append(errs, field.Invalid(email, field.OmitValueType{}, limits["serviceAccountMails[]"].rule))
	}
	if secret.Token == "" {
		errs = append(errs, field.Required(path.Child(apis.SecretToken), "must be the workload identity's token"))
	}
	return errs
}
