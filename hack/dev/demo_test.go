// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The tour fails by itself if a step is not reached: what could pass by mistake is what it compares.
func TestTheTourSeesWhatIsWrong(t *testing.T) {
	machine := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-a"}}
	machine.Spec.Class.Name, machine.Spec.ProviderID = "small", "stackit://p/1"
	machine.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-a"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	server := iaasmock.Server{ID: "1", ProjectID: "p", Name: "worker-a", Status: iaasmock.StatusActive}
	good := func() state {
		return state{machines: []v1alpha1.Machine{machine}, nodes: []corev1.Node{node}, servers: []iaasmock.Server{server}}
	}
	for name, test := range map[string]struct {
		change func(*state)
		class  string
		ok     bool
	}{
		"one of one":          {func(*state) {}, "small", true},
		"of another class":    {func(*state) {}, "large", false},
		"not Running":         {func(s *state) { s.machines[0].Status.CurrentStatus.Phase = "Pending" }, "small", false},
		"its server boots":    {func(s *state) { s.servers[0].Status = iaasmock.StatusCreating }, "small", false},
		"another's server":    {func(s *state) { s.servers[0].ID = "2" }, "small", false},
		"its node is missing": {func(s *state) { s.nodes = nil }, "small", false},
		"a server too many":   {func(s *state) { s.servers = append(s.servers, iaasmock.Server{ID: "2"}) }, "small", false},
	} {
		s := good()
		test.change(&s)
		if err := s.running(1, test.class); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	nic, data := iaasmock.NIC{ID: "nic"}, []iaasmock.Volume{{ID: "data"}}
	for want, states := range map[string][2]state{
		"left over: machine worker-a, node worker-a, server 1 (worker-a, ACTIVE)": {{}, good()},
		"left over: NIC nic of server":                                            {{}, {nics: []iaasmock.NIC{nic}}},
		"missing since the tour began: volume data":                               {{volumes: data}, {}},
	} {
		if err := compare(states[0], states[1]); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := compare(good(), good()); err != nil {
		t.Error(err)
	}
}

func TestCalledWrongly(t *testing.T) {
	for _, args := range [][]string{nil, {"up"}, {"demo", "--sidecar=none"}, {"dev", "--sidecar=other"}} {
		var stderr bytes.Buffer
		if code := run(args, nil, &stderr); code != 2 || !strings.Contains(stderr.String(), "Usage:") {
			t.Errorf("%v: exit code %d, %q", args, code, &stderr)
		}
	}
}
