// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/workload"
)

func TestCreateMachineLeavesOthersServersAlone(t *testing.T) {
	for name, row := range map[string]struct {
		withoutCluster bool // the class
		change         func(labels map[string]any)
	}{
		"another cluster's":        {false, func(labels map[string]any) { labels[clusterLabel] = "shoot-b" }},
		"another machine's":        {false, func(labels map[string]any) { labels[provider.StackitMachineLabel] = "m2" }},
		"one without our labels":   {false, func(labels map[string]any) { clear(labels); labels["made-by"] = "hand" }},
		"one of no cluster at all": {false, func(labels map[string]any) { delete(labels, clusterLabel) }},
		"another class's": {true, func(labels map[string]any) {
			delete(labels, clusterLabel)
			labels[provider.StackitMachineClassLabel] = "class-of-another-cluster"
		}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.withoutCluster {
				r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
			}
			foreign := r.makeServer("m1", row.change)
			response := r.mustCreate(machine("m1"))
			if response.ProviderID == providerIDOf(foreign) {
				t.Error("a foreign server was adopted")
			}
			r.mustRemove(withID(machine("m1"), response.ProviderID))
			r.wantOnly(foreign)
		})
	}
}

// The Machine's ProviderID names the server.
func TestNoCallTouchesAnothersServer(t *testing.T) {
	for name, row := range map[string]struct {
		change func(labels map[string]any)
		says   []string
	}{
		"another machine's": {nil, []string{provider.StackitMachineLabel, `"conflict-1"`, `"m1"`}},
		"another cluster's": {func(labels map[string]any) { labels[clusterLabel] = "shoot-b" },
			[]string{clusterLabel, `"shoot-b"`}},
		"another cluster's, by another key": {func(labels map[string]any) {
			delete(labels, clusterLabel)
			labels["example.org/cluster"], labels[provider.StackitMachineLabel] = "shoot-b", "m1"
		}, []string{"example.org/cluster"}},
		"another name": {func(labels map[string]any) {
			delete(labels, provider.StackitMachineLabel)
		}, []string{"missing"}},
	} {
		for method, call := range map[string]func(*rig, *v1alpha1.Machine) error{
			"CreateMachine":     (*rig).createErr,
			"InitializeMachine": (*rig).initErr,
			"GetMachineStatus":  (*rig).statusErr,
			"DeleteMachine":     (*rig).remove,
		} {
			bubble(t, name+", "+method, func(t *testing.T) {
				r := newRig(t)
				r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
				foreign := r.makeServer("conflict-1", row.change)
				err := call(r, withID(machine("m1"), providerIDOf(foreign)))
				wantCode(t, err, codes.FailedPrecondition)
				wantSaid(t, err.Error(), append(row.says, foreign)...)
				r.wantOnly(foreign)
				if nic := nicOf(t, r, r.onlyServer()); len(nic.AllowedAddresses) > 0 {
					t.Errorf("the foreign server's NIC carries %v", nic.AllowedAddresses)
				}
			})
		}
	}
}

// A name alone makes a server nobody's: only the Machine's ProviderID, which names it, does.
func TestAServerWithoutLabelsIsOwnedByItsProviderID(t *testing.T) {
	server := &provider.Server{ID: someServerID, Name: "m1"}
	for _, byID := range []bool{true, false} {
		err := provider.CheckOwned("m1", "class-a", map[string]string{clusterLabel: "shoot-a"}, server, byID)
		if isOwned := err == nil; isOwned != byID {
			t.Errorf("with byID %t: %v", byID, err)
		}
	}
	bubble(t, "deleted without a ProviderID", func(t *testing.T) {
		r := newRig(t)
		foreign := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		r.restartNow()
		wantCode(t, r.remove(machine("m1")), codes.FailedPrecondition)
		r.wantOnly(foreign)
	})
}

// Where the cluster is unknown nothing can be told from another cluster's: no server is touched
// until the label is right. No server can carry a label that is not valid, but those that were made
// before it was edited carry the old one.
func TestAClassWhoseClusterIsUnknown(t *testing.T) {
	labelled := func(value string) string { return `{"labels": {"` + clusterLabel + `": ` + value + `}}` }
	for name, spec := range map[string]string{
		"no JSON":        `{"machineType"`,
		"null":           `null`,
		"wrong types":    `{"machineType": 5, "labels": "none", "bootVolume": []}`,
		"wrong label":    `{"machineType": "c2i.2", "labels": {"team": 5, "` + clusterLabel + `": "shoot-a"}}`,
		"no label value": labelled(`"not a label!"`),
		"a long value":   labelled(`"` + strings.Repeat("c", 64) + `"`),
		"a number":       labelled(`5`),
		"an empty value": labelled(`""`),
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			r.makeServer("m1", nil)
			r.restartNow()
			right := r.class.ProviderSpec
			r.class.ProviderSpec = runtime.RawExtension{Raw: []byte(spec)}
			r.cloud.ResetCalls()
			if listed := r.list(); len(listed) > 0 { // an error would end the manager's orphan run
				t.Errorf("ListMachines lists %v, which cannot be known", listed)
			}
			m := withID(r.deleted(machine("m1")), created.ProviderID)
			for _, err := range []error{r.remove(machine("m1")), r.delete(m), r.statusErr(m), r.createErr(machine("m2"))} {
				wantCode(t, err, codes.InvalidArgument)
				wantSaid(t, err.Error(), "providerSpec")
			}
			r.wantNoCalls()
			r.class.ProviderSpec = right
			r.mustDelete(m)
			r.wantNothingLeft()
		})
	}
}

// Lists may hold what was never asked for.
func TestWhatAListShowsIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign := r.makeServer("m1", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		body := fmt.Sprintf(
			`{"items":[{"id":%q,"name":"m1","machineType":"t1.1","status":"ACTIVE","labels":{%q:"m1",%q:"class-a"}}]}`,
			foreign, provider.StackitMachineLabel, provider.StackitMachineClassLabel)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: body})
		if listed := r.list(); len(listed) != 0 {
			t.Errorf("lists %v", listed)
		}
		created := r.mustCreate(machine("m1"))
		remove()
		if strings.HasSuffix(created.ProviderID, foreign) || len(r.cloud.Servers()) != 2 {
			t.Errorf("the machine got %s, which is another cluster's", created.ProviderID)
		}
	})
}

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
			r.mustDelete(withID(r.deleted(machine("m1")), created.ProviderID))
			r.wantNothingLeft()
		})
	}
}

// The Secret that a call was handed stays as it is: the manager's next call has the token as it is then. A file is read
// again.
func TestATokenRenewedWhileACallWaits(t *testing.T) {
	const boot = 5 * time.Minute
	for name, row := range map[string]struct {
		inFile bool
		want   codes.Code
	}{"in the Secret": {false, codes.Unauthenticated}, "in a file": {true, codes.OK}} {
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
		"neither": {nil, codes.InvalidArgument,
			[]string{"secret." + key + ": Required", email, token, file}},
		"key and a stray token": {map[string]string{key: "{}", token: "t"}, codes.InvalidArgument,
			[]string{"secret." + token + ": Forbidden"}},
		"token without an account": {map[string]string{token: "t"}, codes.InvalidArgument,
			[]string{"secret." + email + ": Required"}},
		"account without a token": {map[string]string{email: "a@b.c"}, codes.InvalidArgument,
			[]string{"secret." + token + ": Required", file}},
		"account is no mail": {map[string]string{email: "s3cr3t", token: "t"}, codes.InvalidArgument,
			[]string{"secret." + email + ": Invalid"}},
		"token cannot be used": {map[string]string{email: "a@b.c", token: "s3cr3t"}, codes.Unauthenticated,
			[]string{"not a JWT"}},
		"key and token": {
			map[string]string{key: "{}", email: "a@b.c", token: "t"}, codes.InvalidArgument,
			[]string{"secret." + email + ": Forbidden", "secret." + token + ": Forbidden", key}},
		"two spellings of the key": {
			map[string]string{key: "s3cr3t-1", "serviceaccount.json": "s3cr3t-2"}, codes.InvalidArgument,
			[]string{"secret." + key + ": Invalid", "differs"}},
		"two spellings of the project": {
			map[string]string{key: "{}", "project-id": "s3cr3t"}, codes.InvalidArgument,
			[]string{"secret.projectId: Invalid", "differs"}},
		"Gardener's key and file": {
			map[string]string{"serviceaccount.json": "{}", email: "a@b.c", file: "/f"}, codes.InvalidArgument,
			[]string{"secret." + file + ": Forbidden"}},
		"file is elsewhere": {
			map[string]string{email: "a@b.c", file: "/var/run/secrets/kubernetes.io/serviceaccount/token"},
			codes.Unauthenticated, []string{file, "--stackit-workload-identity-dirs"}},
		"and another field": {
			map[string]string{email: "a@b.c", token: "s3cr3t", "projectId": "s3cr3t"}, codes.InvalidArgument,
			[]string{"secret." + token + ": Invalid", "secret.projectId"}},
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
			r.wantNoCalls()
		})
	}
}
