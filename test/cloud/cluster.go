// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

const podCIDR = "100.96.0.0/11"

// cluster is a local control plane. Its sidecar sends all requests to the real project through the
// guard's proxy.
type cluster struct {
	client.Client

	suite *suite
	env   *stack.Env
}

// startCluster starts a control plane, which stops with the run.
func (s *suite) startCluster(ctx context.Context) (*cluster, error) {
	variables := []string{"STACKIT_IAAS_ENDPOINT=" + s.proxy.URL()}
	if s.settings.TokenURL != "" {
		variables = append(variables, "STACKIT_TOKEN_BASEURL="+s.settings.TokenURL)
	}
	env, err := stack.Start(ctx, stack.WithTargetless(),
		stack.WithCloud(stack.API{Environment: variables}),
		stack.WithSidecarArgs("--stackit-settle="+s.settle.String(), "--machine-safety-orphan-vms-period=10s"))
	if err != nil {
		return nil, err
	}
	s.cluster = &cluster{suite: s, env: env, Client: env.Client()}
	return s.cluster, nil
}

// showLog shows the end of the sidecar's log.
func (c *cluster) showLog() {
	log, _ := c.env.Logs(stack.PartSidecar)
	c.suite.say("The end of the sidecar's log:\n%s", log[max(0, len(log)-8000):])
}

// createSecret creates a Secret with the account's credentials.
func (c *cluster) createSecret(ctx context.Context, name string) error {
	settings := c.suite.settings
	return c.Create(ctx, &corev1.Secret{ObjectMeta: c.meta(name), Data: map[string][]byte{
		"projectId": []byte(settings.ProjectID), "region": []byte(settings.Region),
		"networkId": []byte(c.suite.network), "userData": []byte("#cloud-config\n"), "serviceAccountKey": settings.Key,
	}})
}

func (c *cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace()}
}

// createMachine creates a Machine of a small server, and its class, of the same name; fields override the
// class's own.
func (c *cluster) createMachine(ctx context.Context, name string, fields map[string]any) error {
	settings := c.suite.settings
	spec := map[string]any{
		"machineType": settings.machineType, "imageId": settings.imageID,
		"bootVolume":       map[string]any{"size": bootVolumeSize},
		"labels":           map[string]any{api.ClusterLabel: api.NetworkName(c.suite.name)},
		"allowedAddresses": []any{podCIDR},
	}
	if settings.zone != "" {
		spec["availabilityZone"] = settings.zone
	}
	maps.Copy(spec, fields)
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: c.meta(name), Provider: "stackit", ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef: &corev1.SecretReference{Name: secret, Namespace: c.env.Namespace()},
	}); err != nil {
		return err
	}
	return c.Create(ctx, &v1alpha1.Machine{
		ObjectMeta: c.meta(name),
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: name}},
	})
}

// deleteMachines deletes all Machines without waiting.
func (c *cluster) deleteMachines(ctx context.Context) error {
	return c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))
}

// awaitNoMachine waits until there is no Machine.
func (c *cluster) awaitNoMachine(ctx context.Context) error {
	return c.suite.await(ctx, "no Machine", func(ctx context.Context) (string, bool, error) {
		var left v1alpha1.MachineList
		err := c.List(ctx, &left, client.InNamespace(c.env.Namespace()))
		return describe(left.Items...), len(left.Items) == 0, err
	})
}

// machine reads a Machine.
func (c *cluster) machine(ctx context.Context, name string) (machine v1alpha1.Machine, err error) {
	err = c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: name}, &machine)
	return machine, err
}

func isAvailable(machine v1alpha1.Machine) bool {
	return machine.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable
}

// awaitAvailable waits until a Machine is available. A server in ERROR ends the wait.
func (c *cluster) awaitAvailable(ctx context.Context, name string) (machine v1alpha1.Machine, err error) {
	err = c.suite.await(ctx, "Machine "+name+" Available", func(ctx context.Context) (_ string, _ bool, err error) {
		if text, failed := c.suite.guard.Failed(name); failed {
			return "", false, hopeless{errors.New(text)}
		}
		machine, err = c.machine(ctx, name)
		return describe(machine), isAvailable(machine), err
	})
	return machine, err
}

// describe returns the states of Machines in one line.
func describe(machines ...v1alpha1.Machine) string {
	var seen []string
	for _, machine := range machines {
		last := machine.Status.LastOperation
		seen = append(seen, fmt.Sprintf("Machine %s: %q, %s %q %s",
			machine.Name, machine.Status.CurrentStatus.Phase, last.State, last.ErrorCode, last.Description))
	}
	return strings.Join(seen, "; ")
}
