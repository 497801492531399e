// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// field returns the field with this name in JSON; it is invalid for an unknown name.
func (f *Fault) field(name string) reflect.Value {
	if name == "" || !slices.Contains(names(), name) {
		return reflect.Value{}
	}
	return reflect.ValueOf(f).Elem().FieldByName(strings.ToUpper(name[:1]) + name[1:])
}

// names returns the names of the fields in JSON.
func names() (all []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Fault]()) {
		if field.Type.Kind() != reflect.Func {
			all = append(all, strings.ToLower(field.Name[:1])+field.Name[1:])
		}
	}
	return all
}

// written returns the fields that are set, by their JSON names.
func (f Fault) written() map[string]any {
	set := map[string]any{}
	for _, name := range names() {
		value := f.field(name)
		if value.IsZero() {
			continue
		}
		set[name] = value.Interface()
		if d, is := value.Interface().(time.Duration); is {
			set[name] = d.String()
		}
	}
	return set
}

// MarshalJSON encodes the fields that are set, except Match.
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(f.written()) }

// MarshalJSON encodes the fault's fields, id and hits. It adds remaining if there is a count,
// startsAt if there is an after, and endsAt if there is a duration.
func (a Active) MarshalJSON() ([]byte, error) {
	set := a.written()
	set["id"], set["hits"] = a.ID, a.Hits
	if a.Count > 0 {
		set["remaining"] = a.Remaining()
	}
	if a.After > 0 {
		set["startsAt"] = a.StartsAt.UTC()
	}
	if a.Duration > 0 {
		set["endsAt"] = a.EndsAt.UTC()
	}
	return json.Marshal(set)
}

// UnmarshalJSON decodes and validates a fault. A fault without any effect is invalid. Errors
// contain the field and its valid values.
func (f *Fault) UnmarshalJSON(raw []byte) (err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return fmt.Errorf(`a fault is a JSON object such as {"preset":"no-capacity","count":1}, not %.100s`, raw)
	}
	read := Fault{}
	if text, ok := fields["preset"]; ok {
		var preset string
		if json.Unmarshal(text, &preset) != nil {
			return fmt.Errorf("preset: invalid %s; want a string", text)
		}
		if read, err = presetFault(preset); err != nil {
			return err
		}
		delete(fields, "preset")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := read.set(name, fields[name]); err != nil {
			return err
		}
	}
	if given := fields["probability"]; read.Probability == 0 && given != nil && string(given) != "null" {
		return errors.New("probability: 0 hits no call; must be more than 0 and at most 1")
	}
	if err := read.Validate(); err != nil {
		return err
	}
	if read.doesNothing() {
		return errors.New(`the fault does nothing; set a field such as "status":503, or name a preset`)
	}
	*f = read
	return nil
}

// set sets one field from JSON; null leaves it unchanged.
func (f *Fault) set(name string, raw json.RawMessage) error {
	field := f.field(name)
	if !field.IsValid() {
		return fmt.Errorf("%s: unknown field; known: preset, %s", name, strings.Join(names(), ", "))
	}
	if string(raw) == "null" {
		return nil
	}
	if d, is := field.Addr().Interface().(*time.Duration); is {
		return setDuration(d, name, raw)
	}
	if err := json.Unmarshal(raw, field.Addr().Interface()); err != nil {
		return fmt.Errorf("%s: invalid %s; want %s", name, raw, wanted(field.Kind()))
	}
	if name == "header" {
		header := f.Header
		f.Header = http.Header{}
		for key, values := range header {
			f.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	return nil
}

func setDuration(d *time.Duration, name string, raw json.RawMessage) (err error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return fmt.Errorf(`%s: invalid %s; want a duration such as "1m30s"`, name, raw)
	}
	if *d, err = time.ParseDuration(text); err != nil {
		return fmt.Errorf(`%s: invalid duration %q; want one such as "1m30s"`, name, text)
	}
	return nil
}

func wanted(kind reflect.Kind) string {
	switch kind {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Map:
		return `{"Retry-After":["5"]}`
	default:
		return "a string"
	}
}

// Parse parses the name of a preset or, if the text begins with {, a fault in JSON.
func Parse(text string) (f Fault, err error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
		return f, f.UnmarshalJSON([]byte(text))
	}
	return presetFault(text)
}
