// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/stackitcloud/stackit-sdk-go/core/config"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/recent"
)

// Credentials holds a project and the credentials of a service account: a key or a workload
// identity.
type Credentials struct {
	// ProjectID is the UUID of the project in which the session works.
	ProjectID string
	// ServiceAccountKey is a service-account key in JSON; "" for a workload identity.
	ServiceAccountKey string
	// ServiceAccountEmail is the email address of a workload identity's service account, which must
	// trust the issuer of Token.
	ServiceAccountEmail string
	// Token is the token of the workload identity, a JWT.
	Token string
}

// Session is an authenticated client of the IaaS API for one project. It is safe
// for concurrent use.
type Session struct {
	// API is the SDK's client, with the session's authentication and retries. Call Reads.Wait before
	// each read.
	API iaas.DefaultAPI
	// ProjectID is the project of the credentials.
	ProjectID string
	// Endpoint is the base URL of the API.
	Endpoint string
	// KeyExpiry is when the service-account key expires (its validUntil); the zero time without a
	// key, or if the key does not expire.
	KeyExpiry time.Time
	// Reads limits the session's reads; nil means no limit. Callers must call Wait before each read
	// through API. The session itself waits before it retries a read, or sends a read that a
	// Retry-After held back.
	Reads *Reads
}

// SessionProviderInterface opens sessions. It separates the driver from the cloud: tests, and
// clouds with the same API, can provide their own implementation.
type SessionProviderInterface interface {
	// Session returns the session for the credentials, without an API call. Equal credentials share
	// a session, which is dropped after an hour without use. The error is a *CredentialsError if
	// the credentials cannot be used.
	Session(Credentials) (*Session, error)
}

// PluginSPIImpl is the SessionProviderInterface for STACKIT. The zero value is ready to use. Its
// fields must not be changed after the first call of Session.
type PluginSPIImpl struct {
	// Config holds the URLs of the API and the token endpoints.
	Config Config
	// Limiter limits the API calls of all sessions together, retries included; nil means no limit.
	Limiter *rate.Limiter
	// Fence holds back API calls, except requests for tokens, after a pause of this process. Nil
	// means no fence, for a process without leader election.
	Fence *Fence
	// UserAgent is the User-Agent header of every request; "" means
	// "machine-controller-manager-provider-stackit".
	UserAgent string
	// Transport sends the requests, including requests for tokens; nil means the result of
	// NewTransport. It must call WroteHeaders of the request's httptrace.ClientTrace, as net/http
	// does: a request that fails without this call counts as never sent.
	Transport http.RoundTripper
	// Clock is the time source, for tests; nil means the real clock. Limiter and the deadline of an
	// attempt always follow the real clock.
	Clock clock.Clock
	// Jitter returns a number from 0 to 1 that varies the length of a backoff or pause; nil means
	// rand.Float64. Tests set it to make these lengths repeatable.
	Jitter func() float64

	// mu is held while a session is built, so that equal credentials share one.
	mu sync.Mutex
	// sessions has the sessions by sessionKey; nil before the first.
	sessions *recent.Map[string, *Session]
}

// idleAfter is how long a session is kept without use, so that the old key does not stay in memory
// after a rotation.
const idleAfter = time.Hour

// Session implements SessionProviderInterface. It does not cache failures.
func (s *PluginSPIImpl) Session(credentials Credentials) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.init()
	}
	key := credentials.sessionKey()
	if session, ok := s.sessions.Lookup(key); ok {
		return session, nil
	}
	session, err := s.newSession(credentials)
	if err == nil {
		s.sessions.Set(key, session)
	}
	return session, err
}

// sessionKey returns the session's cache key: a hash of all credentials, so that none of them is
// stored and no caller gets a session of other credentials.
func (c Credentials) sessionKey() string {
	hash := sha256.New()
	for _, part := range []string{c.ProjectID, c.ServiceAccountKey, c.ServiceAccountEmail, c.Token} {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // never fails, by its documentation
	}
	return string(hash.Sum(nil))
}

// init sets the defaults of unset fields.
func (s *PluginSPIImpl) init() {
	if s.Transport == nil {
		s.Transport = NewTransport()
	}
	if s.Jitter == nil {
		s.Jitter = rand.Float64
	}
	s.Clock = cmp.Or[clock.Clock](s.Clock, clock.RealClock{})
	s.UserAgent = cmp.Or(s.UserAgent, "machine-controller-manager-provider-stackit")
	s.sessions = recent.New[string, *Session](s.Clock, idleAfter)
}

func (s *PluginSPIImpl) newSession(credentials Credentials) (*Session, error) {
	reads := newReads(s.Clock, s.Jitter)
	chain, err := s.newChain(credentials, reads)
	if err != nil {
		return nil, err
	}
	endpoint := cmp.Or(s.Config.Endpoint, DefaultEndpoint)
	// The SDK writes its auth round tripper into the client it is given, so every
	// session has a client of its own; the chain below does the authentication.
	client, err := iaas.NewAPIClient(
		config.WithHTTPClient(&http.Client{CheckRedirect: refuseRedirects}),
		config.WithCustomAuth(chain),
		config.WithEndpoint(endpoint),
		config.WithUserAgent(s.UserAgent),
	)
	if err != nil {
		return nil, fmt.Errorf("creating the IaaS API client: %w", err)
	}
	session := &Session{API: client.DefaultAPI, ProjectID: credentials.ProjectID, Endpoint: endpoint, Reads: reads}
	if key, err := parseKey(credentials.ServiceAccountKey); err == nil && key.ValidUntil != nil {
		session.KeyExpiry = *key.ValidUntil
	}
	return session, nil
}

// newChain returns the chain in the package's doc, built from the inside out: the order matters.
// Requests for access tokens pass only its inner end, an attempt.
func (s *PluginSPIImpl) newChain(credentials Credentials, reads *Reads) (http.RoundTripper, error) {
	attempt := func(isToken bool, limit int) http.RoundTripper {
		body := &bodyReader{next: s.Transport, limit: limit}
		return &deadlined{&metered{next: body, clock: s.Clock, config: s.Config, isToken: isToken}}
	}
	chain := attempt(false, maxAnswer)
	limits := &limited{next: chain, limiter: s.Limiter}
	if s.Fence != nil {
		limits.next = &fenced{next: chain, fence: s.Fence, queue: limits}
	}
	chain = &paced{next: limits, clock: s.Clock, jitter: s.Jitter, kinds: map[string]*kind{}}
	if !s.Config.NoAuth {
		exchange, endpoint, err := s.newExchange(credentials)
		if err != nil {
			return nil, err
		}
		tokens := &tokenSource{exchange: exchange, endpoint: endpoint, next: attempt(true, maxTokenAnswer),
			clock: s.Clock, jitter: s.Jitter}
		chain = &authenticated{next: chain, tokens: tokens, reads: reads}
	}
	return &retrying{next: chain, reads: reads, clock: s.Clock, jitter: s.Jitter}, nil
}

// newExchange returns the exchange for the credentials and the URL of their token endpoint, or an error
// if they cannot work.
func (s *PluginSPIImpl) newExchange(c Credentials) (exchange, string, error) {
	switch {
	case c == Credentials{ProjectID: c.ProjectID}:
		return nil, "", ErrNoCredentials
	case c.ServiceAccountKey == "":
		endpoint := s.Config.IdentityEndpoint()
		exchange, err := identityExchange(endpoint, c.ServiceAccountEmail, c.Token, s.Clock)
		return exchange, endpoint, err
	case c == Credentials{ProjectID: c.ProjectID, ServiceAccountKey: c.ServiceAccountKey}:
		return keyExchange(s.Config, c.ServiceAccountKey)
	default:
		return nil, "", &CredentialsError{
			Reason: "the service account has both a key and a workload identity: set only one of them",
		}
	}
}
