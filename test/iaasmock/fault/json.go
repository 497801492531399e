// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MarshalJSON writes the fields that are set, without Match.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(f.object())
}

func (f *Fault) object() map[string]any {
	shown := map[string]any{}
	for _, field := range faultFields {
		if field.set(f) {
			shown[field.name] = field.valueJSON(f)
		}
	}
	return shown
}

// MarshalJSON writes the fault's fields, id and hits, and remaining, startsAt and endsAt
// if they are set.
func (a Active) MarshalJSON() ([]byte, error) {
	shown := a.object()
	shown["id"], shown["hits"] = a.ID, a.Hits
	if a.Count > 0 {
		shown["remaining"] = a.Remaining
	}
	for name, at := range map[string]time.Time{"startsAt": a.StartsAt, "endsAt": a.EndsAt} {
		if !at.IsZero() {
			shown[name] = at.UTC()
		}
	}
	return json.Marshal(shown)
}

// UnmarshalJSON reads a fault and validates it; one that does nothing is invalid. Errors
// name the field and say what it takes. null clears a field of the preset.
func (f *Fault) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return fmt.Errorf(`a fault is a JSON object such as {"preset":"no-capacity","count":1}, not %.100s`, raw)
	}
	read := Fault{}
	if preset, ok := fields["preset"]; ok {
		var name string
		if err := json.Unmarshal(preset, &name); err != nil {
			return fmt.Errorf("preset: invalid %s; want a text", preset)
		}
		var err error
		if read, err = presetFault(name); err != nil {
			return err
		}
		delete(fields, "preset")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, err := findFaultField(name)
		if err != nil {
			return err
		}
		if err := field.setJSON(&read, fields[name]); err != nil {
			return err
		}
	}
	probability, written := fields["probability"]
	if err := read.validateWritten(written && !isNull(probability)); err != nil {
		return err
	}
	*f = read
	return nil
}

// Parse reads a fault in the form of a flag: a preset, fields, or a preset and fields
// that change it, as in
//
//	no-capacity,count=3,server=m1
//	operation=ListServers,status=503,probability=0.1
//
// A part with a comma is put into double quotes, as in CSV. A text that begins with { is
// JSON. Errors are as with JSON.
func Parse(text string) (Fault, error) {
	var f Fault
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		err := f.UnmarshalJSON([]byte(text))
		return f, err
	}
	parts, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return Fault{}, fmt.Errorf("%q is not a fault such as no-capacity,count=3: %w", text, err)
	}
	probability := false
	for i, part := range parts {
		name, value, isField := strings.Cut(strings.TrimSpace(part), "=")
		if i == 0 && !isField {
			if f, err = presetFault(name); err != nil {
				return Fault{}, err
			}
			continue
		}
		if !isField {
			return Fault{}, fmt.Errorf("%s: a field needs a value, as in count=3", name)
		}
		field, err := findFaultField(name)
		if err != nil {
			return Fault{}, err
		}
		if err := field.setText(&f, value); err != nil {
			return Fault{}, err
		}
		probability = probability || name == "probability"
	}
	return f, f.validateWritten(probability)
}
