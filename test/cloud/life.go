// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	// bootVolumeSize is the size of each server's boot volume in GB.
	bootVolumeSize = 20
	// podCIDR is what the life's NICs may send from, besides their own addresses.
	podCIDR = "100.96.0.0/11"
	// secretName is the name of the Secret with the account's key.
	secretName = "credentials"
	// stays and rolled are the ends of the names of the two MachineDeployments.
	stays, rolled = "stays", "rolled"
)

// life is the first half of a run: a local control plane, whose sidecar works in the real project.
type life struct {
	*run
	client.Client

	env *localenv.Env
}

// life makes three Machines, rolls one and scales to zero. Without a target cluster Machines are Available
// once their server is ACTIVE: no Node has to join.
func (r *run) life(ctx context.Context) (err error) {
	variables := []string{spi.EnvIaaSEndpoint + "=" + r.settings.config.Endpoint}
	if url := r.settings.config.TokenURL; url != "" {
		variables = append(variables, spi.EnvTokenURL+"="+url)
	}
	env, err := localenv.Start(ctx, localenv.WithTargetless(), localenv.WithAPI(localenv.API{Environment: variables}),
		localenv.WithSidecarArgs("--stackit-settle="+r.settle.String(), "--v=4"))
	if err != nil {
		return err
	}
	defer env.Stop()
	l := &life{run: r, Client: env.Client(), env: env}
	defer l.saveCalls(&err)
	steps := []struct {
		question string
		do       func(context.Context) error
	}{
		{"The driver makes three Machines", l.make},
		{"The driver rolls one Machine", l.roll},
		{"The driver deletes three Machines", l.scaleToZero},
	}
	for _, step := range steps {
		began := time.Now()
		err := step.do(ctx)
		if err != nil {
			r.note(step.question, "FAILED: %v", err)
			return fmt.Errorf("%s: %w", step.question, err)
		}
		r.note(step.question, "in %s", time.Since(began).Round(time.Second))
	}
	return nil
}

// make makes a MachineDeployment of two Machines, and one of a single Machine.
func (l *life) make(ctx context.Context) error {
	err := l.Create(ctx, &corev1.Secret{ObjectMeta: l.meta(secretName), Data: map[string][]byte{
		"projectId": []byte(l.settings.projectID), "region": []byte(l.settings.region),
		"networkId": []byte(l.network), "userData": []byte("#cloud-config\n"), "serviceAccountKey": []byte(l.settings.key),
	}})
	if err == nil {
		err = l.createClass(ctx, "first")
	}
	if err == nil {
		err = l.Create(ctx, l.deployment(stays, 2))
	}
	if err == nil {
		err = l.Create(ctx, l.deployment(rolled, 1))
	}
	if err != nil {
		return err
	}
	return l.awaitMachines(ctx, map[string]int{"first": 3})
}

// roll gives the single Machine another class: machine-controller-manager makes a new Machine, and deletes
// the old one once the new one is Available. The old one may still be going when the next step begins.
func (l *life) roll(ctx context.Context) error {
	if err := l.createClass(ctx, "second"); err != nil {
		return err
	}
	err := l.change(ctx, rolled, func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "second" })
	if err != nil {
		return err
	}
	return l.awaitMachines(ctx, map[string]int{"first": 2, "second": 1})
}

func (l *life) scaleToZero(ctx context.Context) error {
	for _, name := range []string{stays, rolled} {
		if err := l.change(ctx, name, func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 0 }); err != nil {
			return err
		}
	}
	return l.awaitMachines(ctx, nil)
}

func (l *life) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: l.env.Namespace()}
}

func (l *life) createClass(ctx context.Context, name string) error {
	spec := map[string]any{
		"machineType": l.settings.machineType, "imageId": l.settings.imageID,
		"bootVolume":       map[string]any{"size": bootVolumeSize},
		"labels":           map[string]any{clusterLabel: networkName(l.name)},
		"allowedAddresses": []any{podCIDR},
	}
	if l.settings.zone != "" {
		spec["availabilityZone"] = l.settings.zone
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return l.Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: l.meta(name), Provider: "stackit", ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef: &corev1.SecretReference{Name: secretName, Namespace: l.env.Namespace()},
	})
}

// deployment returns a MachineDeployment of the class "first". A rolling update adds a Machine before it
// deletes one.
func (l *life) deployment(name string, replicas int32) *v1alpha1.MachineDeployment {
	labels := map[string]string{"pool": name}
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: l.meta(namesBegin(l.name) + name),
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "first"}},
			},
		},
	}
}

func (l *life) change(ctx context.Context, name string, change func(*v1alpha1.MachineDeployment)) error {
	deployment := &v1alpha1.MachineDeployment{ObjectMeta: l.meta(namesBegin(l.name) + name)}
	if err := l.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	change(deployment)
	return l.Patch(ctx, deployment, client.MergeFrom(before))
}

// awaitMachines waits until there are so many Available Machines of each class and no others, except those
// that are being deleted, and each has the one server of its name. With none wanted, all must be gone. A server
// in ERROR ends the wait: the manager would go on making others.
func (l *life) awaitMachines(ctx context.Context, wanted map[string]int) error {
	var failure error
	err := l.await(ctx, l.patience, func(ctx context.Context) (string, bool) {
		var servers map[string]string
		if servers, failure = l.lifeServers(ctx); failure != nil {
			return "", true
		}
		var machines v1alpha1.MachineList
		if err := l.List(ctx, &machines, client.InNamespace(l.env.Namespace())); err != nil {
			return err.Error(), false
		}
		isDone := servers != nil && l.isAsWanted(machines.Items, servers, wanted)
		return fmt.Sprintf("%d servers; %s", len(servers), states(machines.Items)), isDone
	})
	return cmp.Or(failure, err)
}

// lifeServers returns the IDs of the Machines' servers by name, nil while lists cannot be read. The error is
// a reason to end the life.
func (l *life) lifeServers(ctx context.Context) (map[string]string, error) {
	v, err := l.look(ctx)
	if err != nil {
		l.printOnce("cannot read all of the run's resources, trying again: %s", describe(err))
		return nil, nil
	}
	servers := map[string]string{}
	for i := range v.servers {
		server := &v.servers[i]
		if strings.HasPrefix(server.GetName(), namesBegin(l.name)+probeName) {
			continue
		}
		if server.GetStatus() == statusError {
			return nil, fmt.Errorf("server %s is in ERROR: %s", server.GetId(), server.GetErrorMessage())
		}
		if other := servers[server.GetName()]; other != "" {
			return nil, fmt.Errorf("servers %s and %s have the same Machine's name: must be one server for each Machine",
				other, server.GetId())
		}
		servers[server.GetName()] = server.GetId()
	}
	return servers, nil
}

// isAsWanted reports whether there are exactly the wanted Machines, each with its server's ProviderID.
func (l *life) isAsWanted(machines []v1alpha1.Machine, servers map[string]string, wanted map[string]int) bool {
	if len(wanted) == 0 {
		return len(machines) == 0 && len(servers) == 0
	}
	seen := map[string]int{}
	for _, machine := range machines {
		if machine.DeletionTimestamp != nil {
			continue
		}
		isAvailable := machine.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable
		if !isAvailable || machine.Spec.ProviderID != "stackit://"+l.ProjectID+"/"+servers[machine.Name] {
			return false
		}
		seen[machine.Spec.Class.Name]++
	}
	return maps.Equal(seen, wanted)
}

// states describes Machines in one line.
func states(machines []v1alpha1.Machine) string {
	var seen []string
	for _, machine := range machines {
		last := machine.Status.LastOperation
		seen = append(seen, fmt.Sprintf("Machine %s: %q, %s %q %s",
			machine.Name, machine.Status.CurrentStatus.Phase, last.State, last.ErrorCode, last.Description))
	}
	if len(seen) == 0 {
		return "no Machine"
	}
	return strings.Join(seen, "; ")
}

// saveCalls adds the API calls in the sidecar's log to the exchanges, and prints the ends of the logs
// if the life failed.
func (l *life) saveCalls(failure *error) {
	log, err := l.env.Logs(localenv.PartSidecar)
	if err != nil {
		l.say("The sidecar's log cannot be read: %v", err)
	}
	for line := range strings.Lines(log) {
		if _, call, ok := strings.Cut(line, `"API call" `); ok {
			l.exchanges.write(&exchange{Sidecar: strings.TrimSpace(call)})
		}
	}
	if *failure == nil {
		return
	}
	managerLog, _ := l.env.Logs(localenv.PartManager)
	for part, log := range map[localenv.Part]string{localenv.PartSidecar: log, localenv.PartManager: managerLog} {
		l.say("The end of the log of %s:\n%s", part, log[max(0, len(log)-5000):])
	}
}
