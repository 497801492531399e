// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Validate returns an error for the first invalid field, by its JSON name; nil if valid.
func (f Fault) Validate() error {
	for _, check := range []func() error{f.validateSelection, f.validateDelay, f.validateAnswer, f.validateOperation} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fault) validateSelection() error {
	if f.Probability < 0 || f.Probability > 1 || math.IsNaN(f.Probability) {
		return fmt.Errorf("probability: invalid %v; want more than 0 up to 1", f.Probability)
	}
	if f.Rate < 0 || math.IsNaN(f.Rate) || math.IsInf(f.Rate, 0) {
		return fmt.Errorf("rate: invalid %v; want the calls a second to let through, 0 for none", f.Rate)
	}
	if f.Burst < 0 || f.Burst > 0 && f.Rate == 0 {
		return fmt.Errorf("burst: invalid %d; want the calls to let through at once, with a rate", f.Burst)
	}
	if f.CutOffAt < 0 {
		return fmt.Errorf("cutOffAt: invalid %d; want the number of items to show, 0 for all", f.CutOffAt)
	}
	if f.Count < 0 {
		return fmt.Errorf("count: invalid %d; want the number of calls to hit, 0 for all", f.Count)
	}
	return nil
}

func (f *Fault) validateDelay() error {
	for name, d := range map[string]time.Duration{
		"after": f.After, "duration": f.Duration, "delay": f.Delay, "delayMax": f.DelayMax,
		"answerDelay": f.AnswerDelay, "stale": f.Stale,
	} {
		if d < 0 {
			return fmt.Errorf("%s: invalid %s; want 0 or more", name, d)
		}
	}
	if f.DelayMax > 0 && f.DelayMax < f.Delay {
		return fmt.Errorf("delayMax: %s is less than the delay of %s", f.DelayMax, f.Delay)
	}
	return nil
}

func (f *Fault) validateAnswer() error {
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("status: invalid %d; want 200 to 599", f.Status)
	}
	if f.Status == 0 && (f.Body != "" || f.ContentType != "") {
		return errors.New("body and contentType need a status")
	}
	if f.Status == 0 && f.OtherServer == "" && f.Executed {
		return errors.New("executed needs a status or an otherServer")
	}
	if f.ErrorMessage != "" && f.FinalStatus == "" {
		return errors.New("errorMessage needs a finalStatus, usually ERROR")
	}
	for name, values := range f.Header {
		if name == "" || strings.ContainsAny(name+strings.Join(values, ""), "\r\n") {
			return fmt.Errorf("header: invalid %q; want a name and values without line breaks", name)
		}
	}
	return nil
}

func (f *Fault) validateOperation() error {
	known := append([]string{OperationIaaS, OperationToken, OperationUnknown}, Operations...)
	slices.Sort(known)
	if f.Operation != "" && !slices.Contains(known, f.Operation) {
		return fmt.Errorf("operation: unknown %q; known: %s", f.Operation, strings.Join(slices.Compact(known), ", "))
	}
	for _, field := range f.bound() {
		if field.set && !slices.Contains(field.only, f.Operation) {
			needed := slices.DeleteFunc(slices.Clone(field.only), func(operation string) bool { return operation == "" })
			return fmt.Errorf("operation: %s needs %s", field.name, strings.Join(needed, " or "))
		}
	}
	return nil
}

// boundField is a field that works with some operations only.
type boundField struct {
	name string
	set  bool
	only []string
}

func (f *Fault) bound() []boundField {
	creates, tokens, reads := []string{operationCreate}, []string{OperationToken}, []string{"ListServers", "GetServer"}
	lists := listOperations()
	return []boundField{
		{"finalStatus", f.FinalStatus != "", endingOperations},
		{"errorMessage", f.ErrorMessage != "", endingOperations},
		{"neverBoots", f.NeverBoots, creates},
		{"neverGone", f.NeverGone, []string{"DeleteServer"}},
		{"duplicate", f.Duplicate, creates},
		{"dropLabels", f.DropLabels, creates},
		{"otherServer", f.OtherServer != "", creates},
		{"ownBootVolume", f.OwnBootVolume, creates},
		{"stale", f.Stale != 0, reads},
		{"emptyList", f.EmptyList, lists},
		{"cutOffAt", f.CutOffAt != 0, lists},
		{"ignoreSelector", f.IgnoreSelector, lists},
		{"emptyProject", f.EmptyProject, append([]string{"", OperationIaaS}, emptiedOperations...)},
		{"tokenWithoutExpiry", f.TokenWithoutExpiry, tokens},
		{"tokenSkew", f.TokenSkew != 0, tokens},
	}
}
