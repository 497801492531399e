// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stackitcloud/stackit-sdk-go/core/clients"
	"k8s.io/utils/clock"
)

// InspectIdentity parses the token of a workload identity and checks whether a session would send
// it at the time now. The returned claims have an audience, and an ExpiresAt after now. The error
// is a *CredentialsError that does not quote the token. Signature, issuer and subject are not
// verified: only STACKIT can do that.
func (c Config) InspectIdentity(token string, now time.Time) (*jwt.RegisteredClaims, error) {
	claims, err := identityClaims(token)
	switch {
	case err != nil:
		return nil, err
	case claims.ExpiresAt == nil, len(claims.Audience) == 0:
		return nil, identityError("token has no expiry (exp) or no audience (aud): it needs both, and the audience that " +
			"the service account's federated identity provider requires")
	case !now.Before(claims.ExpiresAt.Time):
		return nil, identityError("token expired at %s UTC: renew it", claims.ExpiresAt.UTC().Format(time.DateTime))
	case slices.ContainsFunc(claims.Audience, c.isAPIServers()):
		return nil, identityError("token is for the Kubernetes API server and must not be sent elsewhere: " +
			"it needs an audience of its own")
	}
	return claims, nil
}

// identityClaims parses a token without verifying its signature.
func identityClaims(token string) (*jwt.RegisteredClaims, error) {
	if len(token) > maxIdentity {
		return nil, identityError("token is too large: must have at most %d bytes", maxIdentity)
	}
	claims := &jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return nil, identityError("token is not a JWT")
	}
	claims.Audience = slices.DeleteFunc(claims.Audience, func(audience string) bool { return audience == "" })
	return claims, nil
}

// isAPIServers returns a predicate that reports whether an audience is a Kubernetes API server's:
// it has the usual form, or the token with which this pod logs in has it.
func (c Config) isAPIServers() func(audience string) bool {
	var own []string
	token, _ := readWithin(path.Split(cmp.Or(c.podTokenFile, defaultPodTokenFile)))
	if claims, err := identityClaims(token); err == nil {
		own = claims.Audience
	}
	return func(audience string) bool {
		return apiServerAudience.MatchString(audience) || slices.Contains(own, audience)
	}
}

// apiServerAudience matches the usual audiences of API servers, as a URL or a host: "kubernetes"
// alone (Gardener's shoots), and every name that begins with "kubernetes.default" (kube-apiserver's
// default).
var apiServerAudience = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.-]*:)?/*kubernetes(\.default.*|[:/].*|\s*)$`)

// identityExchange returns an exchange that uses the SDK's flow for workload identities once. All
// fields are set, because the flow takes unset ones from the environment. A token file is read for
// each exchange, since it is renewed in place.
func identityExchange(config Config, email, token, tokenFile string, clock clock.PassiveClock) (exchange, error) {
	if email == "" {
		return nil, identityError("serviceAccountEmail is missing")
	}
	if token != "" {
		if _, err := config.InspectIdentity(token, clock.Now()); err != nil {
			return nil, err
		}
	} else if _, _, err := config.splitIdentityFile(tokenFile); err != nil {
		return nil, err
	}
	return func(attempt *tokenAttempt) (string, error) {
		token := token
		if token == "" {
			var err error
			if token, err = config.readIdentityFile(tokenFile); err != nil {
				return "", err
			}
		}
		if _, err := config.InspectIdentity(token, clock.Now()); err != nil {
			return "", err
		}
		flow := &clients.WorkloadIdentityFederationFlow{}
		err := flow.Init(&clients.WorkloadIdentityFederationFlowConfig{
			TokenUrl:               config.IdentityEndpoint(),
			ClientID:               email,
			HTTPTransport:          attempt,
			AuthHTTPClient:         &http.Client{Transport: attempt, CheckRedirect: refuseRedirects},
			FederatedTokenFunction: func(context.Context) (string, error) { return token, nil },
		})
		if err != nil {
			return "", errors.New("the workload identity cannot be used")
		}
		return accessToken(flow)
	}, nil
}

// maxIdentity is the size of the largest token of a workload identity, in bytes. kube-apiserver's
// have about 1,000.
const maxIdentity = 16 << 10

// FlagIdentityDirs is the name of the sidecar's flag for Config.IdentityDirs. Error texts contain
// it.
const FlagIdentityDirs = "stackit-workload-identity-dirs"

// DefaultIdentityDirs is the default of Config.IdentityDirs: the folders where Gardener and
// STACKIT's own tools mount the tokens of workload identities.
const DefaultIdentityDirs = "/var/run/secrets/gardener.cloud/workload-identity," +
	"/var/run/secrets/stackit.cloud/serviceaccount"

// defaultPodTokenFile is where Kubernetes mounts the pod's token for the API server. It is never
// sent elsewhere.
const defaultPodTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// ErrNoIdentityFile means that the file with a workload identity's token does not exist. The file
// may still appear, so this is not a *CredentialsError.
var ErrNoIdentityFile = errors.New("does not exist")

// CheckIdentityDirs returns an error unless dirs is a comma-separated list of absolute paths other
// than /, in their shortest form (path.Clean).
func CheckIdentityDirs(dirs string) error {
	for dir := range strings.SplitSeq(dirs, ",") {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("%q is not a folder for tokens: must be an absolute path other than /, "+
				"without a final slash, //, . or ..; the default is %s", dir, DefaultIdentityDirs)
		}
	}
	return nil
}

// splitIdentityFile splits a path that a Secret names into one of the operator's folders, and a name
// below it. No error shows the path: the token itself may stand in its place.
func (c Config) splitIdentityFile(file string) (dir, name string, err error) {
	dirs := cmp.Or(c.IdentityDirs, DefaultIdentityDirs)
	for dir := range strings.SplitSeq(dirs, ",") {
		if name, ok := strings.CutPrefix(file, dir+"/"); ok {
			return dir, name, nil
		}
	}
	return "", "", identityError("workloadIdentityTokenFile must be the absolute path of a file in %s; if the path is "+
		"correct, add its folder to the sidecar's flag --%s", strings.ReplaceAll(dirs, ",", " or "), FlagIdentityDirs)
}

// readIdentityFile returns the content of a file that a Secret names.
func (c Config) readIdentityFile(file string) (string, error) {
	dir, name, err := c.splitIdentityFile(file)
	if err != nil {
		return "", err
	}
	token, err := readWithin(dir, name)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is being renewed, or not mounted yet
		return "", fmt.Errorf("workloadIdentityTokenFile in %s %w", dir, ErrNoIdentityFile)
	case errors.As(err, &failed):
		return "", identityError("workloadIdentityTokenFile in %s cannot be read: %v", dir, failed.Err)
	case err != nil:
		return "", identityError("workloadIdentityTokenFile in %s cannot be read: %v", dir, err)
	}
	return token, nil
}

// readWithin returns the content of a regular file in a folder, without a final line break. Links, as
// in a projected volume, are followed within the folder, which may itself be behind a link (/var/run
// is a link to /run). A pipe would block.
func readWithin(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	case info.Size() > maxIdentity:
		return "", fmt.Errorf("it is too large: must have at most %d bytes", maxIdentity)
	}
	content, err := root.ReadFile(name)
	return strings.TrimSpace(string(content)), err
}
