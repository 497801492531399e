// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// Token requests carry the local time, and the driver allows 10 s between the API server's clock and its own.
	clockHint, clockWrong = 5 * time.Second, 30 * time.Second
)

// Subjects of findings.
const (
	subjectCredentials = "credentials"
	subjectKey         = "service-account key"
	subjectIdentity    = "workload identity"
	subjectReads       = "reads"
)

// accountCheck checks one account for the Doctor.
type accountCheck struct {
	*Doctor
	*account.Account
	secret *apis.Secret
	// first is the first read, used to check the clock and the token.
	first *answer
	// server and network are examples for later reads; "" if there is none.
	server, network string
}

// answer is the result of a read of the API.
type answer struct {
	err error
	// date is the clock of the server that answered, zero without an answer. The read lasted from start to end.
	date, start, end time.Time
}

// ask makes a read.
func (p *accountCheck) ask(ctx context.Context, read *driverRead) *answer {
	got := &answer{}
	_, date, err := account.Ask(ctx, p.Account, read.what, func(ctx context.Context) (struct{}, error) {
		got.start = p.Clock.Now()
		return struct{}{}, read.call(p, ctx)
	})
	got.err, got.date, got.end = err, date, p.Clock.Now()
	return got
}

// reportCredentials reports why there is no account.
func (d *Doctor) reportCredentials(subject string, problem error) {
	remedy := "correct the Secret or the flag"
	var unusable *spi.CredentialsError
	var status apierrors.APIStatus
	if errors.As(problem, &unusable) {
		remedy = account.CredentialsRemedy(unusable)
		if subject == subjectCredentials && unusable.Identity {
			subject = subjectIdentity
		} else if subject == subjectCredentials {
			subject = subjectKey
		}
	}
	switch {
	case d.ControlError != nil && (errors.Is(problem, account.ErrNoCredentials) || errors.Is(problem, d.ControlError)):
		d.notTried("the API: its credentials are in the cluster's MachineClasses, which cannot be read: give them by flags")
	case errors.Is(problem, account.ErrNoCredentials), errors.Is(problem, account.ErrNoSecret) && d.Control == nil:
		d.unknown(subject, problem.Error(), "")
	case errors.As(problem, &status):
		d.unread(subject, problem)
	default:
		d.wrong(subject, problem.Error(), remedy)
	}
}

// checkCredentials checks the service-account key or the workload identity locally. It runs before the API is called,
// which may take long.
func (p *accountCheck) checkCredentials(context.Context) {
	p.fine(subjectCredentials, fmt.Sprintf("project %s in %s, from %s", p.Session.ProjectID, p.Region, p.Origin))
	switch {
	case p.Sessions.Config.NoAuth:
		p.hint(subjectKey, "not used: "+spi.EnvNoAuth+" is set", "unset it, unless the API is a local mock")
	case p.secret.HasIdentity():
		p.checkIdentity()
	default:
		p.checkKey()
	}
}

// checkIdentity checks the workload identity's token. Only STACKIT knows whether the service account trusts it.
func (p *accountCheck) checkIdentity() {
	of := "for service account " + p.secret.ServiceAccountEmail
	identity, err := spi.InspectIdentity(p.secret.Token, p.Clock.Now())
	if err != nil {
		p.reportCredentials(subjectCredentials, err)
		return
	}
	p.fine(subjectIdentity, fmt.Sprintf("token of subject %s by issuer %s, audience %s, %s, valid until %s UTC",
		identity.Subject, identity.Issuer, strings.Join(identity.Audience, " and "), of,
		identity.ExpiresAt.UTC().Format(time.DateTime)))
}

func (p *accountCheck) checkKey() {
	key, err := p.Sessions.Config.InspectKey(p.secret.ServiceAccountKey)
	if err != nil {
		p.reportCredentials(subjectCredentials, err)
		return
	}
	name := fmt.Sprintf("key %s of %s", key.ID, key.Issuer)
	findings := account.CheckKey(key, p.Session.ProjectID, p.Clock.Now())
	for _, found := range findings {
		p.report(found.Verdict, subjectKey, name+" "+found.Found, found.Remedy)
	}
	switch {
	case len(findings) > 0:
	case key.ValidUntil.IsZero():
		p.fine(subjectKey, name+", does not expire")
	default:
		p.fine(subjectKey, fmt.Sprintf("%s, valid until %s UTC", name, key.ValidUntil.UTC().Format(time.DateTime)))
	}
}

// checkClock compares the local clock with that of the server that answered. The Date header has whole seconds, and was
// written between start and end.
func (p *accountCheck) checkClock(ctx context.Context) {
	const subject = "clock"
	p.first = p.ask(ctx, &driverReads[0])
	if p.first.date.IsZero() {
		p.notTried("the clock: no answer had a Date header")
		return
	}
	ahead, behind := p.first.start.Sub(p.first.date.Add(time.Second)), p.first.date.Sub(p.first.end)
	skew, direction := ahead, "ahead of"
	if behind > ahead {
		skew, direction = behind, "behind"
	}
	found := fmt.Sprintf("%s %s the Date header of STACKIT's answer", max(skew, 0).Round(time.Second), direction)
	const remedy = "synchronise this computer's clock (NTP), and check the clocks of the sidecar's nodes, too: " +
		"token requests carry the local time"
	switch {
	case skew > clockWrong:
		p.wrong(subject, found, remedy)
	case skew > clockHint:
		p.hint(subject, found, remedy)
	default:
		p.fine(subject, "agrees with the Date header of STACKIT's answer")
	}
}

// checkToken reports whether the token endpoint granted a token that the API accepts.
func (p *accountCheck) checkToken(context.Context) {
	if p.Sessions.Config.NoAuth {
		return
	}
	const subject = "token"
	endpoint := p.tokenEndpoint()
	remedy, isRefused := p.RefusedRemedy(p.first.err)
	var failure *spi.TokenError
	var unanswered *url.Error
	switch err := p.first.err; {
	case errors.As(err, &failure) && isRefused:
		p.wrong(subject, fmt.Sprintf("refused by %s: %v", endpoint, failure), remedy)
	case errors.As(err, &failure):
		p.unknown(subject, fmt.Sprintf("not granted by %s: %v", endpoint, failure),
			"try again later; if the problem persists, check the endpoint, and the proxy and the CAs of this computer")
	case isRefused:
		p.wrong(subject, fmt.Sprintf("granted by %s, but the API does not accept it", endpoint), remedy)
	case errors.As(err, &unanswered), errors.Is(err, context.DeadlineExceeded):
		p.notTried("the token: no answer of the API shows whether it accepts the token")
	default:
		p.fine(subject, "granted by "+endpoint)
	}
}

// tokenEndpoint returns the URL of the token endpoint.
func (p *accountCheck) tokenEndpoint() string {
	if p.secret.HasIdentity() {
		return p.Sessions.Config.IdentityEndpoint()
	}
	key, err := p.Sessions.Config.InspectKey(p.secret.ServiceAccountKey)
	if err != nil {
		return ""
	}
	return key.TokenEndpoint
}

// driverRead is a read that the driver makes.
type driverRead struct {
	// what is read, and its permission in the API document.
	what, permission string
	// openStack means that only Machines from OpenStack need the read.
	openStack bool
	// of returns an example ID that the read needs; nil if it needs none.
	of   func(*accountCheck) string
	call func(*accountCheck, context.Context) error
}

// driverReads are all reads that the driver makes; each may provide examples for later ones.
var driverReads = []driverRead{
	{"servers", "iaas.server.list", false, nil, func(p *accountCheck, ctx context.Context) error {
		list, err := p.Session.API.ListServers(ctx, p.Session.ProjectID, p.Region).Execute()
		if items := list.GetItems(); err == nil && len(items) > 0 {
			p.server = items[0].GetId()
		}
		return err
	}},
	{"a server", "iaas.server.get", false, listedServer, func(p *accountCheck, ctx context.Context) error {
		_, err := p.Session.API.GetServer(ctx, p.Session.ProjectID, p.Region, p.server).Execute()
		return err
	}},
	{"a server's NICs", "iaas.server.nic.list", false, listedServer, func(p *accountCheck, ctx context.Context) error {
		list, err := p.Session.API.ListServerNICs(ctx, p.Session.ProjectID, p.Region, p.server).Execute()
		if items := list.GetItems(); err == nil && len(items) > 0 {
			p.network = items[0].GetNetworkId()
		}
		return err
	}},
	{"a network's NICs", "iaas.nic.list", false, (*accountCheck).anyNetwork,
		func(p *accountCheck, ctx context.Context) error {
			_, err := p.Session.API.ListNics(ctx, p.Session.ProjectID, p.Region, p.anyNetwork()).Execute()
			return err
		}},
	{"volumes", "iaas.volume.list", true, nil, func(p *accountCheck, ctx context.Context) error {
		_, err := p.Session.API.ListVolumes(ctx, p.Session.ProjectID, p.Region).Execute()
		return err
	}},
}

// listedServer returns the ID of a listed server; "" if there is none.
func listedServer(p *accountCheck) string { return p.server }

// anyNetwork returns the ID of a server's network, or else of the network in a class or the Secret.
func (p *accountCheck) anyNetwork() string {
	if p.network != "" {
		return p.network
	}
	for _, class := range p.Classes {
		if spec := provider.Inspect(class.MachineClass, p.Secret).Spec; spec.Networking != nil &&
			spec.Networking.NetworkID != "" {
			return spec.Networking.NetworkID
		}
	}
	return p.secret.NetworkID
}

// checkReads makes each of the driver's reads, until the API does not answer.
func (p *accountCheck) checkReads(ctx context.Context) {
	var token *spi.TokenError
	if _, isRefused := p.RefusedRemedy(p.first.err); isRefused || errors.As(p.first.err, &token) {
		p.notTried("reads of the API: there is no token")
		return
	}
	failed, goesOn := false, true
	for i := range driverReads {
		read := &driverReads[i]
		missing := read.of != nil && read.of(p) == ""
		switch {
		case read.openStack && !p.fromOpenStack:
			continue
		case !goesOn:
			p.notTried(fmt.Sprintf("reading %s (%s): an earlier read failed", read.what, read.permission))
			continue
		case missing && failed:
			p.notTried(fmt.Sprintf("reading %s (%s): none is known, and an earlier read failed", read.what, read.permission))
			continue
		case missing:
			p.notTried(fmt.Sprintf("reading %s (%s): there is none to read", read.what, read.permission))
			continue
		}
		got := p.first
		if i > 0 {
			got = p.ask(ctx, read)
		}
		failed = failed || got.err != nil
		goesOn = p.reportRead(read, got)
	}
}

// reportRead reports whether the read is allowed. goesOn reports whether further reads make sense.
func (p *accountCheck) reportRead(read *driverRead, got *answer) (goesOn bool) {
	switch {
	case got.err == nil, read.of != nil && provider.IsNotFound(got.err):
		p.fine(subjectReads, read.what+": allowed")
	case account.Status(got.err) == http.StatusForbidden:
		p.wrong(subjectReads, read.what+": not allowed (status 403): the driver needs it",
			fmt.Sprintf("give the service account the permission %s in project %s, or correct %s", read.permission,
				p.Session.ProjectID, p.given("projectId in the Secret")))
	case account.Status(got.err) == http.StatusNotFound:
		p.wrong(subjectReads, fmt.Sprintf("%s: %v", read.what, got.err), p.remedyPlace())
	default:
		_, text := provider.Classify(got.err)
		p.unknown(subjectReads, fmt.Sprintf("%s: %s: %s", read.what, p.Session.Endpoint, text),
			"try again later; if the problem persists, check the endpoint, and the proxy and the CAs of this computer")
		return false
	}
	return true
}

// given names the flags and variables that gave the credentials; or else inSecret, which names fields of the Secret.
func (p *accountCheck) given(inSecret string) string {
	if p.Direct != nil {
		return "one of " + p.Direct.Origin
	}
	return inSecret
}

// remedyPlace returns the remedy for a project and region that the API does not know.
func (p *accountCheck) remedyPlace() string {
	inSecret := "projectId and region in the Secret or the class"
	if p.Doctor.Region != "" {
		inSecret = "projectId in the Secret, or --region"
	}
	remedy := "correct " + p.given(inSecret)
	if zone := account.ZoneAsRegion(p.Region); zone != "" {
		remedy += "; " + p.Region + " " + zone
	}
	return remedy
}
