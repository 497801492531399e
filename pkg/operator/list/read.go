// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
)

// clusterTimeout bounds the reads of a cluster: one that does not answer must not keep the
// servers from being shown.
const clusterTimeout = 30 * time.Second

// look reads what a query is about. Servers are read before Machines: a Machine is there
// before its server, so that a server cannot be new and its Machine not be read.
func look(ctx context.Context, o *account.Access, query Query) *observation {
	seen := &observation{now: o.Now(), namespace: o.Namespace, targetless: o.Target == nil && o.TargetError == nil, classPlaces: map[*account.Class]*place{}}
	if query.AllNamespaces {
		seen.namespace = ""
	}
	accounts, problems := accountsOf(ctx, o, query)
	for _, problem := range problems {
		seen.miss(PartServers, "", problem)
	}
	for _, account := range accounts {
		seen.addAccount(account)
	}
	var reads sync.WaitGroup
	for _, at := range seen.places {
		reads.Go(func() { seen.readPlace(ctx, at, query) })
	}
	reads.Wait()
	readClusters(ctx, o, seen, query)
	seen.join()
	lookForMissing(ctx, o, seen, query)
	return seen
}

// accountsOf are the Access's accounts; for all namespaces those that the MachineClasses
// there name, unless the user names one. Where reading them is forbidden, those of the
// Access's Namespace must do.
func accountsOf(ctx context.Context, o *account.Access, query Query) ([]*account.Account, []error) {
	if !query.AllNamespaces || o.Control == nil {
		return o.Accounts(ctx)
	}
	if secret, _, err := o.NamedSecret(ctx); secret != nil || err != nil {
		return o.Accounts(ctx)
	}
	classes, err := o.Classes(ctx)
	classes = slices.DeleteFunc(classes, account.IsForeign)
	if err != nil || len(classes) == 0 {
		return o.Accounts(ctx)
	}
	return o.AccountsOf(ctx, classes)
}

func (s *observation) addAccount(found *account.Account) {
	for _, at := range s.places {
		if at.project == found.Session.ProjectID && at.region == found.Region {
			at.accounts = append(at.accounts, found)
			return
		}
	}
	s.places = append(s.places, &place{project: found.Session.ProjectID, region: found.Region, accounts: []*account.Account{found}})
}

// readPlace reads the servers of a place, and what else the query asks for.
func (s *observation) readPlace(ctx context.Context, at *place, query Query) {
	var labels map[string]string
	if query.ClusterKey != "" {
		labels = map[string]string{query.ClusterKey: query.ClusterValue}
	}
	var failure error
	for _, used := range at.accounts {
		servers, err := used.Servers(ctx, labels)
		if err != nil {
			failure = errors.Join(failure, used.Failure(err))
			continue
		}
		at.servers, at.used = servers, used
		if query.Addresses {
			if at.addresses, err = used.Addresses(ctx); err != nil {
				s.miss(PartAddresses, at.String(), used.Failure(err))
			}
		}
		if query.Attachables {
			if at.attachables, err = used.Attachables(ctx); err != nil {
				s.miss(PartAttachables, at.String(), used.Failure(err))
			}
		}
		return
	}
	s.miss(PartServers, at.String(), failure)
}

// readClusters reads the Machines and MachineClasses of the control cluster, and the Nodes
// of the target cluster.
func readClusters(parent context.Context, o *account.Access, seen *observation, query Query) {
	ctx, cancel := context.WithTimeout(parent, clusterTimeout)
	defer cancel()
	var reads sync.WaitGroup
	reads.Go(func() {
		seen.classes = readNamespaces(o, seen, PartClasses, PartOtherClasses, func(namespace ...string) ([]*account.Class, error) {
			return o.InspectedClasses(ctx, namespace...)
		})
	})
	reads.Go(func() {
		seen.machines = readNamespaces(o, seen, PartMachines, PartOtherMachines, func(namespace ...string) ([]v1alpha1.Machine, error) {
			return o.Machines(ctx, namespace...)
		})
	})
	if query.Attachables && o.Control != nil {
		reads.Go(func() {
			var err error
			if seen.deployments, err = o.MachineDeployments(ctx, o.Namespace); err != nil {
				seen.miss(PartDeployments, "", err)
			}
		})
	}
	if o.TargetError != nil {
		seen.miss(PartNodes, "", o.TargetError)
	}
	if o.Target != nil {
		reads.Go(func() {
			nodes, err := o.Nodes(ctx)
			if err != nil {
				seen.miss(PartNodes, "", err)
			}
			seen.nodes = nodes
		})
	}
	reads.Wait()
}

// readNamespaces lists the objects of all namespaces; where that is forbidden, those of the
// Access's.
func readNamespaces[T any](o *account.Access, seen *observation, part, others Part, list func(namespace ...string) ([]T, error)) []T {
	if o.Control == nil {
		seen.miss(part, "", cmp.Or(o.ControlError, errors.New("no cluster with Machines was asked")))
		return nil
	}
	all, err := list()
	if apierrors.IsForbidden(err) {
		seen.miss(others, "", err)
		all, err = list(o.Namespace)
	}
	if err != nil {
		seen.miss(part, "", err)
	}
	return all
}
