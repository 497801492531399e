// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package schema has the schemas of request bodies in the API document and checks values
// against them, with STACKIT's messages.
//
// The document is the source of every refusal here, kin-openapi the source of its
// message: terraform-provider-stackit issue 1501 shows a 400 of STACKIT with exactly this
// message. The mock's tests compare both with recorded messages of kin-openapi and, if
// the document is available, with kin-openapi itself: each body with one value replaced
// is refused with the same message if the document refuses it, and accepted otherwise.
package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schema is the part of OpenAPI that the API document uses for request bodies. STACKIT
// checks bodies with kin-openapi and answers with its messages; Check returns the same
// first violation with the same message.
type Schema struct {
	kind       string // string, integer, boolean, object or array
	properties map[string]*Schema
	required   []string
	readOnly   bool
	nullable   bool
	closed     bool // no other properties
	items      *Schema
	maxItems   int
	minLength  int
	maxLength  int
	pattern    *regexp.Regexp
	format     string // shown in the message of pattern, if set
	allOf      []*Schema
	oneOf      []*Schema
}

// Check returns the first violation, nil if there is none. Numbers in value are json.Number.
func (s *Schema) Check(value any) *Violation {
	switch {
	case value == nil && s.nullable:
		return nil
	case s.allOf != nil:
		return s.checkAllOf(value)
	case s.oneOf != nil:
		return s.checkOneOf(value)
	case value == nil:
		return violation("Value is not nullable")
	}
	if number, ok := value.(json.Number); ok && s.kind != "" {
		return checkNumber(s.kind, number)
	}
	switch s.kind {
	case "string":
		return s.checkString(value)
	case "integer":
		return violation("value must be an integer")
	case "boolean":
		if _, ok := value.(bool); !ok {
			return violation("value must be a boolean")
		}
	case "array":
		return s.checkArray(value)
	case "object":
		return s.checkObject(value)
	}
	return nil
}

func (s *Schema) checkAllOf(value any) *Violation {
	var failed []*Violation
	for _, part := range s.allOf {
		if err := part.Check(value); err != nil {
			failed = append(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	return alternatives(failed, " And ")
}

// alternatives joins violations up to the first whose message STACKIT cuts.
func alternatives(failed []*Violation, separator string) *Violation {
	var reasons []string
	bare := true
	for _, err := range failed {
		reasons = append(reasons, err.Error())
		if bare = err.bare; !bare {
			break
		}
	}
	return &Violation{reason: "doesn't match schema due to: " + strings.Join(reasons, separator), bare: bare}
}

func (s *Schema) checkOneOf(value any) *Violation {
	matches := 0
	var failed []*Violation
	for _, part := range s.oneOf {
		if err := part.Check(value); err == nil {
			matches++
		} else {
			failed = append(failed, err)
		}
	}
	switch matches {
	case 0:
		return alternatives(failed, " Or ")
	case 1:
		return nil
	default:
		return &Violation{reason: "input matches more than one oneOf schemas", bare: true}
	}
}

func (s *Schema) checkString(value any) *Violation {
	text, ok := value.(string)
	switch {
	case !ok:
		return violation("value must be a string")
	case utf8.RuneCountInString(text) < s.minLength:
		return violation("minimum string length is %d", s.minLength)
	case s.maxLength > 0 && utf8.RuneCountInString(text) > s.maxLength:
		return violation("maximum string length is %d", s.maxLength)
	case s.pattern == nil || s.pattern.MatchString(text):
		return nil
	case s.format != "":
		return violation(`string doesn't match the format "%s": string doesn't match pattern "%s"`, s.format, s.pattern)
	default:
		return violation(`string doesn't match the regular expression "%s"`, s.pattern)
	}
}

func (s *Schema) checkArray(value any) *Violation {
	array, ok := value.([]any)
	switch {
	case !ok:
		return violation("value must be an array")
	case s.maxItems > 0 && len(array) > s.maxItems:
		return violation("maximum number of items is %d", s.maxItems)
	}
	for i, item := range array {
		if err := s.items.Check(item); err != nil {
			return err.below(fmt.Sprint(i))
		}
	}
	return nil
}

func (s *Schema) checkObject(value any) *Violation {
	object, ok := value.(map[string]any)
	if !ok {
		return violation("value must be an object")
	}
	names := slices.Sorted(maps.Keys(object))
	for _, name := range names {
		if property := s.properties[name]; property != nil && property.readOnly && object[name] != nil {
			return violation("readOnly property %q in request", name).below(name)
		}
	}
	for _, name := range names {
		property := s.properties[name]
		if property == nil {
			if s.closed {
				return violation("property %q is unsupported", name)
			}
			continue
		}
		if err := property.Check(object[name]); err != nil {
			return err.below(name)
		}
	}
	for _, name := range s.required {
		if _, ok := object[name]; !ok {
			return violation("property %q is missing", name).below(name)
		}
	}
	return nil
}

// Known returns the object without properties that the schema does not have: STACKIT
// accepts and drops them.
func (s *Schema) Known(object map[string]any) map[string]any {
	kept := map[string]any{}
	for name, value := range object {
		if s.properties[name] != nil {
			kept[name] = value
		}
	}
	return kept
}
