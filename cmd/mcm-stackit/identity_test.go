// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// podFile is a file of the sidecar's pod.
const podFile = "/var/run/secrets/stackit.cloud/serviceaccount/token"

// identityToken is a token of the issuer's that is valid for that long.
func identityToken(t *testing.T, issuer *workload.Issuer, lifetime time.Duration, change map[string]any) string {
	t.Helper()
	token, err := issuer.Token(time.Now().Add(lifetime), change)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newIssuer(t *testing.T) *workload.Issuer {
	t.Helper()
	issuer, err := workload.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

func TestValidateWorkloadIdentity(t *testing.T) {
	cloud, env := startMock(t)
	issuer := newIssuer(t)
	good := identityToken(t, issuer, time.Hour, nil)
	const file, dirs = "workloadIdentityTokenFile", "--stackit-workload-identity-dirs"
	type fields map[string]string
	for name, row := range map[string]struct {
		// fields take the place of the key.
		fields fields
		args   []string
		code   int
		says   string
	}{
		"token":                {fields{"serviceAccountEmail": "a@b.c", "token": good}, nil, 0, "nothing is wrong.\n"},
		"expired token":        {fields{"serviceAccountEmail": "a@b.c", "token": identityToken(t, issuer, -time.Hour, nil)}, nil, 1, "stringData.token: the workload identity's token expired at "},
		"no JWT":               {fields{"serviceAccountEmail": "a@b.c", "token": "the-canary"}, nil, 1, "stringData.token: the workload identity's token is no JWT"},
		"no audience":          {fields{"serviceAccountEmail": "a@b.c", "token": identityToken(t, issuer, time.Hour, map[string]any{"aud": nil})}, nil, 1, "token has no aud"},
		"API server's token":   {fields{"serviceAccountEmail": "a@b.c", "token": identityToken(t, issuer, time.Hour, map[string]any{"aud": "https://kubernetes.default.svc"})}, nil, 1, "Kubernetes API server"},
		"no account":           {fields{"token": good}, nil, 1, "stringData.serviceAccountEmail: is missing; must be the mail address"},
		"no token":             {fields{"serviceAccountEmail": "a@b.c"}, nil, 1, "stringData.token: is missing; must be the workload identity's token, or set " + file},
		"nothing":              {nil, nil, 1, "stringData.serviceAccountKey: is missing; must be the JSON of a key, or set serviceAccountEmail with token or " + file},
		"key, too":             {fields{"serviceAccountKey": "{}", "serviceAccountEmail": "a@b.c", "token": good}, nil, 1, "stringData.token: there is a serviceAccountKey, too"},
		"placeholder":          {fields{"serviceAccountEmail": "a@b.c", "token": "replace-me"}, []string{"--allow-missing-secret"}, 0, "stringData.token: is a placeholder"},
		"misspelled":           {fields{"serviceAccountMail": "a@b.c", "token": good}, nil, 1, `is the key "serviceAccountMail" meant to be it?`},
		"file":                 {fields{"serviceAccountEmail": "a@b.c", file: podFile}, nil, 0, file + ": is a file of the sidecar's pod: only its path could be checked"},
		"file beside a token":  {fields{"serviceAccountEmail": "a@b.c", "token": good, file: "/a/token"}, nil, 0, "nothing is wrong.\n"},
		"file elsewhere":       {fields{"serviceAccountEmail": "a@b.c", file: "/a/token"}, nil, 1, file + ": the workload identity's " + file + " must be the absolute path"},
		"file of the flag":     {fields{"serviceAccountEmail": "a@b.c", file: "/a/token"}, []string{dirs + "=/a"}, 0, file + ": is a file of the sidecar's pod"},
		"file not of the flag": {fields{"serviceAccountEmail": "a@b.c", file: podFile}, []string{dirs + "=/a"}, 1, "of a file in /a; set the sidecar's flag " + dirs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := ""
			for name, value := range row.fields {
				lines += "  " + name + ": \"" + value + "\"\n"
			}
			text := regexp.MustCompile(`(?m)^  serviceAccountKey: .*\n`).ReplaceAllString(manifests(t, cloud), lines)
			for what, text := range map[string]string{"with its class": text, "alone": strings.Split(text, "---\n")[0]} {
				got := invocation{args: append([]string{"validate", "-f", "-"}, row.args...), env: env, stdin: text}.run(t)
				got.expect(t, row.code, row.says)
				if strings.Contains(got.stdout+got.stderr, "eyJ") {
					t.Errorf("%s: a token was printed", what)
				}
			}
		})
	}
}

// The sidecar refuses a key that names another host as its token endpoint, unless its flag
// lists it.
func TestTokenHosts(t *testing.T) {
	cloud := iaasmock.New()
	text := manifests(t, cloud, `\n  \"credentials\": {`, `\n  \"credentials\": {\n    \"tokenEndpoint\": \"https://tokens.example/token\",`)
	validate := []string{"validate", "-f", "-"}
	invocation{args: validate, stdin: text}.run(t).expect(t, 1, "credentials.tokenEndpoint must be https://<host>/token, the host service-account.api.stackit.cloud or ")
	invocation{args: append(validate, "--stackit-token-hosts=a.example,tokens.example"), stdin: text}.run(t).expect(t, 0, "nothing is wrong.\n")
}

func TestDoctorWorkloadIdentity(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		// lifetime and change are the token's.
		lifetime time.Duration
		change   map[string]any
		// file is where the token is; "" means in the Secret.
		file  string
		spoil func(*testing.T, *sick)
		code  int
		says  []string
	}{
		"trusted": {lifetime: time.Hour, code: 0, says: []string{
			"FINE     workload identity: token of subject a workload by issuer https://issuer.example, audience sts.accounts.stackit.cloud, for service account <mail>, valid until <date> UTC\n",
			"FINE     token: granted by http://<host>/oauth/v2/token\n"}},
		"not trusted": {lifetime: time.Hour, change: map[string]any{"iss": "https://another.example"}, code: 1, says: []string{
			"FINE     workload identity: token of subject a workload by issuer https://another.example",
			"WRONG    token: refused by http://<host>/oauth/v2/token: ", "federated identity provider"}},
		"expired": {lifetime: -time.Hour, code: 1, says: []string{"WRONG    workload identity: Secret default/credentials of -: the workload identity's token expired at <date> UTC", "renew the token"}},
		"a file":  {lifetime: time.Hour, file: "here", code: 0, says: []string{"FINE     workload identity: token in ", "FINE     token: granted by"}},
		"a file that is not here": {file: podFile, code: 2, says: []string{"FINE     workload identity: token in " + podFile + " for service account <mail>\n",
			"UNKNOWN  token: not asked for: ", "it is a file of the sidecar's pod", "--service-account-key-path"}},
		"a file elsewhere":         {file: "/a/token", code: 1, says: []string{"WRONG    workload identity: ", "--stackit-workload-identity-dirs"}},
		"a file with another's":    {lifetime: time.Hour, change: map[string]any{"aud": "kubernetes.default.svc"}, file: "here", code: 1, says: []string{"WRONG    token: not asked for: the workload identity's token is one for the Kubernetes API server"}},
		"an endpoint out of order": {lifetime: time.Hour, spoil: func(_ *testing.T, s *sick) { s.cloud.Inject(iaasmock.Fault{Operation: "Token", Status: 500}) }, code: 2, says: []string{"UNKNOWN  token: not granted by http://<host>/oauth/v2/token: ", "STACKIT_IDP_TOKEN_ENDPOINT"}},
		"a key of the command line's": {file: podFile, spoil: func(t *testing.T, s *sick) {
			key, _ := json.Marshal(s.key)
			path := filepath.Join(t.TempDir(), "key.json")
			if err := os.WriteFile(path, key, 0o600); err != nil {
				t.Fatal(err)
			}
			s.args = append(s.args, "--service-account-key-path", path)
		}, code: 0, says: []string{"FINE     service-account key: ", "FINE     token: granted by http://<host>/token\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, issuer := newSick(t), newIssuer(t)
			email, err := issuer.NewServiceAccount(s.cloud, iaasmock.DefaultProjectID)
			if err != nil {
				t.Fatal(err)
			}
			s.env["STACKIT_IDP_TOKEN_ENDPOINT"] = "http://<host>/oauth/v2/token"
			s.secret["serviceAccountKey"], s.secret["serviceAccountEmail"] = "", email
			token := identityToken(t, issuer, row.lifetime, row.change)
			switch row.file {
			case "":
				s.secret["token"] = token
			case "here":
				dir := t.TempDir()
				s.secret["workloadIdentityTokenFile"] = dir + "/token"
				s.args = append(s.args, "--stackit-workload-identity-dirs", dir)
				if err := os.WriteFile(dir+"/token", []byte(token), 0o600); err != nil {
					t.Fatal(err)
				}
			default:
				s.secret["workloadIdentityTokenFile"] = row.file
			}
			if row.spoil != nil {
				row.spoil(t, s)
			}
			got := s.run(t)
			got.expect(t, row.code, row.says...)
		})
	}
}
