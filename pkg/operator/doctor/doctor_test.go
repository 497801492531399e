// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// fromRoot reads a file of the repository.
func fromRoot(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// rulesIn returns the rules of a manifest's Role or ClusterRole.
func rulesIn(t *testing.T, manifest []byte, kind string) []rbacv1.PolicyRule {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		var role struct {
			Kind  string
			Rules []rbacv1.PolicyRule
		}
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			t.Fatalf("there is no %s", kind)
		}
		if err != nil {
			t.Fatal(err)
		}
		if role.Kind == kind {
			return role.Rules
		}
	}
}

func TestTheRightsAreThoseOfTheManifests(t *testing.T) {
	control, target := fromRoot(t, "kubernetes", "control", "rbac.yaml"), fromRoot(t, "kubernetes", "target", "rbac.yaml")
	for name, row := range map[string]struct{ manifest, code []rbacv1.PolicyRule }{
		"control":          {rulesIn(t, control, "Role"), controlRules},
		"target":           {rulesIn(t, target, "ClusterRole"), targetRules},
		"bootstrap tokens": {rulesIn(t, target, "Role"), bootstrapTokenRules},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.manifest, row.code); diff != "" {
				t.Errorf("-manifest +code:\n%s", diff)
			}
		})
	}
}

func TestTheVersionsAreThoseOfTheManifests(t *testing.T) {
	for _, row := range []struct {
		file    []string
		pattern string
	}{
		{[]string{"go.mod"}, `gardener/machine-controller-manager ` + managerVersion + `\n`},
		{[]string{"kubernetes", "control", "deployment.yaml"}, `machine-controller-manager:` + managerVersion + `\n`},
		{[]string{"kubernetes", "upgrade.md"}, `\[go.mod\]\(../go.mod\), ` + managerVersion + ` `},
		{[]string{"kubernetes", "upgrade.md"}, `tested with ` + testedKubernetes + ` \|.* since ` + oldestKubernetes + ` `},
	} {
		if !regexp.MustCompile(row.pattern).Match(fromRoot(t, row.file...)) {
			t.Errorf("%v has no %q", row.file, row.pattern)
		}
	}
}

func TestWhyThereIsNoAnswer(t *testing.T) {
	const url = "https://127.0.0.1"
	for name, row := range map[string]struct {
		err  error
		says string
	}{
		"unknown authority": {x509.UnknownAuthorityError{}, "signed by an authority that this computer does not trust"},
		"another name":      {x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a"}}, Host: "b"}, "for another name"},
		"expired":           {x509.CertificateInvalidError{Reason: x509.Expired}, "not valid now"},
		"another use":       {x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}, "cannot be used"},
		"no TLS":            {http.ErrSchemeMismatch, "does not speak TLS"},
		"unknown host":      {&net.DNSError{Name: "iaas.invalid", Err: "no such host"}, "its host iaas.invalid cannot be found: no such host"},
		"refused":           {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection refused"},
		"proxy":             {&net.OpError{Op: "proxyconnect", Err: errors.New("no")}, "does not let the request pass"},
		"too late":          {context.DeadlineExceeded, "no answer in time"},
		"timeout":           {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "no answer in time"},
		"something else":    {errors.New("the answer\ncannot be read"), "no answer that can be used: reading: the answer cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			found, remedy := explainNoAnswer(fmt.Errorf("reading: %w", row.err), url)
			if !strings.Contains(found, row.says) || remedy == "" || strings.Contains(found, "\n") {
				t.Errorf("got %q and %q, want %q", found, remedy, row.says)
			}
		})
	}
}

func TestMissingFields(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(`{"properties": {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"},
		"providerSpec": {"x-kubernetes-preserve-unknown-fields": true}, "provider": {},
		"secretRef": {"properties": {"name": {}}}, "nodeTemplate": {"x-kubernetes-preserve-unknown-fields": true}}}`), schema); err != nil {
		t.Fatal(err)
	}
	got := missingFields(reflect.TypeFor[v1alpha1.MachineClass](), schema, "")
	if diff := cmp.Diff([]string{"credentialsSecretRef", "secretRef.namespace"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := missingFields(reflect.TypeFor[v1alpha1.MachineClass](), nil, ""); got != nil {
		t.Errorf("got %v of no schema, want nothing", got)
	}
}

func TestACRDThatIsNotEstablished(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "machines.machine.sapcloud.io"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}
	for status, want := range map[apiextensionsv1.ConditionStatus]report.Verdict{
		apiextensionsv1.ConditionFalse: report.Wrong, apiextensionsv1.ConditionUnknown: report.Wrong, apiextensionsv1.ConditionTrue: report.Fine,
	} {
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: status}}
		d := &Doctor{}
		d.examineCRD("CRD", crd, reflect.TypeFor[v1alpha1.Machine]())
		if len(d.findings) != 1 || d.findings[0].Verdict != want {
			t.Errorf("%s: got %v, want %s", status, d.findings, want)
		}
	}
}

// versions answers with a version.
type versions string

func (v versions) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: string(v)}, nil
}

func TestVersionsOfKubernetes(t *testing.T) {
	for given, want := range map[versions]report.Verdict{
		"v1.36.3": report.Fine, "v1.21.0": report.Fine, "v1.33.4+k3s1": report.Fine, "v1.37.0-alpha.1": report.Fine,
		"v1.20.15": report.Wrong, "v0.0.0-master+$Format:%H$": report.Wrong, "": report.Wrong,
	} {
		d := &Doctor{}
		if !d.examineVersion("cluster", given) {
			t.Errorf("%q: not reachable", given)
		}
		if len(d.findings) != 1 || d.findings[0].Verdict != want {
			t.Errorf("%q: got %v, want %s", given, d.findings, want)
		}
	}
}

func TestWhichContainerIsWhat(t *testing.T) {
	for name, row := range map[string]struct {
		container        corev1.Container
		manager, sidecar bool
	}{
		"the manager":                {corev1.Container{Name: "machine-controller-manager", Image: "registry:5000/a/machine-controller-manager:v0.62.1"}, true, false},
		"the manager by its image":   {corev1.Container{Name: "mcm", Image: "a/machine-controller-manager@sha256:00"}, true, false},
		"the sidecar":                {corev1.Container{Name: "machine-controller", Image: "a/anything:dev"}, false, true},
		"Gardener's sidecar":         {corev1.Container{Name: "machine-controller-manager-provider-stackit", Image: "a/b"}, false, true},
		"the sidecar by its image":   {corev1.Container{Name: "x", Image: "a/machine-controller-manager-provider-stackit:dev@sha256:00"}, false, true},
		"the sidecar by its command": {corev1.Container{Name: "x", Image: "a/b", Command: []string{"/usr/bin/machine-controller"}}, false, true},
		"another cloud's sidecar":    {corev1.Container{Name: "machine-controller", Image: "a/machine-controller-manager-provider-aws:v1"}, false, false},
		"anything":                   {corev1.Container{Name: "x", Image: "nginx"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if manager, sidecar := isManager(&row.container), isSidecar(&row.container); manager != row.manager || sidecar != row.sidecar {
				t.Errorf("manager %t, sidecar %t; want %t, %t", manager, sidecar, row.manager, row.sidecar)
			}
		})
	}
}

func TestWhomAKubeconfigLogsInAs(t *testing.T) {
	const (
		ofServiceAccount = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06bWNtIn0."
		ofSomebody       = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb21lYm9keSJ9."
		mcm              = "system:serviceaccount:kube-system:mcm"
	)
	for name, row := range map[string]struct {
		auth  clientcmdapi.AuthInfo
		files map[string][]byte
		want  string
	}{
		"a token":                        {clientcmdapi.AuthInfo{Token: ofServiceAccount}, nil, mcm},
		"a token's file":                 {clientcmdapi.AuthInfo{TokenFile: "/a/token"}, map[string][]byte{"token": []byte(ofServiceAccount + "\n")}, mcm},
		"a token's file that is missing": {clientcmdapi.AuthInfo{TokenFile: "/a/token"}, nil, ""},
		"a token of no service account":  {clientcmdapi.AuthInfo{Token: ofSomebody}, nil, ""},
		"a token that is no JWT":         {clientcmdapi.AuthInfo{Token: "opaque"}, nil, ""},
		"a certificate that is none":     {clientcmdapi.AuthInfo{ClientCertificateData: []byte("x")}, nil, ""},
		"nothing":                        {clientcmdapi.AuthInfo{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := userOf(&row.auth, row.files)
			switch {
			case row.want == "" && err == nil:
				t.Errorf("got %v, want an error", got)
			case row.want != "" && (err != nil || got.name != row.want):
				t.Errorf("got %v, %v, want %s", got, err, row.want)
			case err != nil && strings.Contains(err.Error(), "eyJ"):
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
}

// What other objects hold is not compared: it might be anything.
func TestSidecarsEnvironmentFromElsewhere(t *testing.T) {
	const endpoint = "STACKIT_API_ENDPOINT"
	for name, row := range map[string]struct {
		container corev1.Container
		want      report.Verdict
	}{
		"nothing is set":       {corev1.Container{}, report.Fine},
		"set here":             {corev1.Container{Env: []corev1.EnvVar{{Name: endpoint, Value: "https://a.example"}}}, report.Hint},
		"the last one counts":  {corev1.Container{Env: []corev1.EnvVar{{Name: endpoint, Value: "https://a.example"}, {Name: endpoint}}}, report.Fine},
		"of another object":    {corev1.Container{Env: []corev1.EnvVar{{Name: endpoint, ValueFrom: &corev1.EnvVarSource{}}}}, report.Unknown},
		"of another variable":  {corev1.Container{Env: []corev1.EnvVar{{Name: endpoint, Value: "https://$(HOST)"}}}, report.Unknown},
		"all of an object":     {corev1.Container{EnvFrom: []corev1.EnvFromSource{{}}}, report.Unknown},
		"others of an object":  {corev1.Container{Env: []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{}}}}, report.Fine},
		"cannot be right here": {corev1.Container{Env: []corev1.EnvVar{{Name: "STACKIT_NO_AUTH", Value: "true"}}}, report.Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			doctor := &Doctor{}
			doctor.examineEnvironment(&row.container)
			if len(doctor.findings) != 1 || doctor.findings[0].Verdict != row.want {
				t.Errorf("got %v, want %s", doctor.findings, row.want)
			}
		})
	}
}
