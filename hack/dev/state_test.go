// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func machine(name, providerID string, phase machinev1alpha1.MachinePhase, age time.Duration) machinev1alpha1.Machine {
	m := machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	m.Spec.Class.Name = "small"
	m.Spec.ProviderID = providerID
	m.Status.CurrentStatus.Phase = phase
	return m
}

func server(id, name, status string) iaasmock.Server {
	return iaasmock.Server{ID: id, Name: name, Status: status, CreatedAt: now.Add(-time.Second)}
}

func node(name string, status corev1.ConditionStatus) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	return n
}

func stateOf(machines []machinev1alpha1.Machine, servers []iaasmock.Server, nodes ...corev1.Node) state {
	s := state{at: now, machines: machines, servers: servers, nodes: map[string]corev1.Node{}}
	for _, n := range nodes {
		s.nodes[n.Name] = n
	}
	return s
}

func TestRunning(t *testing.T) {
	good := machine("worker-a", "stackit://p/1", machinev1alpha1.MachineRunning, time.Minute)
	active := server("1", "worker-a", iaasmock.StatusActive)
	joined := node("worker-a", corev1.ConditionTrue)
	one := []machinev1alpha1.Machine{good}
	pending := []machinev1alpha1.Machine{machine("worker-a", "stackit://p/1", machinev1alpha1.MachinePending, 0)}
	for name, test := range map[string]struct {
		state state
		want  int
		class string
		ok    bool
	}{
		"one of one":       {stateOf(one, []iaasmock.Server{active}, joined), 1, "small", true},
		"none of none":     {stateOf(nil, nil), 0, "", true},
		"one too few":      {stateOf(one, []iaasmock.Server{active}, joined), 2, "small", false},
		"of another class": {stateOf(one, []iaasmock.Server{active}, joined), 1, "large", false},
		"not running yet":  {stateOf(pending, []iaasmock.Server{active}, joined), 1, "small", false},
		"its server still boots": {stateOf(one, []iaasmock.Server{server("1", "worker-a", iaasmock.StatusCreating)},
			joined), 1, "small", false},
		"its server is another": {stateOf(one, []iaasmock.Server{server("2", "worker-a", iaasmock.StatusActive)},
			joined), 1, "small", false},
		"its node is missing": {stateOf(one, []iaasmock.Server{active}), 1, "small", false},
		"its node is not ready": {stateOf(one, []iaasmock.Server{active}, node("worker-a", corev1.ConditionFalse)),
			1, "small", false},
		"a server too many": {stateOf(one, []iaasmock.Server{active, server("2", "x", iaasmock.StatusDeleting)},
			joined), 1, "small", false},
		"down to none, a node is left":   {stateOf(nil, nil, joined), 0, "", false},
		"down to none, a server is left": {stateOf(nil, []iaasmock.Server{active}), 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := deployment{}.running(test.state, test.want, test.class)
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
