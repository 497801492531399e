// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Classes lists the MachineClasses of the namespaces; of all namespaces if none is named.
func (o *Access) Classes(ctx context.Context, namespaces ...string) ([]*v1alpha1.MachineClass, error) {
	var all []*v1alpha1.MachineClass
	var list v1alpha1.MachineClassList
	err := o.list(ctx, "MachineClasses", namespaces, &list, func() {
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		list = v1alpha1.MachineClassList{}
	})
	return all, err
}

// Machines lists the Machines of the namespaces; of all namespaces if none is named.
func (o *Access) Machines(ctx context.Context, namespaces ...string) ([]v1alpha1.Machine, error) {
	var all []v1alpha1.Machine
	var list v1alpha1.MachineList
	err := o.list(ctx, "Machines", namespaces, &list, func() {
		all = append(all, list.Items...)
		list = v1alpha1.MachineList{}
	})
	return all, err
}

// MachineDeployments lists those of the namespaces; of all namespaces if none is named.
func (o *Access) MachineDeployments(ctx context.Context, namespaces ...string) ([]v1alpha1.MachineDeployment, error) {
	var all []v1alpha1.MachineDeployment
	var list v1alpha1.MachineDeploymentList
	err := o.list(ctx, "MachineDeployments", namespaces, &list, func() {
		all = append(all, list.Items...)
		list = v1alpha1.MachineDeploymentList{}
	})
	return all, err
}

// MachineSets lists those of the namespaces; of all namespaces if none is named.
func (o *Access) MachineSets(ctx context.Context, namespaces ...string) ([]v1alpha1.MachineSet, error) {
	var all []v1alpha1.MachineSet
	var list v1alpha1.MachineSetList
	err := o.list(ctx, "MachineSets", namespaces, &list, func() {
		all = append(all, list.Items...)
		list = v1alpha1.MachineSetList{}
	})
	return all, err
}

// list lists the objects of each namespace, and hands each list on.
func (o *Access) list(ctx context.Context, what string, namespaces []string, list client.ObjectList, add func()) error {
	if len(namespaces) == 0 {
		if err := o.Control.List(ctx, list); err != nil {
			return fmt.Errorf("listing %s: %w", what, err)
		}
		add()
	}
	for _, namespace := range namespaces {
		if err := o.Control.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing %s in namespace %s: %w", what, namespace, err)
		}
		add()
	}
	return nil
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// IDsIn returns the IDs in a ProviderID, among them the server's, also where the driver would
// refuse the form: who looks for servers that nobody needs must not overlook one.
func IDsIn(providerID string) []string {
	return uuid.FindAllString(strings.ToLower(providerID), -1)
}
