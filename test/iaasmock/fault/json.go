// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const noHost = "No valid host was found. There are not enough hosts available."

// presets are ready-made faults for the command line, by name.
var presets = map[string]Fault{
	"no-capacity": {Operation: "CreateServer", FinalStatus: "ERROR", ErrorMessage: noHost},
	"full-zone":   {Operation: "CreateServer", Zone: "eu01-1", FinalStatus: "ERROR", ErrorMessage: noHost},
	"random-404": {Operation: "GetServer", Probability: 0.1, Status: http.StatusNotFound,
		Body: `{"code":404,"msg":"server not found"}`},
}

func presetFault(name string) (Fault, error) {
	preset, ok := presets[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(presets)), ", ")
		return Fault{}, fmt.Errorf("preset: unknown %q; known: %s", name, known)
	}
	return preset, nil
}

// plain is a Fault without its methods.
type plain Fault

// encoded is a Fault in JSON, in which durations are texts such as "1m30s".
type encoded struct {
	*plain

	// Preset names the preset that the other fields change; only for decoding.
	Preset      string          `json:"preset,omitempty"`
	After       metav1.Duration `json:"after,omitzero"`
	Duration    metav1.Duration `json:"duration,omitzero"`
	Delay       metav1.Duration `json:"delay,omitzero"`
	AnswerDelay metav1.Duration `json:"answerDelay,omitzero"`
	Stale       metav1.Duration `json:"stale,omitzero"`
	TokenSkew   metav1.Duration `json:"tokenSkew,omitzero"`
}

func (f *Fault) encoded() encoded {
	e := encoded{plain: (*plain)(f)}
	e.After.Duration, e.Duration.Duration, e.Delay.Duration = f.After, f.Duration, f.Delay
	e.AnswerDelay.Duration, e.Stale.Duration, e.TokenSkew.Duration = f.AnswerDelay, f.Stale, f.TokenSkew
	return e
}

// UnmarshalJSON decodes and validates a fault. The field "preset" names a ready-made fault that the
// other fields change. A fault without any effect is invalid.
func (f *Fault) UnmarshalJSON(raw []byte) (err error) {
	var base struct{ Preset string }
	if err := json.Unmarshal(raw, &base); err != nil {
		return fmt.Errorf(`a fault is a JSON object such as {"preset":"no-capacity","count":1}: %w`, err)
	}
	var read Fault
	if base.Preset != "" {
		if read, err = presetFault(base.Preset); err != nil {
			return err
		}
	}
	fields := read.encoded()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return err
	}
	read.After, read.Duration, read.Delay = fields.After.Duration, fields.Duration.Duration, fields.Delay.Duration
	read.AnswerDelay, read.Stale = fields.AnswerDelay.Duration, fields.Stale.Duration
	read.TokenSkew = fields.TokenSkew.Duration
	if err := read.Validate(); err != nil {
		return err
	}
	*f = read
	return nil
}

// MarshalJSON encodes the fault's fields that are set, except Match, with id and hits.
func (a Active) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		encoded

		ID   string `json:"id"`
		Hits int    `json:"hits"`
	}{a.encoded(), a.ID, a.Hits})
}

// Parse parses the name of a preset or, if the text begins with {, a fault in JSON.
func Parse(text string) (f Fault, err error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
		return f, f.UnmarshalJSON([]byte(text))
	}
	return presetFault(text)
}
