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

	"k8s.io/apimachinery/pkg/labels"
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

// validateWritten is Validate for flags, JSON and scenarios. It is stricter: a written
// fault must do something. probability is true if that field was written.
func (f *Fault) validateWritten(probability bool) error {
	if probability && f.Probability == 0 {
		return errors.New("probability: 0 would hit nothing; want more than 0 up to 1")
	}
	if err := f.Validate(); err != nil {
		return err
	}
	if f.doesNothing() {
		return errors.New(`the fault does nothing; set a field such as "status":503, or name a preset`)
	}
	if f.RefuseConnections && f.Duration == 0 {
		return errors.New("duration: refuseConnections needs one, because nothing can remove it while the port is closed")
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
	if _, err := labels.Parse(f.LabelSelector); err != nil {
		return fmt.Errorf(`labelSelector: %w; want one such as "app=a,tier in (b,c)"`, err)
	}
	return nil
}

func (f *Fault) validateDelay() error {
	for _, field := range faultFields {
		d, ok := field.at(f).(*time.Duration)
		if ok && *d < 0 && d != &f.TokenSkew {
			return fmt.Errorf("%s: invalid %s; want 0 or more", field.name, d)
		}
	}
	if f.DelayMax > 0 && f.DelayMax < f.Delay {
		return fmt.Errorf("delayMax: %s is less than the delay of %s", f.DelayMax, f.Delay)
	}
	distributions := []string{"", DelayUniform, DelayNormal, DelayLongTail}
	if !slices.Contains(distributions, f.DelayDistribution) {
		return fmt.Errorf("delayDistribution: unknown %q; known: %s", f.DelayDistribution, strings.Join(distributions[1:], ", "))
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
	for _, field := range faultFields {
		if field.only == nil || !field.set(f) || slices.Contains(field.only, f.Operation) {
			continue
		}
		if f.RefuseConnections {
			return errors.New("operation: refuseConnections takes none; leave it out")
		}
		needed := slices.DeleteFunc(slices.Clone(field.only), func(operation string) bool { return operation == "" })
		return fmt.Errorf("operation: %s needs %s", field.name, strings.Join(needed, " or "))
	}
	if f.RefuseConnections && (f.Match != nil || f.Server != "" || f.LabelSelector != "" || f.Probability > 0 || f.Rate > 0 || f.Count > 0) {
		return errors.New("refuseConnections: leave out server, labelSelector, probability, rate and count, which select calls")
	}
	return nil
}
