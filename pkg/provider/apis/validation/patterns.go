// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "regexp"

// Limits holds the limits of a value in a JSON Schema. Zero fields mean no limit.
type Limits struct {
	// Pattern is a regular expression with the same meaning in RE2 and ECMAScript.
	Pattern string
	// MaxLength is the maximum length of a text, in characters.
	MaxLength int
	// Minimum and Maximum are the smallest and the largest valid number.
	Minimum, Maximum int
	// MaxItems is the maximum number of items of a list or an object. Unique forbids equal items of
	// a list. KeyPattern and KeyMaxLength limit an object's keys.
	MaxItems     int
	Unique       bool
	KeyPattern   string
	KeyMaxLength int
	// Values are the only valid values.
	Values []string
	// Unset reports whether an empty text is valid because it counts as unset.
	Unset bool
}

func like(pattern *regexp.Regexp) Limits { return Limits{Pattern: pattern.String()} }

func (l Limits) orUnset() Limits {
	l.Unset = true
	return l
}

func (l Limits) upTo(length int) Limits {
	l.MaxLength = length
	return l
}

// SpecLimits maps the path of each field of a ProviderSpec to its limits; "[]" stands for an item
// of a list or a value of an object. The schemas are generated from them.
func SpecLimits() map[string]Limits {
	name, list := like(genericName).upTo(maxGenericName), Limits{MaxItems: maxEntries}
	set := Limits{MaxItems: maxEntries, Unique: true}
	return map[string]Limits{
		"region":                       like(urlSegment).upTo(maxRegion).orUnset(),
		"machineType":                  name,
		"availabilityZone":             name.orUnset(),
		"imageId":                      like(uuid).orUnset(),
		"labels":                       {MaxItems: maxEntries, KeyPattern: labelKey.String(), KeyMaxLength: MaxLabel},
		"labels[]":                     like(labelValue).upTo(MaxLabel),
		"networking.networkId":         like(uuid).orUnset(),
		"networking.nicIds":            set,
		"networking.nicIds[]":          like(uuid),
		"allowedAddresses":             list,
		"securityGroups":               set,
		"securityGroups[]":             name,
		"bootVolume.size":              {Minimum: 1, Maximum: maxVolumeSize},
		"bootVolume.performanceClass":  name.orUnset(),
		"bootVolume.source.type":       {Values: sourceTypes, Unset: true},
		"bootVolume.source.id":         like(uuid).orUnset(),
		"volumes":                      set,
		"volumes[]":                    like(uuid),
		"fallbacks":                    {MaxItems: maxFallbacks},
		"fallbacks[].machineType":      name.orUnset(),
		"fallbacks[].availabilityZone": name.orUnset(),
		"keypairName":                  like(keypairName).upTo(maxGenericName),
		"affinityGroup":                like(uuid).orUnset(),
		"serviceAccountMails":          {MaxItems: maxServiceAccountMails},
		"serviceAccountMails[]":        like(serviceAccountMail).upTo(maxMail),
		"metadata":                     {MaxItems: maxEntries, KeyPattern: metadataKey.String()},
		"metadata[]":                   {Pattern: metadataLine.String(), MaxLength: maxMetadataValue},
	}
}
