// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// The SDK's flow would take what is not set from the environment.
func TestAWorkloadIdentityIsExchanged(t *testing.T) {
	for _, name := range []string{"STACKIT_SERVICE_ACCOUNT_EMAIL", "STACKIT_FEDERATED_TOKEN_FILE",
		"STACKIT_IDP_TOKEN_ENDPOINT", "STACKIT_PRIVATE_KEY"} {
		t.Setenv(name, "not-to-be-used")
	}
	i := newIdentity(newRig(t))
	dir := t.TempDir()
	i.sessions.Config.IdentityDirs = dir
	writeFile(t, dir+"/token", i.token(nil)+"\n")
	for name, credentials := range map[string]Credentials{
		"a token": {Token: i.token(nil)}, "a file": {TokenFile: dir + "/token"},
		"a token beside a file": {Token: i.token(map[string]any{"jti": "2"}), TokenFile: "/a/file/that/is/not/there"},
		"two audiences": {
			Token: i.token(map[string]any{"aud": []string{workload.Audience, "https://kubernetes.example"}})},
	} {
		if err := i.list(credentials); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	if tokens := i.cloud.CallCounts()["Token"]; tokens != 4 {
		t.Errorf("%d exchanges, want 4", tokens)
	}
	t.Setenv("STACKIT_SERVICE_ACCOUNT_EMAIL", i.email)
	i.email = ""
	if err := i.list(Credentials{Token: i.token(nil)}); !IsRefused(err) {
		t.Errorf("with the environment's service account: %v", err)
	}
}

// What is not sent cannot be used by whoever gets it.
func TestTokensThatAreNotSent(t *testing.T) {
	const podAudience = "https://api.cluster.example"
	amongOthers := []string{workload.Audience, "https://kubernetes.default.svc"}
	for name, row := range map[string]struct {
		claims map[string]any
		// token replaces the one that has the claims.
		token, says string
	}{
		"expired": {claims: map[string]any{"exp": time.Now().Add(-time.Second).Unix()},
			says: "expired at"},
		"without an end":      {claims: map[string]any{"exp": nil}, says: "no exp"},
		"without an audience": {claims: map[string]any{"aud": nil}, says: "no aud"},
		"an API server's": {claims: map[string]any{"aud": "https://kubernetes.default.svc.cluster.local"},
			says: "Kubernetes API server"},
		"a short API server's": {claims: map[string]any{"aud": "kubernetes.default.svc"},
			says: "Kubernetes API server"},
		"an API server's among others": {claims: map[string]any{"aud": amongOthers}, says: "Kubernetes API server"},
		"a shoot's as a URL": {claims: map[string]any{"aud": "https://Kubernetes:443/"},
			says: "Kubernetes API server"},
		"the pod's own API server's": {claims: map[string]any{"aud": podAudience}, says: "Kubernetes API server"},
		"no JWT":                     {token: "s3cr3t", says: "not a JWT"},
		"too long":                   {token: strings.Repeat("s3cr3t", maxIdentity), says: "16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIdentity(newRig(t))
			token := row.token
			if token == "" {
				token = i.token(row.claims)
			}
			dir := t.TempDir()
			i.sessions.Config.IdentityDirs, i.sessions.Config.podTokenFile = dir, filepath.Join(t.TempDir(), "token")
			writeFile(t, i.sessions.Config.podTokenFile, i.token(map[string]any{"aud": podAudience}))
			writeFile(t, dir+"/token", token)
			_, err := i.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountEmail: i.email, Token: token})
			i.wantNotSent(err) // by then, with the other faults of a class
			for from, credentials := range map[string]Credentials{"a Secret": {Token: token},
				"a file": {TokenFile: dir + "/token"}} {
				err := i.list(credentials)
				i.wantNotSent(err)
				if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("of %s: %v, want that it says %q", from, err, row.says)
				}
			}
		})
	}
}

func TestAKeyAndAWorkloadIdentityAreRefused(t *testing.T) {
	i := newIdentity(newRig(t))
	i.wantNotSent(i.list(Credentials{ServiceAccountKey: string(i.key), Token: i.token(nil)}))
	if _, err := i.sessions.Session(Credentials{ProjectID: testProject}); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("without either: %v", err)
	}
}

// A call that waits keeps its session: the file is read again, and a Secret's new token is
// another session's.
func TestARenewedTokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIdentity(newRig(t, iaasmock.WithTokenLifetime(10*time.Minute)))
		dir := t.TempDir()
		i.sessions.Config.IdentityDirs = dir
		file := Credentials{TokenFile: dir + "/token"}
		inSecret := Credentials{Token: i.token(nil)}
		writeFile(t, file.TokenFile, inSecret.Token)
		for _, credentials := range []Credentials{file, inSecret} {
			if err := i.list(credentials); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(2 * time.Hour)
		i.cloud.ResetCalls()
		for _, credentials := range []Credentials{file, inSecret} {
			i.wantNotSent(i.list(credentials))
		}
		<-time.After(maxPause)
		writeFile(t, file.TokenFile, i.token(nil))
		for _, credentials := range []Credentials{file, {Token: i.token(nil)}} {
			if err := i.list(credentials); err != nil {
				t.Errorf("after the token was renewed: %v", err)
			}
		}
	})
}

// A token that nobody signed must not be good for the session that another Secret's made.
func TestAMadeUpTokenFindsNoSession(t *testing.T) {
	i := newIdentity(newRig(t))
	good := i.token(nil)
	if err := i.list(Credentials{Token: good}); err != nil {
		t.Fatal(err)
	}
	madeUp := i.token(map[string]any{"jti": "made-up"})
	forged := madeUp[:strings.LastIndex(madeUp, ".")] + good[strings.LastIndex(good, "."):]
	if err := i.list(Credentials{Token: forged}); !IsRefused(err) {
		t.Errorf("a token that nobody signed: %v, want refused", err)
	}
}

// Whoever writes a Secret names the file: no file of the pod outside of the operator's
// folders may be sent anywhere.
func TestIdentityFiles(t *testing.T) {
	const (
		noFile    = "not a regular file"
		elsewhere = "--" + FlagIdentityDirs
		leadsOut  = "escapes"
	)
	type paths = []string
	type links = map[string]string
	for name, row := range map[string]struct {
		// file is the path that the Secret has, below a temporary folder as all paths here.
		file string
		// tokens are files with a token, pipes are named pipes, and links lead somewhere.
		tokens, pipes paths
		links         links
		// spaces are at the end of each file.
		spaces int
		// says is what the refusal says; "" if the token is sent.
		says string
	}{
		"a file":      {file: "/dir/token", tokens: paths{"/dir/token"}, spaces: 1},
		"over 16 KiB": {file: "/dir/token", tokens: paths{"/dir/token"}, spaces: maxIdentity, says: "at most 16384 bytes"},
		"a projected volume": {file: "/dir/token", tokens: paths{"/dir/..2026_01_02_03_04_05.678/token"},
			links: links{"/dir/..data": "..2026_01_02_03_04_05.678", "/dir/token": "..data/token"}},
		"below a folder that is a link": {file: "/var/run/token", tokens: paths{"/run/token"},
			links: links{"/var/run": "../run"}},
		"..": {file: "/dir/../elsewhere/token", tokens: paths{"/elsewhere/token", "/dir/token"}, says: leadsOut},
		"a link that leads out": {file: "/dir/token", tokens: paths{"/elsewhere/token"},
			links: links{"/dir/token": "../elsewhere/token"}, says: leadsOut},
		"outside":     {file: "/elsewhere/token", tokens: paths{"/elsewhere/token"}, says: elsewhere},
		"a lookalike": {file: "/dirs/token", tokens: paths{"/dirs/token"}, says: elsewhere},
		"a folder":    {file: "/dir/a", tokens: paths{"/dir/a/token"}, says: noFile},
		"a pipe":      {file: "/dir/a", pipes: paths{"/dir/a"}, says: noFile},
	} {
		t.Run(name, func(t *testing.T) {
			i, root := newIdentity(newRig(t)), t.TempDir()
			i.sessions.Config.IdentityDirs = "/not/there," + root + "/dir," + root + "/var/run"
			for _, path := range row.tokens {
				writeFile(t, root+path, i.token(nil)+strings.Repeat(" ", row.spaces))
			}
			for _, path := range row.pipes { // nobody writes to it
				makeFolderOf(t, root+path)
				if err := syscall.Mkfifo(root+path, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for path, target := range row.links {
				if filepath.IsAbs(target) {
					target = root + target
				}
				makeFolderOf(t, root+path)
				if err := os.Symlink(target, root+path); err != nil {
					t.Fatal(err)
				}
			}
			err := i.list(Credentials{TokenFile: root + row.file})
			if row.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			i.wantNotSent(err)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want that it says %q", err, row.says)
			}
		})
	}
}

// A token below an allowed folder in place of a file must not be in the error, which the manager
// writes to the Machine's status.
func TestAnIdentityFileThatIsATokenIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, dir := newIdentity(newRig(t)), t.TempDir()
		i.sessions.Config.IdentityDirs = dir
		token := i.token(nil)
		for _, file := range []string{token, dir + "/" + token, dir + "/" + strings.Repeat("the-canary\n", 100)} {
			err := i.list(Credentials{TokenFile: file})
			if err == nil || strings.Contains(err.Error(), token[:10]) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want an error without the token", err)
			}
			<-time.After(maxPause)
		}
	})
}

// A file that does not exist may be renewed right now: the manager comes back in seconds.
func TestAnIdentityFileThatIsNotThereIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, dir := newIdentity(newRig(t)), t.TempDir()
		i.sessions.Config.IdentityDirs = dir
		err := i.list(Credentials{TokenFile: dir + "/token"})
		if err == nil || IsRefused(err) || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %v, want a failure that is no refusal", err)
		}
	})
}

func TestCheckIdentityDirs(t *testing.T) {
	for dirs, ok := range map[string]bool{
		DefaultIdentityDirs: true, "/a": true, "/a/b,/c": true,
		"": false, "/": false, "a": false, "/a/": false, "/a/../b": false, "/a,": false, "/a, /b": false,
	} {
		if err := CheckIdentityDirs(dirs); (err == nil) != ok {
			t.Errorf("%q: %v, want ok=%t", dirs, err, ok)
		}
	}
}

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
	r.sessions.Config.podTokenFile = filepath.Join(r.t.TempDir(), "no-token")
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
	makeFolderOf(t, path)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeFolderOf(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
}
