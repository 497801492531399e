// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// examineCloud looks at each account, from the key to the reads of the API.
func (d *Doctor) examineCloud(ctx context.Context) {
	if d.ConfigError != nil {
		d.wrong("environment", "the cloud is not looked at: "+report.OneLine(d.ConfigError.Error()), "correct the variable, or unset it")
		return
	}
	d.looking("credentials")
	accounts, problems := d.Accounts(ctx)
	for _, problem := range problems {
		d.reportCredentials(problem)
	}
	d.accounts = accounts
	defer func() { d.place = place{} }()
	for _, account := range accounts {
		if ctx.Err() != nil {
			return
		}
		d.place = d.placeOf(account)
		p := &accountCheck{Doctor: d, Account: account}
		p.fine("credentials", fmt.Sprintf("project %s in %s, from %s", account.Session.ProjectID, account.Region, account.Origin))
		p.examineKey()
		p.examineAPI(ctx)
	}
}

// examineKey says what the service-account key, or the workload identity, tells of itself.
func (p *accountCheck) examineKey() {
	subject := subjectKey
	if p.Config.NoAuth {
		p.hint(subject, "not used: "+spi.EnvNoAuth+" is set", "unset it, unless the API is a local mock")
		return
	}
	secret, _ := apis.DecodeSecret(p.Secret.Data)
	if secret.HasIdentity() {
		p.examineIdentity(secret)
		return
	}
	key, err := p.Config.InspectKey(secret.ServiceAccountKey)
	if err != nil {
		p.reportCredentials(err)
		return
	}
	found := []string{fmt.Sprintf("key %s of %s", key.ID, key.Issuer)}
	if !key.CreatedAt.IsZero() {
		found = append(found, "created "+key.CreatedAt.UTC().Format(time.DateOnly))
	}
	const renew = "make a new key of the service account, put its JSON into the Secret, then delete this one"
	left := key.ValidUntil.Sub(p.Now())
	switch expires := key.ValidUntil.UTC().Format(time.DateTime); {
	case key.Inactive:
		p.wrong(subject, strings.Join(append(found, "not active"), ", "), renew)
	case key.ValidUntil.IsZero():
		p.fine(subject, strings.Join(append(found, "does not expire"), ", "))
	case left <= 0:
		p.wrong(subject, strings.Join(append(found, "expired at "+expires+" UTC"), ", "), renew)
	case left < keyExpiresSoon:
		p.hint(subject, strings.Join(append(found, fmt.Sprintf("expires at %s UTC, in %s", expires, report.Count(int(left/(24*time.Hour)), "day"))), ", "), renew)
	default:
		p.fine(subject, strings.Join(append(found, "valid until "+expires+" UTC"), ", "))
	}
}

// examineAPI makes the first read of the API, and the others if that got an answer.
func (p *accountCheck) examineAPI(ctx context.Context) {
	p.looking("the API")
	project, first := askTimed(ctx, p, account.Project, p.Session.ProjectID)
	if ctx.Err() != nil {
		return
	}
	granted := p.examineToken(first.err)
	answers := granted && p.examineEndpoint(first.err)
	p.examineClock(first)
	if !answers {
		p.unknown("project, region and reads", "not looked at: the API gave no answer that would tell", "")
		return
	}
	known := p.examineProject(project, first.err)
	p.examineRegion(ctx)
	if known {
		p.examineReads(ctx)
	} else {
		p.unknown("reads", "not looked at: without the project, none can be answered", "")
	}
}

// examineToken says whether the token endpoint granted an access token that the API takes.
func (p *accountCheck) examineToken(err error) (granted bool) {
	if p.Config.NoAuth {
		return true
	}
	subject := "token"
	at := p.tokenEndpoint()
	endpoint := at.url
	failure := tokenFailure(err)
	var unusable *spi.CredentialsError
	switch {
	case errors.As(err, &unusable):
		p.wrong(subject, "not asked for: "+report.OneLine(unusable.Error()), credentialsRemedy(err))
	case errors.Is(err, spi.ErrNoIdentityFile):
		p.unknown(subject, "not asked for: "+report.OneLine(failure.Error())+": it is a file of the sidecar's pod",
			"run doctor there, or with a key of the service account: --service-account-key-path")
	case failure != nil && failure.Refused:
		p.wrong(subject, fmt.Sprintf("refused by %s: %s", endpoint, report.OneLine(failure.Error())), at.refused)
	case failure != nil && !failure.Date.IsZero():
		p.unknown(subject, fmt.Sprintf("not granted by %s: %s", endpoint, report.OneLine(failure.Error())),
			"try again later; if it stays, check that "+at.variable+" is the whole URL of the token endpoint")
	case failure != nil:
		found, remedy := explainNoAnswer(err, endpoint)
		p.wrong(subject, fmt.Sprintf("none from %s: %s", endpoint, found), remedy)
	case statusOf(err) == http.StatusUnauthorized:
		p.wrong(subject, fmt.Sprintf("granted by %s, but the API does not accept it", endpoint),
			"check that the endpoints of API and token belong to the same environment of STACKIT, and the clock")
	case errors.Is(err, context.DeadlineExceeded):
		p.unknown(subject, fmt.Sprintf("neither %s nor the API answered in time", endpoint), "")
		return true
	default:
		p.fine(subject, "granted by "+endpoint)
		return true
	}
	return false
}

func (p *accountCheck) examineEndpoint(err error) (answers bool) {
	subject := "endpoint"
	endpoint := fmt.Sprintf("%s (%s)", p.Session.Endpoint, p.EndpointOrigin)
	if proxy := proxyOf(p.Session.Endpoint); proxy != "" {
		endpoint += " through the proxy " + proxy
	}
	var api *provider.APIError
	switch status := statusOf(err); {
	case err == nil:
		p.fine(subject, endpoint+" answers")
		return true
	case status == 0:
		found, remedy := explainNoAnswer(err, p.Session.Endpoint)
		p.wrong(subject, endpoint+": "+found, remedy)
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests:
		_, text := provider.Classify(err)
		p.unknown(subject, endpoint+": "+text, "try again later; the driver does so, too")
	case errors.As(err, &api) && api.Message == "":
		p.wrong(subject, fmt.Sprintf("%s: status %d without the API's own message: somebody else answers", endpoint, status),
			"check that the URL is right, and that no proxy or gateway answers in its place"+inTheWay(proxyOf(p.Session.Endpoint)))
	default:
		p.fine(subject, endpoint+" answers")
		return true
	}
	return false
}

// examineClock compares this computer's clock with that of who answered. An answer's date
// has no fractions of a second, and was written between start and end.
func (p *accountCheck) examineClock(got timedAnswer) {
	if got.date.IsZero() {
		return
	}
	subject := "clock"
	ahead, behind := got.start.Sub(got.date.Add(time.Second)), got.date.Sub(got.end)
	skew, direction := ahead, "ahead of"
	if behind > ahead {
		skew, direction = behind, "behind"
	}
	found := fmt.Sprintf("%s %s the Date of the answer", max(skew, 0).Round(time.Second), direction)
	const remedy = "synchronise this computer's clock (NTP), and look at those of the sidecar's nodes, too: tokens are asked for with the local time"
	switch {
	case skew > clockWrong:
		p.wrong(subject, found, remedy)
	case skew > clockHint:
		p.hint(subject, found, remedy)
	default:
		p.fine(subject, "agrees with the Date of the answer")
	}
}
