// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor checks whether a sidecar can work with the user's credentials and cluster. It
// makes the same reads as a sidecar, and changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Doctor checks the credentials and the cluster of an Access. Examine may be called only once.
type Doctor struct {
	*account.Access
	// ConfigError is the error in the Config of Sessions; nil if there is none. If it is set, the
	// API is not called.
	ConfigError error
	// Report is called with each Finding as soon as it is found; nil means no calls.
	Report func(report.Finding)

	result Result
	// of is the account that findings are about; nil for findings about none. accounts counts the accounts.
	of       *account.Account
	accounts int
	// fromOpenStack means that Machines of the namespace came from OpenStack.
	fromOpenStack bool
	// unusable has the errors of classes with unusable credentials, by class name.
	unusable map[string]error
	// manager and sidecar are nil if no Deployment has them; otherSidecar is nil if there is no other provider's.
	manager, sidecar, otherSidecar *workload
}

// Result holds the findings of Examine.
type Result struct {
	Findings report.Findings `json:"findings"`
	// NotTried lists the checks that were not run; their results are unknown.
	NotTried []string `json:"notTried"`
}

// accountChecks run for each account, in the order in which a sidecar would fail.
var accountChecks = []func(*accountCheck, context.Context){
	(*accountCheck).checkCredentials,
	(*accountCheck).checkClock,
	(*accountCheck).checkToken,
	(*accountCheck).checkReads,
}

// clusterChecks run for the cluster with the Machines, in the order in which a sidecar would fail.
var clusterChecks = []func(*Doctor, context.Context){
	(*Doctor).checkClasses,
	(*Doctor).checkDeployments,
	(*Doctor).checkLeases,
	(*Doctor).checkTarget,
}

// Examine runs all checks, changes nothing, and returns their findings in the order of the checks. A
// check that was not possible appears as an Unknown finding or in NotTried.
func (d *Doctor) Examine(ctx context.Context) *Result {
	d.reachCluster(ctx)
	d.examineAccounts(ctx)
	for _, check := range clusterChecks {
		if d.Control != nil {
			check(d, ctx)
		}
	}
	d.notTried("POST, PATCH and DELETE: " +
		"creating, changing and deleting needs iaas.server.create, iaas.server.delete and iaas.nic.update")
	return &d.result
}

// reachCluster reads the Machines, to find out whether the cluster answers, and whether any came from OpenStack, which
// need additional reads.
func (d *Doctor) reachCluster(ctx context.Context) {
	var machines []v1alpha1.Machine
	if d.Control != nil {
		var err error
		var status apierrors.APIStatus
		if machines, err = d.Machines(ctx, d.Namespace); err != nil && errors.As(err, &status) {
			d.unread("Machines", err)
		} else if err != nil {
			d.Control, d.ControlError = nil, err
		}
	}
	if d.ControlError != nil && d.Control == nil {
		d.unknown("cluster with the Machines", "not checked: "+d.ControlError.Error(),
			"name a kubeconfig with --kubeconfig; --cloud-only checks only the API")
	} else if d.Control == nil {
		d.notTried("the cluster with the Machines")
	}
	for i := range machines {
		d.fromOpenStack = d.fromOpenStack || provider.CameFromOpenStack(&machines[i])
	}
}

func (d *Doctor) examineAccounts(ctx context.Context) {
	if d.ConfigError != nil {
		d.wrong("environment", "the API is not called: "+d.ConfigError.Error(), "correct the variable")
		return
	}
	accounts, problems := d.Accounts(ctx, d.Namespace)
	d.accounts = len(accounts)
	d.unusable = map[string]error{}
	for _, problem := range problems {
		var class *account.ClassError
		if errors.As(problem, &class) {
			d.unusable[class.Class.Name] = class.Err // reported with the class
		} else {
			d.reportCredentials(subjectCredentials, problem)
		}
	}
	for _, in := range accounts {
		d.of = in
		secret, _ := apis.DecodeSecret(in.Secret.Data)
		p := &accountCheck{Doctor: d, Account: in, secret: secret}
		for _, check := range accountChecks {
			check(p, ctx)
		}
	}
	d.of = nil
}

func (d *Doctor) report(verdict report.Verdict, subject, found, remedy string) {
	made := report.Finding{Verdict: verdict, Subject: subject, Found: report.OneLine(found), Remedy: remedy}
	if d.of != nil && d.accounts > 1 {
		made.Subject += fmt.Sprintf(" (%v)", d.of)
	}
	d.result.Findings = append(d.result.Findings, made)
	if d.Report != nil {
		d.Report(made)
	}
}

func (d *Doctor) fine(subject, found string) { d.report(report.Fine, subject, found, "") }
func (d *Doctor) wrong(subject, found, remedy string) {
	d.report(report.Wrong, subject, found, remedy)
}
func (d *Doctor) unknown(subject, found, remedy string) {
	d.report(report.Unknown, subject, found, remedy)
}
func (d *Doctor) hint(subject, found, remedy string) { d.report(report.Hint, subject, found, remedy) }

// notTried records once what was not tried.
func (d *Doctor) notTried(what string) {
	if !slices.Contains(d.result.NotTried, what) {
		d.result.NotTried = append(d.result.NotTried, what)
	}
}

// unread reports a failed read of a cluster. The API server's refusals name the missing right.
func (d *Doctor) unread(subject string, err error) {
	remedy := ""
	if apierrors.IsForbidden(err) {
		remedy = "log in as a user who has this permission, or ask for it"
	}
	d.unknown(subject, "cannot be read: "+err.Error(), remedy)
}
