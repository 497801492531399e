// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

// serviceAccountKey is a key that each test's cloud accepts: making one is slow.
var serviceAccountKey = sync.OnceValues(func() ([]byte, error) {
	return iaasmock.New().NewServiceAccountKey(iaasmock.DefaultProjectID)
})

// sick is an account that a row spoils.
type sick struct {
	cloud *iaasmock.Cloud
	// key and secret are the fields of the key and of the Secret.
	key         map[string]any
	secret      map[string]string
	config      spi.Config
	configError error
}

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
	err = errors.Join(s.cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key), json.Unmarshal(key, &s.key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// examine looks at the account alone.
func (s *sick) examine(t *testing.T) *Result {
	t.Helper()
	server := httptest.NewServer(s.cloud)
	t.Cleanup(server.Close)
	s.config.Endpoint, s.config.IdentityURL = server.URL, server.URL+"/oauth/v2/token"
	s.config.TokenURL = server.URL + "/oauth/v2/token"
	if _, set := s.secret["serviceAccountKey"]; !set {
		key, err := json.Marshal(s.key)
		if err != nil {
			t.Fatal(err)
		}
		s.secret["serviceAccountKey"] = string(key)
	}
	rig := testrig.New(t)
	rig.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "sick"},
		Data: bytesOf(s.secret)})
	rig.MakeClusters()
	rig.Access.Sessions = &spi.PluginSPIImpl{Config: s.config}
	rig.Access.SecretName, rig.Access.ReadTimeout = "sick", 30*time.Second
	d := &Doctor{Access: rig.Access, ConfigError: s.configError}
	d.examineAccounts(t.Context())
	return &d.result
}

func bytesOf(texts map[string]string) map[string][]byte {
	data := map[string][]byte{}
	for name, value := range texts {
		data[name] = []byte(value)
	}
	return data
}

// expect wants an exit code, these lines, and no secret.
func expect(t *testing.T, result *Result, code int, says ...string) {
	t.Helper()
	var lines []string
	for _, found := range result.Findings {
		lines = append(lines, found.String())
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

// remedy is the end of a finding about a reason of the driver's.
func remedy(reason provider.Reason) string { return "; " + report.RowOf(string(reason)).Remedy + "\n" }

func TestAccounts(t *testing.T) {
	t.Parallel()
	inject := func(faults ...iaasmock.Fault) func(*testing.T, *sick) {
		return func(_ *testing.T, s *sick) {
			for _, fault := range faults {
				s.cloud.Inject(fault)
			}
		}
	}
	const iaas, key = iaasmock.OperationIaaS, "service-account key: key "
	const refused, noPermission = provider.ReasonCredentialsRefused, provider.ReasonNoPermission
	for name, row := range map[string]struct {
		spoil func(*testing.T, *sick)
		code  int
		says  []string
	}{
		"nothing": {func(*testing.T, *sick) {}, 0, []string{
			"fine     credentials: project " + iaasmock.DefaultProjectID + " in eu01, from Secret shoot--demo/sick",
			"fine     " + key, "sa.stackit.cloud\nfine     token: granted and accepted\n",
			"fine     reads: servers: allowed\nfine     reads: a network's NICs: allowed\n" +
				"not tried: reading a server (iaas.server.get): none is known\n"}},
		"a key that expired": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(-1) }, 1,
			[]string{"wrong    " + key, "expired at ", "create a new key"}},
		"a key that expires soon": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(9.5) }, 0,
			[]string{"hint     " + key, "expires at "}},
		"a key that is valid": {func(_ *testing.T, s *sick) { s.key["validUntil"] = inDays(15) }, 0,
			[]string{"fine     " + key}},
		"an inactive key": {func(_ *testing.T, s *sick) { s.key["active"] = false }, 1,
			[]string{"wrong    " + key, "is inactive according to its file"}},
		"a key that is no JSON": {func(_ *testing.T, s *sick) { s.secret["serviceAccountKey"] = "{canary" }, 1,
			[]string{"wrong    credentials: ", "the service-account key is not the JSON"}},
		"a key of another project": {func(_ *testing.T, s *sick) { s.key["projectId"] = iaasmock.SecondProjectID }, 0,
			[]string{"hint     " + key, "belongs to a service account of another project", "fine     token: granted"}},
		"a Secret without project": {func(_ *testing.T, s *sick) { delete(s.secret, "projectId") }, 1,
			[]string{"wrong    credentials: ", "projectId"}},
		"a revoked key": {func(t *testing.T, s *sick) {
			key, _ := json.Marshal(s.key)
			if err := s.cloud.RevokeServiceAccountKey(key); err != nil {
				t.Fatal(err)
			}
		}, 1, []string{"wrong    token: CredentialsRefused: ", remedy(refused), "an earlier read failed"}},
		"a token endpoint out of order": {inject(iaasmock.Fault{Operation: "Token", Status: 500}), 2,
			[]string{"unknown  token: TokenEndpointDown: ", remedy(provider.ReasonTokenEndpointDown)}},
		"an API that refuses the token": {inject(iaasmock.Fault{Operation: iaas, Status: 401}), 1,
			[]string{"wrong    token: CredentialsRefused: ", "status 401", remedy(refused)}},
		"no answer": {inject(iaasmock.Fault{Operation: iaas, DropBefore: true}), 2,
			[]string{"unknown  reads: servers (iaas.server.list): APIFailed: ", remedy(provider.ReasonAPIFailed)}},
		"an API that fails once": {inject(iaasmock.Fault{Operation: "ListNics", Status: 500}), 2,
			[]string{"fine     reads: servers: allowed", "unknown  reads: a network's NICs (iaas.nic.list): "}},
		"servers that may not be read": {inject(iaasmock.Fault{Operation: "ListServers", Status: 403}), 1,
			[]string{"wrong    reads: servers (iaas.server.list): NoPermission: ",
				remedy(noPermission), "fine     reads: a network's NICs: allowed"}},
		"a project that is another's": {func(_ *testing.T, s *sick) { s.secret["projectId"] = iaasmock.SecondProjectID }, 1,
			[]string{"wrong    reads: servers (iaas.server.list): NoPermission: "}},
		"a region that nobody knows": {func(_ *testing.T, s *sick) { s.secret["region"] = "eu09" }, 1,
			[]string{"wrong    reads: servers (iaas.server.list): ResourceMissing: ", remedy(provider.ReasonResourceMissing)}},
		"a variable that is wrong": {func(_ *testing.T, s *sick) { s.configError = errors.New("it is no URL") }, 1,
			[]string{"wrong    environment: the API is not called: it is no URL"}},
		"an endpoint that nobody may ask": {func(_ *testing.T, s *sick) { s.config.NoAuth = true }, 1,
			[]string{"hint     service-account key: not used: STACKIT_NO_AUTH is set", "wrong    reads: servers (iaas"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			row.spoil(t, s)
			expect(t, s.examine(t), row.code, row.says...)
		})
	}
}

func TestReadsOfAServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		code  int
		says  []string
	}{
		"all": {iaasmock.Fault{Operation: "ListQuotas", Status: 403}, 0,
			[]string{"reads: a server: allowed\nfine     reads: a server's NICs: allowed\nfine     reads: a network's"}},
		"not a server": {iaasmock.Fault{Operation: "GetServer", Status: 403}, 1,
			[]string{"wrong    reads: a server (iaas.server.get): NoPermission", "fine     reads: a server's NICs: allowed"}},
		"not its NICs": {iaasmock.Fault{Operation: "ListServerNICs", Status: 403}, 1, []string{"iaas.server.nic.list"}},
		"gone meanwhile": {iaasmock.Fault{Operation: "GetServer", Status: 404, Body: `{"code":404,"msg":"server not found"}`},
			0,
			[]string{"fine     reads: a server: allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			c.Server("worker-1", nil)
			c.Cloud.Inject(row.fault)
			expect(t, c.examine(t), row.code, row.says...)
		})
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
		"trusted": {time.Hour, nil, 0, []string{"fine     workload identity: for service account ", "token: granted"}},
		"not trusted": {time.Hour, map[string]any{"iss": "https://another.example"}, 1,
			[]string{"wrong    token: CredentialsRefused: ", remedy(provider.ReasonCredentialsRefused)}},
		"expired": {-time.Hour, nil, 1, []string{"wrong    credentials: ", "the workload identity's token expired at "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t)
			issuer, err := workload.NewIssuer()
			if err != nil {
				t.Fatal(err)
			}
			email, err := issuer.NewServiceAccount(s.cloud, iaasmock.DefaultProjectID)
			if err != nil {
				t.Fatal(err)
			}
			if s.secret["token"], err = issuer.Token(time.Now().Add(row.lifetime), row.change); err != nil {
				t.Fatal(err)
			}
			s.secret["serviceAccountKey"], s.secret["serviceAccountEmail"] = "", email
			expect(t, s.examine(t), row.code, row.says...)
		})
	}
}
