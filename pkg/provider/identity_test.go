// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// newRigWithIdentity is a rig whose Secret has a service account with a workload identity
// instead of a key, but no token yet.
func newRigWithIdentity(t *testing.T, options ...iaasmock.Option) (*rig, *workload.Issuer) {
	t.Helper()
	r := newRig(t, options...)
	issuer, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	email, err := issuer.NewServiceAccount(r.cloud, iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	delete(r.secret.Data, "serviceAccountKey")
	r.secret.Data["serviceAccountEmail"] = []byte(email)
	r.identityDir = t.TempDir()
	r.restart()
	return r, issuer
}

// setToken renews the token: in the Secret, or in the file that it names.
func (r *rig) setToken(issuer *workload.Issuer, lifetime time.Duration, inFile bool) {
	r.t.Helper()
	token, err := issuer.Token(time.Now().Add(lifetime), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if !inFile {
		r.secret.Data["token"] = []byte(token)
		return
	}
	path := r.identityDir + "/token"
	r.secret.Data["workloadIdentityTokenFile"] = []byte(path)
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func TestAMachineWithAWorkloadIdentity(t *testing.T) {
	for name, inFile := range map[string]bool{"in the Secret": false, "in a file": true} {
		bubble(t, name, func(t *testing.T) {
			r, issuer := newRigWithIdentity(t)
			r.setToken(issuer, time.Hour, inFile)
			created := r.mustCreate(machine("m1"))
			if err := r.delete(withID(r.deleted(machine("m1")), created.ProviderID)); err != nil {
				t.Fatal(err)
			}
			r.wantNothingLeft()
		})
	}
}

// The Secret that a call was handed stays as it is: the manager comes back in seconds, with
// the token as it is then. A file is read again.
func TestATokenRenewedWhileACallWaits(t *testing.T) {
	const boot = 5 * time.Minute
	for name, row := range map[string]struct {
		inFile bool
		want   codes.Code
	}{"in the Secret": {false, codes.Unavailable}, "in a file": {true, codes.OK}} {
		bubble(t, name, func(t *testing.T) {
			r, issuer := newRigWithIdentity(t, iaasmock.WithBootDuration(boot), iaasmock.WithTokenLifetime(time.Minute))
			r.setToken(issuer, 90*time.Second, row.inFile)
			done := r.startCreate(machine("m1"))
			<-time.After(30 * time.Second)
			r.secret.Data = maps.Clone(r.secret.Data)
			r.setToken(issuer, time.Hour, row.inFile)
			if err := <-done; row.want == codes.OK && err != nil || row.want != codes.OK {
				wantCode(t, err, row.want)
			}
			r.mustCreate(machine("m1"))
			r.onlyServer()
		})
	}
}

func TestCredentialsOfASecret(t *testing.T) {
	const key, email, token, file = "serviceAccountKey", "serviceAccountEmail", "token", "workloadIdentityTokenFile"
	for name, row := range map[string]struct {
		set  map[string]string
		code codes.Code
		says []string
	}{
		"neither":                  {nil, codes.InvalidArgument, []string{"secret." + key + ": Required", email, token, file}},
		"key and token":            {map[string]string{key: "{}", email: "a@b.c", token: "t"}, codes.InvalidArgument, []string{"secret." + email + ": Forbidden", "secret." + token + ": Forbidden", key}},
		"key and a stray token":    {map[string]string{key: "{}", token: "t"}, codes.InvalidArgument, []string{"secret." + token + ": Forbidden"}},
		"Gardener's key and file":  {map[string]string{"serviceaccount.json": "{}", email: "a@b.c", file: "/f"}, codes.InvalidArgument, []string{"secret." + file + ": Forbidden"}},
		"token without an account": {map[string]string{token: "t"}, codes.InvalidArgument, []string{"secret." + email + ": Required"}},
		"account without a token":  {map[string]string{email: "a@b.c"}, codes.InvalidArgument, []string{"secret." + token + ": Required", file}},
		"account is no mail":       {map[string]string{email: "s3cr3t", token: "t"}, codes.InvalidArgument, []string{"secret." + email + ": Invalid"}},
		"token cannot be used":     {map[string]string{email: "a@b.c", token: "s3cr3t"}, codes.Unauthenticated, []string{"no JWT"}},
		"file is elsewhere":        {map[string]string{email: "a@b.c", file: "/var/run/secrets/kubernetes.io/serviceaccount/token"}, codes.Unauthenticated, []string{file, "--stackit-workload-identity-dirs"}},
		"and another field":        {map[string]string{email: "a@b.c", token: "s3cr3t", "projectId": "s3cr3t"}, codes.InvalidArgument, []string{"secret." + token + ": Invalid", "secret.projectId"}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			delete(r.secret.Data, key)
			for name, value := range row.set {
				r.secret.Data[name] = []byte(value)
			}
			_, err := r.create(machine("m1"))
			wantCode(t, err, row.code)
			for _, says := range row.says {
				if err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%v shows a value", err)
			}
			if calls := r.cloud.CallCounts(); len(calls) > 0 {
				t.Errorf("there were calls: %v", calls)
			}
		})
	}
}
