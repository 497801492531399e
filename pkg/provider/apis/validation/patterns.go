// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "regexp"

// Limits are what a JSON Schema can say of a value. The zero value says nothing.
type Limits struct {
	// Pattern is a regular expression that RE2 and ECMAScript read alike.
	Pattern string
	// MaxLength is in characters.
	MaxLength int
	// Minimum and Maximum are of a number.
	Minimum, Maximum int
	// MaxItems is of a list or an object, Unique of a list's items; KeyPattern and KeyMaxLength
	// are of an object's keys.
	MaxItems     int
	Unique       bool
	KeyPattern   string
	KeyMaxLength int
	// Values are all there are.
	Values []string
	// Unset says that an empty text is as good as none.
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

// SpecLimits are the limits of a ProviderSpec's fields, by their path; "[]" is an item of a
// list or a value of an object. Schemas are made of them.
func SpecLimits() map[string]Limits {
	name, list := like(genericName).upTo(maxGenericName), Limits{MaxItems: maxEntries}
	set := Limits{MaxItems: maxEntries, Unique: true}
	return map[string]Limits{
		"region":                      like(urlSegment).upTo(maxRegion).orUnset(),
		"machineType":                 name,
		"imageId":                     like(uuid).orUnset(),
		"labels":                      {MaxItems: maxEntries, KeyPattern: labelKey.String(), KeyMaxLength: MaxLabel},
		"labels[]":                    like(labelValue).upTo(MaxLabel),
		"networking.networkId":        like(uuid).orUnset(),
		"networking.nicIds":           set,
		"networking.nicIds[]":         like(uuid),
		"allowedAddresses":            list,
		"securityGroups":              set,
		"securityGroups[]":            name,
		"bootVolume.size":             {Minimum: 1, Maximum: maxVolumeSize},
		"bootVolume.performanceClass": name.orUnset(),
		"bootVolume.source.type":      {Values: sourceTypes, Unset: true},
		"bootVolume.source.id":        like(uuid).orUnset(),
		"volumes":                     set,
		"volumes[]":                   like(uuid),
		"keypairName":                 like(keypairName).upTo(maxGenericName),
		"affinityGroup":               like(uuid).orUnset(),
		"serviceAccountMails":         {MaxItems: maxServiceAccountMails},
		"serviceAccountMails[]":       like(serviceAccountMail).upTo(maxMail),
		"metadata":                    {MaxItems: maxEntries, KeyPattern: metadataKey.String()},
		"metadata[]":                  {Pattern: metadataLine.String(), MaxLength: maxMetadataValue},
	}
}
