// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Whose a server is (row 13): what an answer, a label, an ID and a Secret do not say.
func TestOwnership(t *testing.T) {
	const machineLabel, classLabel = provider.StackitMachineLabel, provider.StackitMachineClassLabel
	type labels = map[string]any
	noCluster := func(r *rig, _ made) { r.setSpec(func(spec map[string]any) { delete(spec, "labels") }) }
	runSituations(t, map[string]situation{
		"13: beside another cluster's": {
			before: beside(labels{machineLabel: "m1", classLabel: "class-a", clusterLabel: "shoot-b"}), call: creates, left: 2},
		"13: beside another Machine's": {
			before: beside(labels{machineLabel: "m2", classLabel: "class-a", clusterLabel: "shoot-a"}), call: creates, left: 2},
		"13: beside one without our labels":   {before: beside(labels{"made-by": "hand"}), call: creates, left: 2},
		"13: beside one of no cluster at all": {before: beside(labels{machineLabel: "m1"}), call: creates, left: 2},
		"13: no cluster label, another class's": {before: func(r *rig, m made) {
			noCluster(r, m)
			beside(labels{machineLabel: "m1", classLabel: "class-b"})(r, m)
		}, call: creates, left: 2},
		"13: lists show what was not asked for": {
			before: beside(labels{machineLabel: "m1", classLabel: "class-a", clusterLabel: "shoot-b"}),
			faults: []fault{lists(fault{IgnoreSelector: true})}, call: creates, left: 2},
		"13: no machine label, but the ProviderID names it": {before: func(r *rig, m made) {
			r.own = r.makeServer("m1", func(all map[string]any) { clear(all) })
			m.Spec.ProviderID = providerIDOf(r.own)
		}, call: creates, left: 1},
		"13: labels that show late": {before: func(r *rig, _ made) { // of a server that a predecessor made
			r.own = r.makeServer("m1", func(all map[string]any) { clear(all) })
			r.restartNow()
			time.AfterFunc(20*time.Second, func() {
				r.relabel(r.own, labels{machineLabel: "m1", classLabel: "class-a", clusterLabel: "shoot-a"})
			})
		}, call: creates, left: 1},
		"13: an older Machine, one without labels": {
			before: succeeded(beside(nil)), call: createsUntilOK, reason: provider.ReasonNotOurs, left: 1},
		"13: an older Machine, one without a machine label": {
			before: succeeded(beside(labels{clusterLabel: "shoot-a", classLabel: "class-a"})), call: createsUntilOK,
			reason: provider.ReasonNotOurs, left: 1},
		"13: an older Machine, another Machine's": {
			before: succeeded(beside(labels{machineLabel: "m2"})), call: createsUntilOK, left: 2},
		"13: an older Machine, another cluster's by key": {
			before: succeeded(beside(labels{"example.org/cluster": "c"})), call: createsUntilOK, left: 2},
		"13: an older Machine is deleted, one without labels": {
			before: succeeded(beside(nil)), call: removesUntilOK, reason: provider.ReasonNotOurs, left: 1},
		// Where the cluster is unknown nothing can be told from another cluster's: no server is touched until it is.
		"13: the class is no JSON":                spoiled(`{"machineType"`),
		"13: a label of the class is a number":    spoiled(`{"labels": {"team": 5, "` + clusterLabel + `": "shoot-a"}}`),
		"13: its cluster label has a wrong value": spoiled(`{"labels": {"` + clusterLabel + `": "not a label!"}}`),
		"13: its cluster label is empty":          spoiled(`{"labels": {"` + clusterLabel + `": ""}}`),
		"13: another's ID does not put off the own server": {before: func(r *rig, m made) {
			r.theirs = []string{r.makeServer("m2", nil)}
			own := r.makeServer("m1", nil)
			<-time.After(time.Minute)
			r.cloud.Inject(deletes(fault{Server: own, Duration: 20 * time.Second, Status: http.StatusServiceUnavailable}))
			m.Spec.ProviderID = providerIDOf(r.theirs[0])
		}, call: removes, reason: provider.ReasonNotOurs, left: 1},
	}, time.Minute)
}

// spoiled: the class was edited so that its cluster label cannot be read.
func spoiled(spec string) situation {
	var right runtime.RawExtension
	return situation{before: func(r *rig, m made) {
		running(r, m)
		right, r.class.ProviderSpec = r.class.ProviderSpec, runtime.RawExtension{Raw: []byte(spec)}
	}, call: func(r *rig, m made) error {
		if listed := r.list(); len(listed) > 0 { // an error would end the manager's orphan run
			r.t.Errorf("ListMachines lists %v, which cannot be known", listed)
		}
		for _, err := range []error{r.statusErr(m), r.createErr(machine("m2"))} {
			if reasonOf(err) != provider.ReasonInvalidInput {
				r.t.Errorf("the manager is told %v", err)
			}
		}
		return r.remove(m)
	}, reason: provider.ReasonInvalidInput, left: 1, calls: none,
		then: func(r *rig, _ made) { r.class.ProviderSpec = right }}
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
				if nic := r.nicOf(r.onlyServer()); len(nic.AllowedAddresses) > 0 {
					t.Errorf("the foreign server's NIC carries %v", nic.AllowedAddresses)
				}
			})
		}
	}
}

func TestCredentialsOfASecret(t *testing.T) {
	const key, email, token = "serviceAccountKey", "serviceAccountEmail", "token"
	for name, row := range map[string]struct {
		set  map[string]string
		code codes.Code
		says []string
	}{
		"neither": {nil, codes.InvalidArgument,
			[]string{"secret." + key + ": Required", email, token}},
		"key and a stray token": {map[string]string{key: "{}", token: "t"}, codes.InvalidArgument,
			[]string{"secret." + token + ": Forbidden"}},
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
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			delete(r.secret.Data, key)
			for name, value := range row.set {
				r.secret.Data[name] = []byte(value)
			}
			err := r.createErr(machine("m1"))
			wantCode(t, err, row.code)
			wantSaid(t, err.Error(), row.says...)
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%v shows a value", err)
			}
			r.wantNoCalls()
		})
	}
}
