// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	identities "github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// serviceAccountKey is a key that each test's cloud accepts: making one is slow.
var serviceAccountKey = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// sick is an account that a row spoils. Its Secret stands in a cluster of its own.
type sick struct {
	cloud *iaasmock.Cloud
	// key and secret are the fields of the key and of the Secret.
	key    map[string]any
	secret map[string]string
	config spi.Config
	// region is the value of --region.
	region string
	// configError says that the config is of no use.
	configError error
	// date is added to the Date of each answer.
	date time.Duration
	// report is the Doctor's.
	report func(report.Finding)
}

// ownEndpoint as a TokenURL stands for the key's own.
const ownEndpoint = "own"

func newSick(t *testing.T) *sick {
	t.Helper()
	key, err := serviceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &sick{
		cloud: iaasmock.New(iaasmock.WithBootDuration(0)), key: map[string]any{},
		secret: map[string]string{"projectId": iaasmock.DefaultProjectID, "region": iaasmock.DefaultRegion,
			"networkId": iaasmock.DefaultNetworkID, "userData": "canary"},
	}
	if err := s.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(key, &s.key); err != nil {
		t.Fatal(err)
	}
	return s
}

// examine looks at the account alone.
func (s *sick) examine(t *testing.T) *Result {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(s.date).UTC().Format(http.TimeFormat))
		s.cloud.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.config.Endpoint, s.config.IdentityURL = server.URL, server.URL+"/oauth/v2/token"
	switch s.config.TokenURL {
	case "":
		s.config.TokenURL = server.URL + "/oauth/v2/token"
	case ownEndpoint:
		s.config.TokenURL = ""
	}
	if _, set := s.secret["serviceAccountKey"]; !set {
		key, err := json.Marshal(s.key)
		if err != nil {
			t.Fatal(err)
		}
		s.secret["serviceAccountKey"] = string(key)
	}
	rig := testrig.New(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "sick"},
		Data: map[string][]byte{}}
	for name, value := range s.secret {
		secret.Data[name] = []byte(value)
	}
	rig.Add(secret)
	rig.MakeClusters()
	rig.Access.Sessions = &spi.PluginSPIImpl{Config: s.config}
	rig.Access.SecretName, rig.Access.Region, rig.Access.ReadTimeout = "sick", s.region, 30*time.Second
	d := &Doctor{Report: noting(s.report), Access: rig.Access, ConfigError: s.configError}
	d.examineAccounts(t.Context())
	return &d.result
}

// expect wants an exit code, these lines, and no secret.
func expect(t *testing.T, result *Result, code int, says ...string) {
	t.Helper()
	var lines []string
	for _, found := range result.Findings {
		lines = append(lines, strings.ToUpper(string(found.Verdict))+" "+found.String())
	}
	for _, what := range result.NotTried {
		lines = append(lines, "not tried: "+what)
	}
	text := strings.Join(lines, "\n") + "\n"
	if got := result.Findings.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	for _, secret := range []string{"PRIVATE KEY", "canary", "eyJ"} {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is told: %q", secret)
		}
	}
	if t.Failed() {
		t.Logf("it says:\n%s", text)
	}
}

// inDays is a time from now, as keys have it.
func inDays(days float64) string {
	return time.Now().Add(time.Duration(days * 24 * float64(time.Hour))).UTC().Format(time.RFC3339)
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	forbid := func(operations ...string) func(*testing.T, *sick) {
		return func(_ *testing.T, s *sick) {
			for _, operation := range operations {
				s.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusForbidden})
			}
		}
	}
	inject := func(fault iaasmock.Fault) func(*testing.T, *sick) {
		return func(_ *testing.T, s *sick) { s.cloud.Inject(fault) }
	}
	for name, row := range map[string]struct {
		spoil func(*testing.T, *sick)
		code  int
		says  []string
	}{
		"nothing": {nil, 0, []string{
			"FINE credentials: project " + iaasmock.DefaultProjectID + " in eu01, from Secret shoot--demo/sick",
			"FINE service-account key: key ", "does not expire\n", "FINE clock: agrees", "FINE token: granted by http://",
			"FINE reads: servers: allowed\nFINE reads: a network's NICs: allowed\n" +
				"not tried: reading a server (iaas.server.get): there is none to read\n"}},
		"a key that expired": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(-1) },
			1, []string{"WRONG service-account key: key ", "expired at ", "create a new key"}},
		"a key that expires soon": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(9.5) },
			0, []string{"HINT service-account key: key ", "in 9 days"}},
		"a key that expires today": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(0.1) },
			0, []string{"HINT service-account key: key ", "within a day"}},
		"a key that has just expired": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(-0.001) },
			1, []string{"WRONG service-account key: key ", "expired at "}},
		"an inactive key that expired": {
			func(_ *testing.T, s *sick) { s.key["active"], s.key["validUntil"] = false, inDays(-1) },
			1, []string{" is inactive ", " expired at "}},
		"a key that is valid": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(15) },
			0, []string{"FINE service-account key: key ", "valid until "}},
		"an inactive key": {func(_ *testing.T, s *sick) { s.key["active"] = false },
			1, []string{"WRONG service-account key: key ", "is inactive according to its file; activate it, or create a new"}},
		"a key that is no JSON": {func(_ *testing.T, s *sick) { s.secret["serviceAccountKey"] = "{" },
			1, []string{"WRONG service-account key: Secret shoot--demo/sick",
				"the service-account key is not the JSON that STACKIT issues for a key: unexpected end of JSON input"}},
		"a key that is base64": {func(_ *testing.T, s *sick) {
			s.secret["serviceAccountKey"] = base64.StdEncoding.EncodeToString([]byte(`{"id":"canary"}`))
		}, 1, []string{"WRONG service-account key: Secret shoot--demo/sick", "is encoded in base64: use the JSON itself"}},
		"a key without its private key": {func(_ *testing.T, s *sick) {
			delete(s.key["credentials"].(map[string]any), "privateKey")
		}, 1, []string{"WRONG service-account key: ", "lacks credentials.privateKey: "}},
		"a key with an endpoint elsewhere": {func(_ *testing.T, s *sick) {
			s.config.TokenURL, s.key["credentials"].(map[string]any)["tokenEndpoint"] = ownEndpoint,
				"https://token.example/token"
		}, 1, []string{"WRONG service-account key: ", "credentials.tokenEndpoint must be https://<host>/<path>",
			"set the sidecar's environment variable STACKIT_TOKEN_BASEURL"}},
		"a key of another project": {func(_ *testing.T, s *sick) { s.key["projectId"] = iaasmock.SecondProjectID },
			0, []string{"HINT service-account key: key ", `belongs to a service account of another project, "` +
				iaasmock.SecondProjectID + `"; correct projectId or the key, unless its service account has permissions in ` +
				"project " + iaasmock.DefaultProjectID, "FINE token: granted"}},
		"a key of 2025": {func(_ *testing.T, s *sick) {
			delete(s.key, "projectId")
			delete(s.key["credentials"].(map[string]any), "tokenEndpoint")
		}, 0, []string{"FINE service-account key: key ", "does not expire\n", "FINE token: granted by http://"}},
		"a Secret without project": {func(_ *testing.T, s *sick) { delete(s.secret, "projectId") },
			1, []string{"WRONG credentials: ", "projectId"}},
		"a clock that is ahead": {func(_ *testing.T, s *sick) { s.date = -time.Minute },
			1, []string{"WRONG clock: ", "ahead of the Date header of STACKIT's answer", "synchronise this computer's clock"}},
		"a clock that is behind": {func(_ *testing.T, s *sick) { s.date = 15 * time.Second },
			0, []string{"HINT clock: ", "behind the Date header of STACKIT's answer"}},
		"a clock that costs tokens": {func(_ *testing.T, s *sick) {
			s.date = -2 * time.Hour
			s.cloud.Inject(iaasmock.Fault{Operation: fault.OperationToken, TokenSkew: 2 * time.Hour})
		}, 1, []string{"WRONG token: refused", "or correct the clock", "not tried: reads of the API: there is no token"}},
		"a revoked key": {func(t *testing.T, s *sick) {
			key, _ := json.Marshal(s.key)
			if err := s.cloud.RevokeServiceAccountKey(key); err != nil {
				t.Fatal(err)
			}
		}, 1, []string{"WRONG token: refused by http://", "/oauth/v2/token: ",
			"this key was deleted or deactivated, has expired"}},
		"a token endpoint out of order": {inject(iaasmock.Fault{Operation: fault.OperationToken, Status: 500}),
			2, []string{"UNKNOWN token: not granted by http://", "try again later"}},
		"a gateway's page for a token": {
			inject(iaasmock.Fault{Operation: fault.OperationToken, Status: 403, Body: "<html>", ContentType: "text/html"}),
			2, []string{"UNKNOWN token: not granted by http://",
				"or a gateway in front of it failed with status 403", "try again later"}},
		"a token endpoint that is none": {func(_ *testing.T, s *sick) { s.config.TokenURL = "http://127.0.0.1:1/token" },
			2, []string{"UNKNOWN token: not granted by http://127.0.0.1:1/token: ", "connection refused"}},
		"an API that refuses the token": {inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 401}),
			1, []string{"WRONG token: granted by http://", "but the API does not accept it"}},
		"no answer": {inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, DropBefore: true}),
			2, []string{"UNKNOWN reads: servers: http://127.0.0.1", "not tried: the token: ",
				"check the endpoint, and the proxy and the CAs"}},
		"an API out of order": {inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, Status: 503}),
			2, []string{"UNKNOWN reads: servers: http://127.0.0.1",
				"not tried: reading a server (iaas.server.get): an earlier read failed\n",
				"not tried: reading a network's NICs (iaas.nic.list): an earlier read failed\n"}},
		"an API that answers rarely": {inject(iaasmock.Fault{Operation: "ListNics", Status: 500}),
			2, []string{"FINE reads: servers: allowed", "UNKNOWN reads: a network's NICs: "}},
		"servers that may not be read": {forbid("ListServers"),
			1, []string{"WRONG reads: servers: not allowed (status 403): the driver needs it; " +
				"give the service account the permission iaas.server.list", "FINE reads: a network's NICs: allowed",
				"not tried: reading a server (iaas.server.get): none is known, and an earlier read failed\n"}},
		"NICs that may not be read": {forbid("ListNics"),
			1, []string{"WRONG reads: a network's NICs: not allowed (status 403): the driver needs it", "iaas.nic.list"}},
		"a project that is another's": {func(_ *testing.T, s *sick) { s.secret["projectId"] = iaasmock.SecondProjectID },
			1, []string{"WRONG reads: servers: not allowed (status 403)", "or correct projectId in the Secret"}},
		"a region that nobody knows": {func(_ *testing.T, s *sick) { s.secret["region"] = "eu09" },
			1, []string{"WRONG reads: servers: ", "status 404", "correct projectId and region in the Secret or the class\n"}},
		"a region that nobody knows, by a flag": {func(_ *testing.T, s *sick) { s.region = "RegionOne" },
			1, []string{"status 404", "correct projectId in the Secret, or --region\n"}},
		"a zone for a region": {func(_ *testing.T, s *sick) { s.region = "eu01-1" },
			1, []string{"status 404", "or --region; eu01-1 is the name of a zone: its region is eu01\n"}},
		"a variable that is wrong": {
			func(_ *testing.T, s *sick) { s.configError = errors.New("STACKIT_IAAS_ENDPOINT is no URL") },
			1, []string{"WRONG environment: the API is not called: STACKIT_IAAS_ENDPOINT is no URL; correct the variable"}},
		"an endpoint that nobody may ask": {func(_ *testing.T, s *sick) { s.config.NoAuth = true },
			2, []string{"HINT service-account key: not used: STACKIT_NO_AUTH is set", "UNKNOWN reads: servers: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			if row.spoil != nil {
				row.spoil(t, s)
			}
			result := s.examine(t)
			expect(t, result, row.code, row.says...)
			if count := result.Findings.Count(); count[report.Unknown] > 1 {
				t.Errorf("one outage is said %d times", count[report.Unknown])
			}
		})
	}
}

// What needs no answer is told before the API is asked, which may take long.
func TestTellsWhatItFindsAsItComes(t *testing.T) {
	t.Parallel()
	s, asked := newSick(t), map[string]int{}
	s.report = func(found report.Finding) { asked[found.Subject] = s.cloud.CallCounts()["ListServers"] }
	s.examine(t)
	want := map[string]int{"credentials": 0, subjectKey: 0, "clock": 1, "token": 1, subjectReads: 1}
	if !maps.Equal(asked, want) {
		t.Errorf("reads of servers before each finding: %v, want %v", asked, want)
	}
}

func TestReadsOfAServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		code  int
		says  []string
	}{
		"all": {iaasmock.Fault{Operation: "ListQuotas", Status: 403},
			0, []string{"FINE reads: a server: allowed\nFINE reads: a server's NICs: allowed\n" +
				"FINE reads: a network's NICs: allowed\n"}},
		"not a server": {iaasmock.Fault{Operation: "GetServer", Status: 403},
			1, []string{"WRONG reads: a server: not allowed (status 403)", "iaas.server.get",
				"FINE reads: a server's NICs: allowed"}},
		"not its NICs": {iaasmock.Fault{Operation: "ListServerNICs", Status: 403}, 1, []string{"iaas.server.nic.list"}},
		"gone meanwhile": {iaasmock.Fault{Operation: "GetServer", Status: 404, Body: `{"code":404,"msg":"server not found"}`},
			0, []string{"FINE reads: a server: allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newClinic(t).Rig
			rig.Server("worker-1", nil)
			rig.Cloud.Inject(row.fault)
			expect(t, examineRig(t, rig), row.code, row.says...)
		})
	}
}

// Machines from OpenStack cannot be deleted without more permissions.
func TestReadsForMachinesFromOpenStack(t *testing.T) {
	t.Parallel()
	for status, row := range map[int]struct {
		code int
		says []string
	}{
		http.StatusOK:        {0, []string{"FINE reads: volumes: allowed\n"}},
		http.StatusForbidden: {1, []string{"WRONG reads: volumes: not allowed (status 403)", "iaas.volume.list"}},
	} {
		rig := newClinic(t).Rig
		machine := testrig.Machine("worker-1", "worker", "")
		machine.Spec.ProviderID = "openstack:///eu01/" + rig.Server("worker-1", nil)
		rig.Add(machine)
		if status != http.StatusOK {
			rig.Cloud.Inject(iaasmock.Fault{Operation: "ListVolumes", Status: status})
		}
		expect(t, examineRig(t, rig), row.code, row.says...)
	}
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lifetime time.Duration
		change   map[string]any
		code     int
		says     []string
	}{
		"trusted": {time.Hour, nil,
			0, []string{"FINE workload identity: token of subject a workload by issuer https://issuer.example, " +
				"audience sts.accounts.stackit.cloud, for service account ", "/oauth/v2/token\n"}},
		"not trusted": {time.Hour, map[string]any{"iss": "https://another.example"},
			1, []string{"WRONG token: refused by http://", "federated identity provider"}},
		"expired": {-time.Hour, nil,
			1, []string{"WRONG workload identity: ", "the workload identity's token expired at ", "renew the token"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			issuer, err := identities.NewIssuer()
			if err != nil {
				t.Fatal(err)
			}
			email, err := issuer.NewServiceAccount(s.cloud, iaasmock.DefaultProjectID)
			if err != nil {
				t.Fatal(err)
			}
			token, err := issuer.Token(time.Now().Add(row.lifetime), row.change)
			if err != nil {
				t.Fatal(err)
			}
			s.secret["serviceAccountKey"], s.secret["serviceAccountEmail"] = "", email
			s.secret["token"] = token
			expect(t, s.examine(t), row.code, row.says...)
		})
	}
}
