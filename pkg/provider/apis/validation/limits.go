// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Limits holds the limits of a value, for its check and for JSON Schemas. Zero fields mean no limit.
type Limits struct {
	// Pattern has the same meaning in RE2 and ECMAScript. A value with a pattern must be a text, number or boolean.
	Pattern *regexp.Regexp
	// MaxLength is the maximum length of a text, in characters.
	MaxLength int
	// Minimum and Maximum are the smallest and the largest valid number.
	Minimum, Maximum int
	// MaxItems is the maximum number of items of a list or an object.
	MaxItems int
	// Keys are the limits of an object's keys, if they are the operator's own.
	Keys *Limits
	// Values are the only valid values.
	Values []string
	// Unset reports whether an empty text is valid because it counts as unset.
	Unset bool

	// rule tells the user what is valid.
	rule string
	// isHidden reports whether errors do not show the value, as it may be from the Secret or confidential.
	isHidden bool
}

const (
	// MaxLabel is the maximum length of a label's key and value, in bytes. The API document describes
	// labels in prose only, and without the slash in keys that servers carry in practice.
	MaxLabel = 63
	// maxEntries is the maximum length of a list, and of labels and metadata. The API document limits
	// only serviceAccountMails, but no server has nearly as many. A MachineClass may have a megabyte,
	// and every call checks it.
	maxEntries = 256

	uuidRule = "must be a UUID in lower case, e.g. d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
)

// Patterns and lengths are those of the IaaS API's schemas.
var (
	uuid = Limits{rule: uuidRule, Unset: true,
		Pattern: regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)}
	labelValue = Limits{Pattern: regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`), MaxLength: MaxLabel,
		rule: "a label's value must be at most 63 letters, digits, '-', '_' and '.', " +
			"starting and ending with a letter or digit"}
	labelKey = Limits{Pattern: regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_./]*)?[A-Za-z0-9]$`), MaxLength: MaxLabel,
		rule: "a label's key must be 1 to 63 letters, digits, '-', '_', '.' and '/', " +
			"starting and ending with a letter or digit"}
	metadataKey = Limits{Pattern: regexp.MustCompile(`^[a-zA-Z0-9-_:. ]{1,255}$`),
		rule: "a metadata key must be 1 to 255 letters, digits, spaces and '-_:.'"}

	namePattern = regexp.MustCompile(`^[A-Za-z0-9]+([ /._-]*[A-Za-z0-9]+)*$`)
)

func nameOf(what string) Limits {
	return Limits{Pattern: namePattern, MaxLength: 127, Unset: true,
		rule: fmt.Sprintf("must be %s: at most 127 letters, digits and ' /._-' between them", what)}
}

func (l Limits) required() Limits {
	l.Unset = false
	return l
}

// limits maps the path of each field of a ProviderSpec to its limits; "[]" stands for an item of a
// list or a value of an object.
var limits = map[string]Limits{
	"region": {Pattern: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`), MaxLength: maxRegion, Unset: true,
		isHidden: true, rule: "must be a region such as eu01, set here or in the Secret"},
	"machineType":      nameOf("the name of a machine type").required(),
	"availabilityZone": nameOf("the name of a zone"),
	"imageId":          uuid,
	"labels":           {MaxItems: maxEntries, Keys: &labelKey},
	"labels[]":         labelValue,
	"networking.networkId": {Pattern: uuid.Pattern, Unset: true,
		isHidden: true, rule: uuidRule + ", set here or in the Secret"},
	"networking.nicIds":   {MaxItems: maxEntries},
	"networking.nicIds[]": uuid.required(),
	"allowedAddresses":    {MaxItems: maxEntries},
	"securityGroups":      {MaxItems: maxEntries},
	"securityGroups[]":    nameOf("the name or UUID of a security group").required(),
	// From the API document's description of SizeInGB.
	"bootVolume.size":             {Minimum: 1, Maximum: 16000, rule: "must be 1 to 16000 (gigabytes)"},
	"bootVolume.performanceClass": nameOf("the name of a performance class"),
	// The types in the API document, and "snapshot", which is undocumented but works.
	"bootVolume.source.type": {Values: []string{apis.SourceImage, apis.SourceSnapshot, apis.SourceVolume}, Unset: true},
	"bootVolume.source.id":   uuid,
	"volumes":                {MaxItems: maxEntries},
	"volumes[]":              uuid.required(),
	// A Machine has no time for more, as each may take as long as a boot.
	"fallbacks":                    {MaxItems: 8},
	"fallbacks[].machineType":      nameOf("the name of a machine type"),
	"fallbacks[].availabilityZone": nameOf("the name of a zone"),
	"keypairName": {Pattern: regexp.MustCompile(`^[A-Za-z0-9@._-]*$`), MaxLength: 127,
		rule: "must be at most 127 letters, digits, '@', '.', '_' and '-'"},
	"affinityGroup":       uuid,
	"serviceAccountMails": {MaxItems: 1},
	"serviceAccountMails[]": {MaxLength: 255, rule: "must be the email address of a service account",
		Pattern: regexp.MustCompile(`[a-z0-9-]+(?:\.[a-z0-9]+)*@` +
			`(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`)},
	"metadata": {MaxItems: maxEntries, Keys: &metadataKey},
	"metadata[]": {Pattern: regexp.MustCompile(`^[^\r\n]*$`), MaxLength: 255, isHidden: true,
		rule: "a metadata value must be one line of at most 255 characters, a number, true or false"},
}

// SpecLimits returns the limits of each field of a ProviderSpec, from which the schemas are generated.
// "[]" in a path stands for an item of a list or a value of an object.
func SpecLimits() map[string]Limits { return maps.Clone(limits) }

// checkLimits checks a value and its parts in the form of JSON. name is its path in limits.
func checkLimits(value any, name string, path *field.Path) field.ErrorList {
	encoded, err := json.Marshal(value)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	var decoded any
	_ = json.Unmarshal(encoded, &decoded) // what was just encoded
	return check(decoded, name, path)
}

func check(value any, name string, path *field.Path) (errs field.ErrorList) {
	limit := limits[name]
	if limit.Pattern != nil {
		return limit.check(value, path)
	}
	switch value := value.(type) {
	case string:
		if limit.Values != nil && !slices.Contains(limit.Values, value) {
			return field.ErrorList{field.NotSupported(path, value, limit.Values)}
		}
	case float64:
		if limit.Maximum > 0 && (value < float64(limit.Minimum) || value > float64(limit.Maximum)) {
			return field.ErrorList{field.Invalid(path, value, limit.rule)}
		}
	case []any:
		if errs = tooMany(len(value), name, path); errs != nil {
			return errs
		}
		for i, item := range value {
			errs = append(errs, check(item, name+"[]", path.Index(i))...)
		}
	case map[string]any:
		return checkObject(value, name, path)
	}
	return errs
}

func checkObject(object map[string]any, name string, path *field.Path) field.ErrorList {
	errs, keys := tooMany(len(object), name, path), limits[name].Keys
	if errs != nil {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if keys == nil {
			errs = append(errs, check(object[key], strings.TrimPrefix(name+"."+key, "."), path.Child(key))...)
			continue
		}
		errs = append(errs, keys.check(key, path.Key(key))...)
		errs = append(errs, check(object[key], name+"[]", path.Key(key))...)
	}
	return errs
}

// tooMany returns an error for a list or object that is too long; its items need no check then.
func tooMany(length int, name string, path *field.Path) field.ErrorList {
	if most := limits[name].MaxItems; most > 0 && length > most {
		return field.ErrorList{field.TooMany(path, length, most)}
	}
	return nil
}

// check checks a value that has a pattern.
func (l *Limits) check(value any, path *field.Path) field.ErrorList {
	shown := value
	if l.isHidden {
		shown = field.OmitValueType{}
	}
	switch value := value.(type) {
	case string:
		isShort := l.MaxLength == 0 || utf8.RuneCountInString(value) <= l.MaxLength
		if isShort && l.Pattern.MatchString(value) {
			return nil
		}
		if value == "" {
			return field.ErrorList{field.Required(path, l.rule)}
		}
	case bool, float64:
		return nil
	}
	return field.ErrorList{field.Invalid(path, shown, l.rule)}
}
