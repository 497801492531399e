// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	// chaosPools are at a time, chaosMaxReplicas each.
	chaosPools       = 3
	chaosMaxReplicas = 5
)

// chaosClasses are the MachineClasses and their machine types.
var chaosClasses = map[string]string{"blue": iaasmock.DefaultMachineType, "green": "g2i.4"}

// wantedPool is what the user wants of a deployment.
type wantedPool struct {
	replicas int
	class    string
}

// chaosUser makes, scales, rolls and deletes MachineDeployments.
type chaosUser struct {
	*cluster
	random *rand.Rand
	wanted map[string]wantedPool
	// changes and strayNodes are counted for the report.
	changes, strayNodes int
}

// act changes one deployment, and insists: the API server may be away.
func (u *chaosUser) act(ctx context.Context) time.Duration {
	names := slices.Sorted(maps.Keys(u.wanted))
	choice := u.random.IntN(10)
	var change func() error
	var name string
	next := wantedPool{replicas: u.random.IntN(chaosMaxReplicas + 1), class: u.pickClass()}
	if len(names) == 0 || len(names) < chaosPools && choice < 4 {
		name = fmt.Sprintf("pool-%d", u.changes) // never used before
		change = func() error { return u.createPool(ctx, name, next) }
	} else {
		name = names[u.random.IntN(len(names))]
		change = func() error { return u.changePool(ctx, name, next) }
		switch pool := u.wanted[name]; {
		case choice < 7: // another number of the same
			next.class = pool.class
		case choice < 9: // as many of another class
			next = wantedPool{replicas: pool.replicas, class: otherClass(pool.class)}
		default:
			change = func() error { return u.deletePool(ctx, name) }
			next = wantedPool{}
		}
	}
	insist(ctx, change)
	if u.wanted[name] = next; next.class == "" {
		delete(u.wanted, name)
	}
	u.changes++
	_, _ = fmt.Fprintf(GinkgoWriter, "user: %s is to be %+v\n", name, next)
	return between(u.random, 2*time.Second, 8*time.Second)
}

// actLast wants a few more Machines, so that there is something to see at rest.
func (u *chaosUser) actLast(ctx context.Context) {
	last := wantedPool{replicas: 3, class: u.pickClass()}
	insist(ctx, func() error { return u.createPool(ctx, "last", last) })
	u.wanted["last"] = last
}

func insist(ctx context.Context, change func() error) {
	for err := change(); err != nil && ctx.Err() == nil; err = change() {
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

func (u *chaosUser) pickClass() string {
	return []string{"blue", "green"}[u.random.IntN(len(chaosClasses))]
}

func otherClass(class string) string {
	if class == "blue" {
		return "green"
	}
	return "blue"
}

// createPool takes it well if the deployment is there: an answer was lost.
func (u *chaosUser) createPool(ctx context.Context, name string, pool wantedPool) error {
	err := u.Create(ctx, u.newDeployment(name, pool.class, int32(pool.replicas)))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (u *chaosUser) changePool(ctx context.Context, name string, pool wantedPool) error {
	var deployment v1alpha1.MachineDeployment
	if err := u.Get(ctx, u.key(name), &deployment); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = int32(pool.replicas)
	deployment.Spec.Template.Spec.Class = classReference(pool.class)
	return u.Patch(ctx, &deployment, client.MergeFrom(before))
}

func (u *chaosUser) deletePool(ctx context.Context, name string) error {
	deployment := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: u.env.Namespace()}}
	return client.IgnoreNotFound(u.Delete(ctx, deployment))
}

func (u *chaosUser) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: u.env.Namespace(), Name: name}
}

// machineAtRest answers nil when the Machine is Running, of the class its deployment
// is to have, with its one server.
func (u *chaosUser) machineAtRest(machine *v1alpha1.Machine) error {
	if phase := machine.Status.CurrentStatus.Phase; phase != v1alpha1.MachineRunning || machine.DeletionTimestamp != nil {
		return fmt.Errorf("machine %s is %q: %s", machine.Name, phase, machine.Status.LastOperation.Description)
	}
	pool := u.wanted[machine.Labels[deploymentLabel]]
	if machine.Spec.Class.Name != pool.class {
		return fmt.Errorf("machine %s is of class %s, %q is wanted", machine.Name, machine.Spec.Class.Name, pool.class)
	}
	var own []iaasmock.Server
	for _, server := range u.env.Cloud().Servers() {
		if server.Name == machine.Name {
			own = append(own, server)
		}
	}
	if len(own) != 1 || own[0].Status != iaasmock.StatusActive || own[0].MachineType != chaosClasses[pool.class] ||
		!strings.HasSuffix(machine.Spec.ProviderID, "/"+own[0].ID) {
		return fmt.Errorf("machine %s with ProviderID %q has the servers %+v", machine.Name, machine.Spec.ProviderID, own)
	}
	return nil
}
