// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor looks at everything that a sidecar needs: the cloud, the cluster with the
// Machines and the one that they join.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Doctor is one examination: it is used once, and changes nothing.
type Doctor struct {
	*account.Access
	// Config is that of Sessions; EndpointOrigin says what set its endpoint, such as
	// "STACKIT_API_ENDPOINT".
	Config         spi.Config
	EndpointOrigin string
	// ConfigError says why Config cannot be used, and that the cloud is not looked at.
	ConfigError error
	// ControlVersion and TargetVersion ask Control and Target for their versions.
	ControlVersion, TargetVersion discovery.ServerVersionInterface
	// ServiceAccount is the sidecar's, as "name" or "namespace/name"; "" means that of its
	// Deployment.
	ServiceAccount string
	// Report is told each Finding as it comes; Looking what is looked at next. Nil if nobody
	// wants to know.
	Report  func(report.Finding)
	Looking func(what string)

	findings report.Findings
	// place is where the findings are about now.
	place place
	// accounts are those of the cloud's part, servers what they show.
	accounts []*account.Account
	servers  map[*account.Account][]provider.Server
	// machines are those of all namespaces, and owners finds them; nil if they were not read.
	machines []v1alpha1.Machine
	owners   *account.Owners
	// classes are those of Namespace; unusable are those whose credentials were found wrong
	// already.
	classes  []account.Class
	unusable map[string]bool
}

// place is the project and region of findings. suffix tells their subjects from those of
// other accounts; "" if there is only one.
type place struct{ projectID, region, suffix string }

func (d *Doctor) placeOf(in *account.Account) place {
	at := place{projectID: in.Session.ProjectID, region: in.Region}
	if len(d.accounts) > 1 {
		at.suffix = fmt.Sprintf(" (project %s, %s)", at.projectID, at.region)
	}
	return at
}

func (d *Doctor) report(finding report.Finding) {
	finding.Subject += d.place.suffix
	finding.ProjectID, finding.Region = d.place.projectID, d.place.region
	d.findings = append(d.findings, finding)
	if d.Report != nil {
		d.Report(finding)
	}
}

func (d *Doctor) fine(subject, found string) {
	d.report(report.Finding{Verdict: report.Fine, Subject: subject, Found: found})
}

func (d *Doctor) wrong(subject, found, remedy string) {
	d.report(report.Finding{Verdict: report.Wrong, Subject: subject, Found: found, Remedy: remedy})
}

func (d *Doctor) unknown(subject, found, remedy string) {
	d.report(report.Finding{Verdict: report.Unknown, Subject: subject, Found: found, Remedy: remedy})
}

func (d *Doctor) hint(subject, found, remedy string) {
	d.report(report.Finding{Verdict: report.Hint, Subject: subject, Found: found, Remedy: remedy})
}

func (d *Doctor) looking(what string) {
	if d.Looking != nil {
		d.Looking(what)
	}
}

// unread reports that a cluster did not show something. The API server's refusals name the
// right that is missing.
func (d *Doctor) unread(subject string, err error) {
	remedy := ""
	if apierrors.IsForbidden(err) {
		remedy = "log in as somebody who may do that, or ask for the right"
	}
	d.unknown(subject, "cannot be read: "+report.OneLine(err.Error()), remedy)
}

// unconnected reports that a cluster cannot be asked: its kubeconfig is broken, or is not
// there.
func (d *Doctor) unconnected(subject string, err error, remedy string) {
	found := "not looked at: " + report.OneLine(err.Error())
	if isBroken(err) {
		d.wrong(subject, found, "correct the kubeconfig or the context, or "+remedy)
		return
	}
	d.unknown(subject, found, remedy)
}

// isBroken says whether a kubeconfig is there and cannot be used: it cannot be parsed, or
// lacks the context.
func isBroken(err error) bool {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if clientcmd.IsEmptyConfig(cause) {
			return false
		}
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// isUnread says whether an error means that something could not be looked at, and not that
// it is wrong.
func (d *Doctor) isUnread(err error) bool {
	var status apierrors.APIStatus
	var request *url.Error
	return errors.As(err, &status) || errors.As(err, &request) || errors.Is(err, context.Canceled) ||
		errors.Is(err, account.ErrNoSecret) && d.Control == nil
}
