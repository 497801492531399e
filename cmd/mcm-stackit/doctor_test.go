// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// sick is what a row of TestDoctor spoils.
type sick struct {
	cloud *iaasmock.Cloud
	// key and secret are the fields of the key and of the Secret.
	key    map[string]any
	secret map[string]string
	env    map[string]string
	args   []string
	// handler wraps the cloud; serve replaces how it is served.
	handler func(http.Handler) http.Handler
	serve   func(*testing.T, http.Handler) string
}

func newSick(t *testing.T) *sick {
	t.Helper()
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &sick{
		cloud: iaasmock.New(iaasmock.WithBootDuration(0)), key: map[string]any{}, env: map[string]string{}, args: []string{"--cloud-only"},
		secret:  map[string]string{"projectId": iaasmock.DefaultProjectID, "region": iaasmock.DefaultRegion, "userData": "canary"},
		handler: func(cloud http.Handler) http.Handler { return cloud },
		serve: func(t *testing.T, cloud http.Handler) string {
			t.Helper()
			server := httptest.NewServer(cloud)
			t.Cleanup(server.Close)
			return server.URL
		},
	}
	if err := s.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(key, &s.key); err != nil {
		t.Fatal(err)
	}
	return s
}

// forbid makes an operation answer 403.
func (s *sick) forbid(operation string) {
	s.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusForbidden})
}

// run runs doctor with the Secret on its standard input. What differs between runs is
// replaced in the outcome.
func (s *sick) run(t *testing.T) outcome {
	t.Helper()
	url := s.serve(t, s.handler(s.cloud))
	_, host, _ := strings.Cut(url, "://")
	env := map[string]string{"STACKIT_API_ENDPOINT": url, "STACKIT_TOKEN_BASEURL": url + "/token"}
	for name, value := range s.env {
		env[name] = strings.ReplaceAll(value, "<host>", host)
	}
	var variables []string
	for name, value := range env {
		variables = append(variables, name+"="+value)
	}
	if _, set := s.secret["serviceAccountKey"]; !set {
		key, err := json.Marshal(s.key)
		if err != nil {
			t.Fatal(err)
		}
		s.secret["serviceAccountKey"] = string(key)
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "credentials"}, "stringData": s.secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := invocation{args: append([]string{"doctor", "-f", "-"}, s.args...), env: variables, stdin: string(manifest)}.run(t)
	expectNoSecret(t, got, s.secret["serviceAccountKey"])
	got.stdout = strings.ReplaceAll(got.stdout, host, "<host>")
	if id, ok := s.key["id"].(string); ok {
		got.stdout = strings.ReplaceAll(got.stdout, id, "<key>")
	}
	got.stdout = regexp.MustCompile(`[\w.-]+@[\w.-]+`).ReplaceAllString(got.stdout, "<mail>")
	got.stdout = regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?`).ReplaceAllString(got.stdout, "<date>")
	return got
}

// expectNoSecret looks for what no output may have.
func expectNoSecret(t *testing.T, got outcome, key string) {
	t.Helper()
	var parsed struct {
		Credentials struct{ PrivateKey string }
	}
	_ = json.Unmarshal([]byte(key), &parsed)
	for _, secret := range []string{parsed.Credentials.PrivateKey, "PRIVATE KEY", "canary", "eyJ"} {
		if secret != "" && strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("the output has a secret: %+v", got)
		}
	}
}

// dated makes the cloud's answers have another Date.
func dated(offset time.Duration) func(http.Handler) http.Handler {
	return func(cloud http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(offset).UTC().Format(http.TimeFormat))
			cloud.ServeHTTP(w, r)
		})
	}
}

// inDays is a time from now, as keys have it.
func inDays(days float64) string {
	return time.Now().Add(time.Duration(days * 24 * float64(time.Hour))).UTC().Format(time.RFC3339)
}

func TestDoctorIsFine(t *testing.T) {
	t.Parallel()
	got := newSick(t).run(t)
	if got.code != report.ExitFine {
		t.Errorf("exit code %d, want %d", got.code, report.ExitFine)
	}
	expectGolden(t, "doctor-fine.txt", got.stdout)
}

func TestDoctorPrintsJSONAndYAML(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			s.args = append(s.args, "-o", format)
			s.forbid("ListServers")
			got := s.run(t)
			if got.code != report.ExitWrong {
				t.Errorf("exit code %d, want %d", got.code, report.ExitWrong)
			}
			expectGolden(t, "doctor."+format, got.stdout)
		})
	}
}

// serveTLS serves with a certificate that only the returned file's authority trusts.
func serveTLS(t *testing.T, cloud http.Handler) (server *httptest.Server, ca string) {
	t.Helper()
	server = httptest.NewTLSServer(cloud)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	ca = filepath.Join(t.TempDir(), "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return server, ca
}

// Ten refusals of one project are one finding.
func TestDoctorSaysOnceThatTheProjectIsWrong(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spoil func(*sick)
		want  string
	}{
		"unknown": {func(s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: "GetProjectDetails", Status: http.StatusNotFound})
		},
			"UNKNOWN  reads: not looked at: without the project, none can be answered"},
		"another account's": {func(s *sick) { s.secret["projectId"] = iaasmock.SecondProjectID },
			"FINE     reads: key pairs: allowed\nWRONG    project: the API refuses " + iaasmock.SecondProjectID + " and all reads in it (status 403): what is there cannot be known\n" +
				"         correct projectId in the Secret, or give the service account the permissions that the driver needs in the project, such as iaas.server.list and iaas.nic.list"},
		"no role but to see it": {func(s *sick) {
			for _, operation := range []string{"ListServers", "ListProjectNICs", "ListNetworks", "ListImages", "ListMachineTypes", "ListVolumes",
				"ListVolumePerformanceClasses", "ListQuotas", "ListSecurityGroups", "ListAffinityGroups"} {
				s.forbid(operation)
			}
		}, "WRONG    reads: none is allowed in the project (status 403): what is there cannot be known\n         give the service account the permissions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			row.spoil(s)
			got := s.run(t)
			last := got.stdout[strings.Index(got.stdout, "region: "):]
			if got.code != report.ExitWrong || !strings.Contains(last, row.want) || strings.Contains(last, "not allowed") || strings.Contains(last, "HINT") {
				t.Errorf("got %+v, want exit code 1 and, after the region, only %q", got, row.want)
			}
		})
	}
}

func TestDoctorFindsInTheCloud(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		spoil func(*testing.T, *sick)
		code  int
		// says are lines of the output.
		says []string
	}{
		"a key that expired": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(-1) }, 1,
			[]string{"WRONG    service-account key: key <key> of <mail>, created <date>, expired at <date> UTC", "make a new key"}},
		"a key that expires soon": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(9.5) }, 0,
			[]string{"HINT     service-account key: key <key> of <mail>, created <date>, expires at <date> UTC, in 9 days"}},
		"a key that is valid for long": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(15) }, 0,
			[]string{"FINE     service-account key: key <key> of <mail>, created <date>, valid until <date> UTC"}},
		"an inactive key": {func(_ *testing.T, s *sick) { s.key["active"] = false }, 1,
			[]string{"WRONG    service-account key: key <key> of <mail>, created <date>, not active"}},
		"a key that does not say whether it is active": {func(_ *testing.T, s *sick) { delete(s.key, "active") }, 0,
			[]string{"FINE     service-account key: "}},
		"a key that is no JSON": {func(_ *testing.T, s *sick) { s.secret["serviceAccountKey"] = "{" }, 1,
			[]string{"WRONG    service-account key: Secret default/credentials of -: the service-account key is not the JSON that STACKIT hands out", "make a new key"}},
		"a key without its private key": {func(_ *testing.T, s *sick) { s.secret["serviceAccountKey"] = `{"credentials":{"iss":"a","kid":"b"}}` }, 1,
			[]string{"the service-account key lacks credentials.privateKey"}},
		"a Secret without a project": {func(_ *testing.T, s *sick) { delete(s.secret, "projectId") }, 1,
			[]string{"WRONG    credentials: Secret default/credentials of -: ", "projectId"}},
		"a revoked key": {func(t *testing.T, s *sick) {
			key, _ := json.Marshal(s.key)
			if err := s.cloud.RevokeServiceAccountKey(key); err != nil {
				t.Fatal(err)
			}
		}, 1, []string{"WRONG    token: refused by http://<host>/token: ", "FINE     clock: ", "UNKNOWN  project, region and reads: not looked at"}},
		"a token endpoint that is out of order": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: fault.OperationToken, Status: http.StatusInternalServerError})
		}, 2, []string{"UNKNOWN  token: not granted by http://<host>/token: ", "try again later"}},
		"a token endpoint where nobody listens": {func(_ *testing.T, s *sick) { s.env["STACKIT_TOKEN_BASEURL"] = "http://127.0.0.1:1/token" }, 1,
			[]string{"WRONG    token: none from http://127.0.0.1:1/token: nobody listens there: connection refused", "correct the URL"}},
		"an API that does not accept the token": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusUnauthorized})
		}, 1, []string{"WRONG    token: granted by http://<host>/token, but the API does not accept it"}},
		"a clock that is ahead": {func(_ *testing.T, s *sick) { s.handler = dated(-time.Minute) }, 1,
			[]string{"WRONG    clock: ", "ahead of the Date of the answer", "synchronise this computer's clock"}},
		"a clock that is a little behind": {func(_ *testing.T, s *sick) { s.handler = dated(15 * time.Second) }, 0,
			[]string{"HINT     clock: ", "behind the Date of the answer"}},
		"a clock for which the token is refused": {func(_ *testing.T, s *sick) {
			s.handler = dated(-2 * time.Hour)
			s.cloud.Inject(iaasmock.Fault{Operation: fault.OperationToken, TokenSkew: 2 * time.Hour})
		}, 1, []string{"WRONG    token: refused", "WRONG    clock: "}},
		"an endpoint whose CA is not trusted": {func(_ *testing.T, s *sick) {
			s.serve = func(t *testing.T, cloud http.Handler) string {
				t.Helper()
				server, _ := serveTLS(t, cloud)
				plain := httptest.NewServer(cloud)
				t.Cleanup(plain.Close)
				s.env["STACKIT_TOKEN_BASEURL"] = plain.URL + "/token"
				return server.URL
			}
		}, 1, []string{"FINE     token: granted", "WRONG    endpoint: https://<host> (set by STACKIT_API_ENDPOINT): its certificate is signed by an authority that this computer does not trust",
			"/etc/ssl/certs"}},
		"an endpoint whose certificate has another name": {func(_ *testing.T, s *sick) {
			s.serve = func(t *testing.T, cloud http.Handler) string {
				t.Helper()
				server, ca := serveTLS(t, cloud)
				s.env["SSL_CERT_FILE"] = ca
				return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
			}
		}, 1, []string{"WRONG    token: none from https://<host>/token: its certificate is for another name"}},
		"an endpoint that does not speak TLS": {func(_ *testing.T, s *sick) { s.env["STACKIT_API_ENDPOINT"] = "https://<host>" }, 1,
			[]string{"WRONG    endpoint: https://<host> (set by STACKIT_API_ENDPOINT): it does not speak TLS"}},
		"a page of somebody else": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusForbidden, ContentType: "text/html", Body: "<html>"})
		}, 1, []string{"WRONG    endpoint: http://<host> (set by STACKIT_API_ENDPOINT): status 403 without the API's own message: somebody else answers"}},
		"an API that is out of order": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: http.StatusInternalServerError})
		}, 2, []string{"UNKNOWN  endpoint: ", "status 500", "UNKNOWN  project, region and reads: not looked at"}},
		"a proxy that is not there": {func(_ *testing.T, s *sick) {
			s.env["STACKIT_API_ENDPOINT"], s.env["HTTPS_PROXY"] = "https://iaas.invalid", "http://somebody:canary@127.0.0.1:1"
		}, 1, []string{"through the proxy 127.0.0.1:1: the proxy 127.0.0.1:1 does not let the request pass", "NO_PROXY"}},
		"a project that the API does not know": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: "GetProjectDetails", Status: http.StatusNotFound})
		}, 1, []string{"WRONG    project: the API does not know " + iaasmock.DefaultProjectID, "correct projectId", "UNKNOWN  reads: not looked at: without the project"}},
		"a project that may not be read itself": {func(_ *testing.T, s *sick) { s.forbid("GetProjectDetails") }, 0,
			[]string{"HINT     project: not allowed (status 403)", "iaas.project.get", "FINE     reads: servers: allowed"}},
		"a project and a first read that may not be made": {func(_ *testing.T, s *sick) { s.forbid("GetProjectDetails"); s.forbid("ListServers") }, 1,
			[]string{"HINT     project: not allowed (status 403)", "WRONG    reads: servers: not allowed", "FINE     reads: NICs: allowed"}},
		"a region that the API does not know": {func(_ *testing.T, s *sick) { s.secret["region"] = "eu09" }, 1,
			[]string{"WRONG    region: the API does not know eu09", "correct region"}},
		"servers that may not be read": {func(_ *testing.T, s *sick) { s.forbid("ListServers") }, 1,
			[]string{"WRONG    reads: servers: not allowed (status 403): the driver needs it", "iaas.server.list"}},
		"NICs that may not be read": {func(_ *testing.T, s *sick) { s.forbid("ListProjectNICs") }, 1,
			[]string{"WRONG    reads: NICs: not allowed (status 403): the driver needs it", "iaas.nic.list"}},
		"images that may not be read": {func(_ *testing.T, s *sick) { s.forbid("ListImages") }, 0,
			[]string{`HINT     reads: images: not allowed (status 403): the driver does not need it, but "validate --online" cannot tell without`, "iaas.image.list"}},
		"quotas that do not answer": {func(_ *testing.T, s *sick) {
			s.cloud.Inject(iaasmock.Fault{Operation: "ListQuotas", Status: http.StatusInternalServerError})
		}, 2, []string{"UNKNOWN  reads: quotas: ", "try again later"}},
		"no authentication": {func(_ *testing.T, s *sick) {
			s.cloud = iaasmock.New(iaasmock.WithoutAuthentication())
			s.env["STACKIT_NO_AUTH"] = "true"
		}, 0, []string{"HINT     service-account key: not used: STACKIT_NO_AUTH is set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			row.spoil(t, s)
			got := s.run(t)
			if got.code != row.code {
				t.Errorf("exit code %d, want %d", got.code, row.code)
			}
			for _, line := range row.says {
				if !strings.Contains(got.stdout, line) {
					t.Errorf("want %q", line)
				}
			}
			if t.Failed() {
				t.Log(got.stdout, got.stderr)
			}
		})
	}
}
