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

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Doctor checks the credentials and the cluster of an Access. Examine may be called only once.
type Doctor struct {
	*account.Access
	// ConfigError is the error in the Config of Sessions; nil if there is none. If it is set, the
	// API is not called.
	ConfigError error

	result Result
	// of is the account that findings are about; nil for findings about none. accounts counts the accounts.
	of       *account.Account
	accounts int
}

// Result holds the findings of Examine.
type Result struct {
	Findings report.Findings `json:"findings"`
	// NotTried lists the checks that were not run; their results are unknown.
	NotTried []string `json:"notTried"`
}

// Examine runs all checks in the order in which a sidecar would fail, changes nothing, and returns their findings. A
// check that was not possible appears as an Unknown finding or in NotTried.
func (d *Doctor) Examine(ctx context.Context) *Result {
	d.reachCluster(ctx)
	d.examineAccounts(ctx)
	if d.Control != nil {
		d.checkClasses(ctx)
		d.notTried("whether manager and sidecar run: kubectl shows their Deployments and leases")
	}
	d.notTried("the sidecar's login to the target cluster")
	d.notTried("POST, PATCH and DELETE: " +
		"creating, changing and deleting needs iaas.server.create, iaas.server.delete and iaas.nic.update")
	return &d.result
}

// reachCluster reads the Machines, to find out whether the cluster answers.
func (d *Doctor) reachCluster(ctx context.Context) {
	if d.Control != nil {
		var status apierrors.APIStatus
		if _, err := d.Machines(ctx, d.Namespace); err != nil && errors.As(err, &status) {
			d.unread("Machines", err)
		} else if err != nil {
			d.Control, d.ControlError = nil, err
		}
	}
	if d.ControlError != nil && d.Control == nil {
		d.unknown("cluster with the Machines", "not checked: "+d.ControlError.Error()+
			"; name a kubeconfig with --kubeconfig, or check only the API with --cloud-only")
	} else if d.Control == nil {
		d.notTried("the cluster with the Machines")
	}
}

func (d *Doctor) examineAccounts(ctx context.Context) {
	if d.ConfigError != nil {
		d.wrong("environment", "the API is not called: "+d.ConfigError.Error())
		return
	}
	accounts, problems := d.Accounts(ctx, d.Namespace)
	d.accounts = len(accounts)
	for _, problem := range problems {
		if class := (*account.ClassError)(nil); !errors.As(problem, &class) { // else it is reported with the class
			d.reportNoAccount(problem)
		}
	}
	for _, in := range accounts {
		d.of = in
		secret, _ := apis.DecodeSecret(in.Secret.Data)
		(&accountCheck{Doctor: d, Account: in, secret: secret}).run(ctx)
	}
	d.of = nil
}

// reportNoAccount reports why there is no account.
func (d *Doctor) reportNoAccount(problem error) {
	const subject = "credentials"
	var status apierrors.APIStatus
	var unusable *spi.CredentialsError
	switch {
	case d.ControlError != nil && (errors.Is(problem, account.ErrNoCredentials) || errors.Is(problem, d.ControlError)):
		d.notTried("the API: its credentials are in the cluster's MachineClasses, which cannot be read: give them by flags")
	case errors.As(problem, &status), errors.Is(problem, account.ErrNoCredentials),
		errors.Is(problem, account.ErrNoSecret) && d.Control == nil:
		d.unknown(subject, problem.Error())
	case errors.As(problem, &unusable):
		_, text := account.Judge(unusable)
		d.wrong(subject, text)
	default:
		d.wrong(subject, problem.Error())
	}
}

func (d *Doctor) report(verdict report.Verdict, subject, found string) {
	d.add(report.Finding{Verdict: verdict, Subject: subject, Found: report.OneLine(found)})
}

func (d *Doctor) add(made report.Finding) {
	if d.of != nil && d.accounts > 1 {
		made.Subject += fmt.Sprintf(" (%v)", d.of)
	}
	if !slices.Contains(d.result.Findings, made) { // a Secret of several classes
		d.result.Findings = append(d.result.Findings, made)
	}
}

func (d *Doctor) fine(subject, found string)    { d.report(report.Fine, subject, found) }
func (d *Doctor) wrong(subject, found string)   { d.report(report.Wrong, subject, found) }
func (d *Doctor) unknown(subject, found string) { d.report(report.Unknown, subject, found) }
func (d *Doctor) hint(subject, found string)    { d.report(report.Hint, subject, found) }

// notTried records once what was not tried.
func (d *Doctor) notTried(what string) {
	if !slices.Contains(d.result.NotTried, what) {
		d.result.NotTried = append(d.result.NotTried, what)
	}
}

// unread reports a failed read of a cluster. The API server's refusals name the missing right.
func (d *Doctor) unread(subject string, err error) {
	d.unknown(subject, "cannot be read: "+err.Error())
}
