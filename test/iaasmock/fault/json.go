// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// span is a duration as JSON has it, such as "1m30s".
type span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`invalid duration %q; want one such as "1m30s"`, text)
	}
	*s = span(d)
	return nil
}

// plain is a Fault without its methods.
type plain Fault

// written is a Fault in JSON. Its fields hide those of the same names in Fault.
type written struct {
	Preset      string   `json:"preset,omitempty"`
	Probability *float64 `json:"probability,omitempty"`

	After       span `json:"after,omitzero"`
	Duration    span `json:"duration,omitzero"`
	Delay       span `json:"delay,omitzero"`
	DelayMax    span `json:"delayMax,omitzero"`
	AnswerDelay span `json:"answerDelay,omitzero"`
	Stale       span `json:"stale,omitzero"`
	TokenSkew   span `json:"tokenSkew,omitzero"`
	plain
}

func write(f Fault) written {
	w := written{
		After: span(f.After), Duration: span(f.Duration),
		Delay: span(f.Delay), DelayMax: span(f.DelayMax), AnswerDelay: span(f.AnswerDelay),
		Stale: span(f.Stale), TokenSkew: span(f.TokenSkew), plain: plain(f),
	}
	if f.Probability != 0 {
		w.Probability = &f.Probability
	}
	return w
}

func (w written) fault() Fault {
	f := Fault(w.plain)
	f.After, f.Duration = time.Duration(w.After), time.Duration(w.Duration)
	f.Delay, f.DelayMax = time.Duration(w.Delay), time.Duration(w.DelayMax)
	f.AnswerDelay, f.Stale, f.TokenSkew = time.Duration(w.AnswerDelay), time.Duration(w.Stale), time.Duration(w.TokenSkew)
	if w.Probability != nil {
		f.Probability = *w.Probability
	}
	header := http.Header{}
	for name, values := range f.Header {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	if f.Header = nil; len(header) > 0 {
		f.Header = header
	}
	return f
}

// MarshalJSON writes the fields that are set, without Match.
func (f Fault) MarshalJSON() ([]byte, error) { return json.Marshal(write(f)) }

// MarshalJSON writes the fault's fields, id and hits, and remaining, startsAt and endsAt
// if they are set.
func (a Active) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID        string    `json:"id"`
		Hits      int       `json:"hits"`
		Remaining *int      `json:"remaining,omitempty"`
		StartsAt  time.Time `json:"startsAt,omitzero"`
		EndsAt    time.Time `json:"endsAt,omitzero"`
		written
	}{a.ID, a.Hits, a.remaining(), a.StartsAt.UTC(), a.EndsAt.UTC(), write(a.Fault)})
}

// remaining is nil for a fault without a Count.
func (a Active) remaining() *int {
	if a.Count == 0 {
		return nil
	}
	return &a.Remaining
}

// UnmarshalJSON reads a fault and validates it; one that does nothing is invalid. Errors
// name the field and say what it takes.
func (f *Fault) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return fmt.Errorf(`a fault is a JSON object such as {"preset":"no-capacity","count":1}, not %.100s`, raw)
	}
	read := written{}
	if preset, ok := fields["preset"]; ok {
		if err := read.set("preset", preset); err != nil {
			return err
		}
		fault, err := presetFault(read.Preset)
		if err != nil {
			return err
		}
		read = write(fault)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := read.set(name, fields[name]); err != nil {
			return err
		}
	}
	if read.Probability != nil && *read.Probability == 0 {
		return errors.New("probability: 0 would hit nothing; want more than 0 up to 1")
	}
	*f = read.fault()
	return f.validateWritten()
}

// set sets one field, so that an error can name it.
func (w *written) set(name string, raw json.RawMessage) error {
	one, err := json.Marshal(map[string]json.RawMessage{name: raw})
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(one))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(w)
	wrong := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: invalid %s; want %s", name, raw, wanted(wrong.Type))
	case !slices.Contains(names(), name):
		return fmt.Errorf("%s: unknown field; known: %s", name, strings.Join(names(), ", "))
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// names are the fields in JSON.
func names() (all []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[written]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func wanted(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return `a duration such as "1m30s"`
	case reflect.Map, reflect.Slice:
		return `{"Retry-After":["5"]} in JSON and header=Retry-After:5 in a flag`
	default:
		return "a text"
	}
}

// Parse reads a fault in the form of a flag: a preset, fields, or a preset and fields
// that change it, as in
//
//	no-capacity,count=3,server=m1
//	operation=ListServers,status=503,probability=0.1
//
// A part with a comma is put into double quotes, as in CSV. A text that begins with { is
// JSON. Errors are as with JSON.
func Parse(text string) (f Fault, err error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return f, f.UnmarshalJSON([]byte(text))
	}
	parts, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return Fault{}, fmt.Errorf("%q is not a fault such as no-capacity,count=3: %w", text, err)
	}
	fields, header := map[string]any{}, http.Header{}
	for i, part := range parts {
		name, value, isField := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case i == 0 && !isField:
			fields["preset"] = name
		case !isField:
			return Fault{}, fmt.Errorf("%s: a field needs a value, as in count=3", name)
		case name == "header":
			key, content, ok := strings.Cut(value, ":")
			if !ok {
				return Fault{}, fmt.Errorf("header: invalid %s; want one such as header=Retry-After:5", value)
			}
			header.Add(strings.TrimSpace(key), strings.TrimSpace(content))
			fields[name] = header
		case json.Valid([]byte(value)) && (&written{}).set(name, json.RawMessage(value)) == nil:
			fields[name] = json.RawMessage(value)
		default:
			fields[name] = value
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return Fault{}, err
	}
	return f, f.UnmarshalJSON(raw)
}

// ParseScenario reads a scenario: a list of faults in JSON or YAML, each as in an HTTP
// request, usually with "after", the time from Inject until it begins. Errors give the
// number of the invalid fault.
func ParseScenario(text []byte) ([]Fault, error) {
	var items []json.RawMessage
	if err := yaml.UnmarshalStrict(text, &items); err != nil {
		return nil, fmt.Errorf("a scenario is a list of faults in JSON or YAML: %w", err)
	}
	faults := make([]Fault, len(items))
	for i, item := range items {
		if err := faults[i].UnmarshalJSON(item); err != nil {
			return nil, fmt.Errorf("fault %d: %w", i+1, err)
		}
	}
	return faults, nil
}
