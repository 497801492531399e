// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Validate returns an error with the JSON name of the first invalid field; nil if all fields are
// valid.
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
			"more than 0 and at most 1",
		},
		{
			"rate", f.Rate < 0 || math.IsNaN(f.Rate) || math.IsInf(f.Rate, 0), f.Rate,
			"the calls a second to let through, 0 for none",
		},
		{"burst", f.Burst < 0 || f.Burst > 0 && f.Rate == 0, f.Burst, "0 or more, and 0 without a rate"},
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
	for _, name := range slices.Sorted(maps.Keys(worksWith)) {
		if only := worksWith[name]; !f.field(name).IsZero() && !slices.Contains(only, f.Operation) {
			needed := slices.DeleteFunc(slices.Clone(only), func(operation string) bool { return operation == "" })
			return fmt.Errorf("operation: %s needs %s", name, strings.Join(needed, " or "))
		}
	}
	return nil
}

// worksWith maps fields to the operations with which they have an effect; "" stands for a fault of any operation.
// Fields that are missing here work with all operations.
var worksWith = map[string][]string{
	"server":               append([]string{"", OperationIaaS}, operationsOfServers...),
	"machineType":          {operationCreate},
	"zone":                 {operationCreate},
	"finalStatus":          {operationCreate, "DeleteServer"},
	"errorMessage":         {operationCreate, "DeleteServer"},
	"neverBoots":           {operationCreate},
	"neverGone":            {"DeleteServer"},
	"duplicate":            {operationCreate},
	"dropLabels":           {operationCreate},
	"otherServer":          {operationCreate},
	"ownBootVolume":        {operationCreate},
	"stale":                {"ListServers", "GetServer"},
	"forbiddenAfterDelete": {"GetServer"},
	"emptyList":            listOperations(),
	"cutOffAt":             listOperations(),
	// These three have no label_selector.
	"ignoreSelector":     listOperations("ListAttachedVolumes", "ListAvailabilityZones", "ListServerNICs"),
	"emptyProject":       append([]string{"", OperationIaaS}, emptiedOperations...),
	"tokenWithoutExpiry": {OperationToken},
	"tokenSkew":          {OperationToken},
}
