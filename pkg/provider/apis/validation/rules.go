// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Patterns and lengths of the IaaS API's schemas of the same names.
var (
	uuid               = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	genericName        = regexp.MustCompile(`^[A-Za-z0-9]+([ /._-]*[A-Za-z0-9]+)*$`)
	keypairName        = regexp.MustCompile(`^[A-Za-z0-9@._-]*$`)
	serverName         = regexp.MustCompile(`^(([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])$`)
	serviceAccountMail = regexp.MustCompile(`[a-z0-9-]+(?:\.[a-z0-9]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?`)
	urlSegment         = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

const (
	maxGenericName = 127
	maxServerName  = 63
)

const uuidRule = "must be a UUID in lower case, e.g. d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// IsUUID says whether text is a UUID as the API writes them: in lower case.
func IsUUID(text string) bool {
	return uuid.MatchString(text)
}

func requiredUUID(text string, path *field.Path) field.ErrorList {
	if !IsUUID(text) {
		return field.ErrorList{field.Invalid(path, text, uuidRule)}
	}
	return nil
}

func optionalUUID(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	return requiredUUID(text, path)
}

// maxEntries is the greatest length of a list, and of labels and metadata. The API document
// limits only serviceAccountMails; no server has nearly as many of anything. A MachineClass may
// have a megabyte, which every call checks.
const maxEntries = 256

// tooMany refuses a list that is too long, whose items need not be looked at then.
func tooMany(length int, path *field.Path) field.ErrorList {
	if length > maxEntries {
		return field.ErrorList{field.TooMany(path, length, maxEntries)}
	}
	return nil
}

// unique checks the items of a list. The API: "Duplicate items in the list".
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
	if name == "" || (len(name) <= maxGenericName && genericName.MatchString(name)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, fmt.Sprintf(
		"must be %s: at most %d letters, digits and ' /._-' between them", what, maxGenericName))}
}
