// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fieldRole is the purpose of a field of Fault.
type fieldRole int

const (
	selects fieldRole = iota // selects calls
	delays                   // only delays the call
	acts                     // changes the call or its answer
)

// faultField is a field of Fault as it is written in JSON and flags.
type faultField struct {
	name string
	role fieldRole
	// at returns a pointer to the field: *string, *int, *float64, *bool, *time.Duration
	// or *http.Header.
	at func(*Fault) any
	// only are the operations that the field works with; nil means all.
	only []string
}

// faultFields are all fields of Fault but Match, which only Go code can set.
var faultFields = []faultField{
	{name: "name", at: func(f *Fault) any { return &f.Name }},
	{name: "operation", at: func(f *Fault) any { return &f.Operation }},
	{name: "server", at: func(f *Fault) any { return &f.Server }},
	{name: "labelSelector", at: func(f *Fault) any { return &f.LabelSelector }},
	{name: "probability", at: func(f *Fault) any { return &f.Probability }},
	{name: "rate", at: func(f *Fault) any { return &f.Rate }},
	{name: "burst", at: func(f *Fault) any { return &f.Burst }},
	{name: "count", at: func(f *Fault) any { return &f.Count }},
	{name: "after", at: func(f *Fault) any { return &f.After }},
	{name: "duration", at: func(f *Fault) any { return &f.Duration }},

	{name: "delay", role: delays, at: func(f *Fault) any { return &f.Delay }},
	{name: "delayMax", role: delays, at: func(f *Fault) any { return &f.DelayMax }},
	{name: "delayDistribution", role: delays, at: func(f *Fault) any { return &f.DelayDistribution }},
	{name: "answerDelay", role: delays, at: func(f *Fault) any { return &f.AnswerDelay }},

	{name: "status", role: acts, at: func(f *Fault) any { return &f.Status }},
	{name: "body", role: acts, at: func(f *Fault) any { return &f.Body }},
	{name: "contentType", role: acts, at: func(f *Fault) any { return &f.ContentType }},
	{name: "header", role: acts, at: func(f *Fault) any { return &f.Header }},
	{name: "executed", role: acts, at: func(f *Fault) any { return &f.Executed }},
	{name: "dropBefore", role: acts, at: func(f *Fault) any { return &f.DropBefore }},
	{name: "dropAfter", role: acts, at: func(f *Fault) any { return &f.DropAfter }},
	{name: "neverAnswers", role: acts, at: func(f *Fault) any { return &f.NeverAnswers }},
	{name: "halfAnswer", role: acts, at: func(f *Fault) any { return &f.HalfAnswer }},
	{name: "refuseConnections", role: acts, at: func(f *Fault) any { return &f.RefuseConnections }, only: []string{""}},

	{name: "finalStatus", role: acts, at: func(f *Fault) any { return &f.FinalStatus }, only: endingOperations},
	{name: "errorMessage", role: acts, at: func(f *Fault) any { return &f.ErrorMessage }, only: endingOperations},
	{name: "neverBoots", role: acts, at: func(f *Fault) any { return &f.NeverBoots }, only: []string{operationCreate}},
	{name: "neverGone", role: acts, at: func(f *Fault) any { return &f.NeverGone }, only: []string{"DeleteServer"}},
	{name: "duplicate", role: acts, at: func(f *Fault) any { return &f.Duplicate }, only: []string{operationCreate}},
	{name: "dropLabels", role: acts, at: func(f *Fault) any { return &f.DropLabels }, only: []string{operationCreate}},
	{name: "otherServer", role: acts, at: func(f *Fault) any { return &f.OtherServer }, only: []string{operationCreate}},
	{name: "stale", role: acts, at: func(f *Fault) any { return &f.Stale }, only: []string{"ListServers", "GetServer"}},
	{name: "emptyList", role: acts, at: func(f *Fault) any { return &f.EmptyList }, only: listOperations},
	{name: "cutOffAt", role: acts, at: func(f *Fault) any { return &f.CutOffAt }, only: listOperations},
	{name: "emptyProject", role: acts, at: func(f *Fault) any { return &f.EmptyProject }, only: append([]string{"", OperationIaaS}, emptiedOperations...)},
	{name: "tokenWithoutExpiry", role: acts, at: func(f *Fault) any { return &f.TokenWithoutExpiry }, only: []string{OperationToken}},
	{name: "tokenSkew", role: acts, at: func(f *Fault) any { return &f.TokenSkew }, only: []string{OperationToken}},
}

func findFaultField(name string) (faultField, error) {
	var names []string
	for _, field := range faultFields {
		if field.name == name {
			return field, nil
		}
		names = append(names, field.name)
	}
	return faultField{}, fmt.Errorf("%s: unknown field; known: preset, %s", name, strings.Join(names, ", "))
}

// set reports whether the field has a value in the fault.
func (field faultField) set(f *Fault) bool {
	return !reflect.ValueOf(field.at(f)).Elem().IsZero()
}

// hasEffect reports whether the fault does more than delay.
func (f *Fault) hasEffect() bool {
	return slices.ContainsFunc(faultFields, func(field faultField) bool { return field.role == acts && field.set(f) })
}

// doesNothing reports whether the fault neither delays nor changes anything.
func (f *Fault) doesNothing() bool {
	return !slices.ContainsFunc(faultFields, func(field faultField) bool { return field.role != selects && field.set(f) })
}

// setText sets the field from the text in a flag.
func (field faultField) setText(f *Fault, text string) error {
	var err error
	switch at := field.at(f).(type) {
	case *string:
		*at = text
	case *int:
		*at, err = strconv.Atoi(text)
	case *float64:
		*at, err = strconv.ParseFloat(text, 64)
	case *bool:
		*at, err = strconv.ParseBool(text)
	case *time.Duration:
		*at, err = time.ParseDuration(text)
	case *http.Header:
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return field.malformed(text)
		}
		if *at == nil {
			*at = http.Header{}
		}
		at.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if err != nil {
		return field.malformed(text)
	}
	return nil
}

// setJSON sets the field from JSON.
func (field faultField) setJSON(f *Fault, raw json.RawMessage) error {
	if isNull(raw) {
		reflect.ValueOf(field.at(f)).Elem().SetZero()
		return nil
	}
	switch at := field.at(f).(type) {
	case *time.Duration:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return field.malformed(string(raw))
		}
		return field.setText(f, text)
	case *http.Header:
		var header http.Header
		if err := json.Unmarshal(raw, &header); err != nil {
			return field.malformed(string(raw))
		}
		*at = http.Header{}
		for name, values := range header {
			for _, value := range values {
				at.Add(name, value)
			}
		}
	default:
		if err := json.Unmarshal(raw, at); err != nil {
			return field.malformed(string(raw))
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func (field faultField) malformed(text string) error {
	wanted := ""
	switch field.at(&Fault{}).(type) {
	case *string:
		wanted = "a text"
	case *int:
		wanted = "a whole number"
	case *float64:
		wanted = "a number"
	case *bool:
		wanted = "true or false"
	case *time.Duration:
		wanted = `a duration such as "1m30s"`
	case *http.Header:
		wanted = `{"Retry-After":["5"]} in JSON and header=Retry-After:5 in a flag`
	}
	return fmt.Errorf("%s: invalid %s; want %s", field.name, text, wanted)
}

// valueJSON returns the field's value for JSON.
func (field faultField) valueJSON(f *Fault) any {
	if d, ok := field.at(f).(*time.Duration); ok {
		return d.String()
	}
	return field.at(f)
}
