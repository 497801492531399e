// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// accountCheck checks one account for the Doctor.
type accountCheck struct {
	*Doctor
	*account.Account
	secret *apis.Secret
	// server is an example for later reads; "" if there is none.
	server string
}

func (p *accountCheck) run(ctx context.Context) {
	p.fine("credentials", fmt.Sprintf("project %s in %s, from %s", p.Session.ProjectID, p.Region, p.Origin))
	switch {
	case p.Sessions.Config.NoAuth:
		p.hint("service-account key", "not used: "+spi.EnvNoAuth+" is set")
	case p.secret.HasIdentity(): // only STACKIT knows whether the service account trusts its token
		p.fine("workload identity", "for service account "+p.secret.ServiceAccountEmail)
	default:
		p.checkKey()
	}
	p.checkReads(ctx)
}

func (p *accountCheck) checkKey() {
	const subject = "service-account key"
	key, err := p.Sessions.Config.InspectKey(p.secret.ServiceAccountKey)
	if err != nil { // there would be no session
		return
	}
	name := fmt.Sprintf("key %s of %s", key.ID, key.Issuer)
	findings := account.CheckKey(key, p.Session.ProjectID, p.Clock.Now())
	for _, found := range findings {
		p.report(found.Verdict, subject, name+" "+found.Found)
	}
	if len(findings) == 0 {
		p.fine(subject, name)
	}
}

// driverRead is a read that the driver makes.
type driverRead struct {
	// what is read, and its permission in the API document.
	what, permission string
	// of returns an example ID that the read needs; nil if it needs none.
	of   func(*accountCheck) string
	call func(*accountCheck, context.Context) error
}

// driverReads are all reads that the driver makes; each may provide examples for later ones.
var driverReads = []driverRead{
	{"servers", "iaas.server.list", nil, func(p *accountCheck, ctx context.Context) error {
		servers, err := p.Servers(ctx, nil)
		if len(servers) > 0 {
			p.server = servers[0].ID
		}
		return err
	}},
	{"a server", "iaas.server.get", listedServer, func(p *accountCheck, ctx context.Context) error {
		_, err := p.Server(ctx, p.server)
		return err
	}},
	{"a server's NICs", "iaas.server.nic.list", listedServer, func(p *accountCheck, ctx context.Context) error {
		_, _, err := p.Addresses(ctx, p.server)
		return err
	}},
	{"a network's NICs", "iaas.nic.list", (*accountCheck).anyNetwork, func(p *accountCheck, ctx context.Context) error {
		read := p.Session.API.ListNics(ctx, p.Session.ProjectID, p.Region, p.anyNetwork())
		_, _, err := account.Ask(ctx, p.Account, "a network's NICs",
			func(context.Context) (any, error) { return read.Execute() })
		return err
	}},
}

// listedServer returns the ID of a listed server; "" if there is none.
func listedServer(p *accountCheck) string { return p.server }

// anyNetwork returns the ID of the network in a class or its Secret; "" if there is none.
func (p *accountCheck) anyNetwork() string {
	for _, class := range p.Classes {
		if spec := class.Inputs.Spec; spec.Networking != nil && spec.Networking.NetworkID != "" {
			return spec.Networking.NetworkID
		}
	}
	return p.secret.NetworkID
}

// checkReads requests a token, and makes each of the driver's reads, until the API does not answer.
func (p *accountCheck) checkReads(ctx context.Context) {
	goesOn := true
	for i := range driverReads {
		read := &driverReads[i]
		switch {
		case !goesOn:
			p.notTried(fmt.Sprintf("reading %s (%s): an earlier read failed", read.what, read.permission))
			continue
		case read.of != nil && read.of(p) == "":
			p.notTried(fmt.Sprintf("reading %s (%s): none is known", read.what, read.permission))
			continue
		}
		err := read.call(p, ctx)
		if i == 0 && !p.Sessions.Config.NoAuth && !p.reportToken(err) {
			goesOn = false
			continue
		}
		goesOn = p.reportRead(read, err)
	}
}

// reportToken reports whether the first read got a token that the API accepts. Without an answer of the API that is
// unknown, and the read says why.
func (p *accountCheck) reportToken(err error) (granted bool) {
	const subject = "token"
	var failure *spi.TokenError
	verdict, text := report.Unknown, ""
	if err != nil {
		verdict, text = account.Judge(err)
	}
	switch reason := provider.ReasonIn(text); {
	case reason == provider.ReasonCredentialsRefused, errors.As(err, &failure):
		p.report(verdict, subject, text)
		return false
	case err == nil, account.Status(err) != 0:
		p.fine(subject, "granted and accepted")
	}
	return true
}

// reportRead reports whether the read is allowed. goesOn reports whether further reads make sense.
func (p *accountCheck) reportRead(read *driverRead, err error) (goesOn bool) {
	const subject = "reads"
	if err == nil || read.of != nil && provider.IsNotFound(err) {
		p.fine(subject, read.what+": allowed")
		return true
	}
	verdict, text := account.Judge(err)
	if account.Status(err) == http.StatusNotFound { // of a project or region: the driver's calls end with this reason
		reason := string(provider.ReasonResourceMissing)
		verdict, text = report.Wrong, reason+": "+err.Error()+"; "+report.RowOf(reason).Remedy
	}
	p.report(verdict, subject, fmt.Sprintf("%s (%s): %s", read.what, read.permission, text))
	return account.Status(err) == http.StatusForbidden
}
