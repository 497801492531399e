// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// Subjects of findings about what a service account logs in with.
const (
	subjectKey      = "service-account key"
	subjectIdentity = "workload identity"
)

func subjectOf(err *spi.CredentialsError) string {
	if err.Identity {
		return subjectIdentity
	}
	return subjectKey
}

// credentialsRemedy is what to do about credentials that no session can be made with.
func credentialsRemedy(err error) string {
	var unusable *spi.CredentialsError
	switch {
	case !errors.As(err, &unusable):
		return "correct the Secret or the flag"
	case unusable.Identity:
		return "renew the token, or correct what the Secret names"
	default:
		return "make a new key of the service account, and put its JSON into the Secret"
	}
}

// examineIdentity says what the workload identity tells of itself. STACKIT alone knows whether
// the service account trusts it.
func (p *accountCheck) examineIdentity(secret *apis.Secret) {
	account := "for service account " + secret.ServiceAccountEmail
	if secret.Token == "" {
		p.fine(subjectIdentity, fmt.Sprintf("token in %s %s", secret.WorkloadIdentityTokenFile, account))
		return
	}
	identity, err := p.Config.InspectIdentity(secret.Token, p.Now())
	if err != nil {
		p.reportCredentials(err)
		return
	}
	p.fine(subjectIdentity, report.OneLine(fmt.Sprintf("token of subject %s by issuer %s, audience %s, %s, valid until %s UTC", identity.Subject, identity.Issuer,
		strings.Join(identity.Audience, " and "), account, identity.ExpiresAt.UTC().Format(time.DateTime))))
}

// tokenEndpoint is where access tokens are asked for.
type tokenEndpoint struct {
	// url is empty if it cannot be told. variable is what overrides it.
	url, variable string
	// refused is what to do where it refuses.
	refused string
}

func (p *accountCheck) tokenEndpoint() tokenEndpoint {
	secret, _ := apis.DecodeSecret(p.Secret.Data)
	if secret.HasIdentity() {
		return tokenEndpoint{p.Config.IdentityEndpoint(), spi.EnvIdentityURL,
			"check that the service account has a federated identity provider with the token's issuer, subject and audience; or correct the clock"}
	}
	at := tokenEndpoint{"", spi.EnvTokenURL,
		"make a new key: this one was deleted or has expired, or belongs to another environment of STACKIT; or correct the clock"}
	if key, err := p.Config.InspectKey(secret.ServiceAccountKey); err == nil {
		at.url = key.TokenEndpoint
	}
	return at
}

// reportCredentials says why there is no account. A class of another provider's is for
// another sidecar.
func (d *Doctor) reportCredentials(problem error) {
	subject := "credentials"
	var class *account.ClassError
	var key *spi.CredentialsError
	if errors.As(problem, &class) {
		if account.IsForeign(class.Class) {
			return
		}
		d.unusable[class.Class.Name] = true
		subject, problem = account.Subject(class.Class), class.Err
	} else if errors.As(problem, &key) {
		subject = subjectOf(key)
	}
	if errors.Is(problem, account.ErrNoCredentials) {
		d.unknown(subject, report.OneLine(problem.Error()), "")
		return
	}
	if d.isUnread(problem) {
		d.unread(subject, problem)
		return
	}
	d.wrong(subject, report.OneLine(problem.Error()), credentialsRemedy(problem))
}
