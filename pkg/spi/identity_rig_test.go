// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// identity is a workload's, which a service account of the rig's cloud trusts.
type identity struct {
	*rig
	issuer *workload.Issuer
	email  string
}

// newIdentity makes the cloud trust a new issuer. Sessions use the cloud's endpoint for
// workload identities.
func newIdentity(r *rig) *identity {
	r.t.Helper()
	issuer, err := workload.NewIssuer()
	if err != nil {
		r.t.Fatal(err)
	}
	email, err := issuer.NewServiceAccount(r.cloud, iaasmock.DefaultProjectID)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sessions.Config.IdentityURL = r.sessions.Config.Endpoint + "/oauth/v2/token"
	r.sessions.Config.PodTokenFile = filepath.Join(r.t.TempDir(), "no-token")
	return &identity{rig: r, issuer: issuer, email: email}
}

// token is one that the cloud takes, but for the claims that change replaces.
func (i *identity) token(change map[string]any) string {
	i.t.Helper()
	token, err := i.issuer.Token(time.Now().Add(time.Hour), change)
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// list makes an API call with the credentials. It waits 10 s at most: to open a pipe waits for ever.
func (i *identity) list(credentials Credentials) error {
	credentials.ProjectID, credentials.ServiceAccountEmail = iaasmock.DefaultProjectID, i.email
	session, err := i.sessions.Session(credentials)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(i.t.Context(), 10*time.Second)
	defer cancel()
	return list(ctx, session)
}

// wantNotSent checks that a token was refused, and not sent.
func (i *identity) wantNotSent(err error) {
	i.t.Helper()
	if !IsRefused(err) {
		i.t.Errorf("got %v, want refused credentials", err)
	}
	if calls := i.cloud.CallCounts(); len(calls) > 0 {
		i.t.Errorf("there were calls: %v", calls)
	}
}

// writeFile makes a file, and the folders above it.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	makeFolder(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeFolder(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// makePipe makes a named pipe that nobody writes to.
func makePipe(t *testing.T, path string) {
	t.Helper()
	makeFolder(t, filepath.Dir(path))
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link.
func link(t *testing.T, target, path string) {
	t.Helper()
	makeFolder(t, filepath.Dir(path))
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
