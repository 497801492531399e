// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Validate returns an error for the first invalid field, by its JSON name; nil if valid.
func (f *Fault) Validate() error {
	for _, check := range []func() error{f.validateNumbers, f.validateAnswer, f.validateOperation} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fault) validateNumbers() error {
	for _, field := range []struct {
		name    string
		invalid bool
		value   any
		want    string
	}{
		{
			"probability", f.Probability < 0 || f.Probability > 1 || math.IsNaN(f.Probability), f.Probability,
			"more than 0 up to 1",
		},
		{
			"rate", f.Rate < 0 || math.IsNaN(f.Rate) || math.IsInf(f.Rate, 0), f.Rate,
			"the calls a second to let through, 0 for none",
		},
		{"burst", f.Burst < 0 || f.Burst > 0 && f.Rate == 0, f.Burst, "the calls to let through at once, with a rate"},
		{"cutOffAt", f.CutOffAt < 0, f.CutOffAt, "the number of items to show, 0 for all"},
		{"count", f.Count < 0, f.Count, "the number of calls to hit, 0 for all"},
		{"after", f.After < 0, f.After, "0 or more"},
		{"duration", f.Duration < 0, f.Duration, "0 or more"},
		{"delay", f.Delay < 0, f.Delay, "0 or more"},
		{"delayMax", f.DelayMax != 0 && f.DelayMax < f.Delay, f.DelayMax, "the delay of " + f.Delay.String() + " or more"},
		{"answerDelay", f.AnswerDelay < 0, f.AnswerDelay, "0 or more"},
		{"stale", f.Stale < 0, f.Stale, "0 or more"},
		{"status", f.Status != 0 && (f.Status < 200 || f.Status > 599), f.Status, "200 to 599"},
	} {
		if field.invalid {
			return fmt.Errorf("%s: invalid %v; want %s", field.name, field.value, field.want)
		}
	}
	return nil
}

func (f *Fault) validateAnswer() error {
	switch {
	case f.Status == 0 && (f.Body != "" || f.ContentType != ""):
		return errors.New("body and contentType need a status")
	case f.Status == 0 && f.OtherServer == "" && f.Executed:
		return errors.New("executed needs a status or an otherServer")
	case f.ErrorMessage != "" && f.FinalStatus == "":
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
	known := slices.Sorted(slices.Values(append([]string{OperationIaaS, OperationToken, OperationUnknown}, Operations...)))
	if f.Operation != "" && !slices.Contains(known, f.Operation) {
		return fmt.Errorf("operation: unknown %q; known: %s", f.Operation, strings.Join(known, ", "))
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
		{"forbiddenAfterDelete", f.ForbiddenAfterDelete, []string{"GetServer"}},
		{"emptyList", f.EmptyList, lists},
		{"cutOffAt", f.CutOffAt != 0, lists},
		{"ignoreSelector", f.IgnoreSelector, lists},
		{"emptyProject", f.EmptyProject, append([]string{"", OperationIaaS}, emptiedOperations...)},
		{"tokenWithoutExpiry", f.TokenWithoutExpiry, tokens},
		{"tokenSkew", f.TokenSkew != 0, tokens},
	}
}
