// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// createClass creates a MachineClass of a small server; fields override its own.
func (c *cluster) createClass(ctx context.Context, name string, fields map[string]any) error {
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
	return c.Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: c.meta(name), Provider: "stackit", ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef: &corev1.SecretReference{Name: secret, Namespace: c.env.Namespace()},
	})
}

func (c *cluster) createMachine(ctx context.Context, name, class string) error {
	return c.Create(ctx, &v1alpha1.Machine{ObjectMeta: c.meta(name), Spec: machineSpec(class)})
}

func machineSpec(class string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}}
}

// newDeployment returns a MachineDeployment with one Machine and a surge of one.
func (c *cluster) newDeployment(name, class string) *v1alpha1.MachineDeployment {
	labels := map[string]string{"deployment": name}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: c.meta(name),
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: 1,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: machineSpec(class)},
		},
	}
}

// machines returns the Machines of a class, all for "".
func (c *cluster) machines(ctx context.Context, class string) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	err := c.List(ctx, &list, client.InNamespace(c.env.Namespace()))
	return slices.DeleteFunc(list.Items, func(m v1alpha1.Machine) bool {
		return class != "" && m.Spec.Class.Name != class
	}), err
}

// awaitNoMachine waits until there is no Machine of a class, none at all for "".
func (c *cluster) awaitNoMachine(ctx context.Context, class string) error {
	return c.suite.await(ctx, "no Machine of class "+class, func(ctx context.Context) (string, bool, error) {
		left, err := c.machines(ctx, class)
		return describe(left...), len(left) == 0, err
	})
}

func isAvailable(machine v1alpha1.Machine) bool {
	return machine.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable && machine.DeletionTimestamp == nil
}

// awaitAvailable waits until a class has one Machine, and that is available. A server in ERROR ends the
// wait.
func (c *cluster) awaitAvailable(ctx context.Context, class string) (machine v1alpha1.Machine, err error) {
	err = c.suite.await(ctx, "a Machine of class "+class+" Available", func(ctx context.Context) (string, bool, error) {
		machines, err := c.machines(ctx, class)
		for _, machine := range machines {
			if text, failed := c.suite.guard.Failed(machine.Name); failed {
				return "", false, hopeless{errors.New(text)}
			}
		}
		if err != nil || len(machines) != 1 {
			return describe(machines...), false, err
		}
		machine = machines[0]
		return describe(machine), isAvailable(machine), nil
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
