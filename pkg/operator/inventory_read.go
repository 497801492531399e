// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// clusterTimeout bounds the reads of a cluster: one that does not answer must not keep the
// servers from being shown.
const clusterTimeout = 30 * time.Second

// site is a project and region, and what was read there.
type site struct {
	project, region string
	// accounts reach it, with different keys; the first that works is used.
	accounts []*Account
	// used is the one that worked; nil if the servers were not read.
	used    *Account
	servers []provider.Server
	// partial says that servers may be there that were not read.
	partial bool
	// gone are the IDs of servers that the API itself does not find.
	gone []string
	// addresses are by the server's ID; nil if they were not read.
	addresses map[string][]string
}

func (s *site) String() string { return fmt.Sprintf("project %s in %s", s.project, s.region) }

// look reads what a query is about. Servers are read before Machines: a Machine is there
// before its server, so that a server cannot be new and its Machine not be read.
func (o *Operator) look(ctx context.Context, query Query) *sight {
	seen := &sight{now: o.now(), namespace: o.Namespace, targetless: o.Target == nil && o.TargetError == nil}
	accounts, problems := o.Accounts(ctx)
	for _, problem := range problems {
		seen.miss(PartServers, "", problem)
	}
	for _, account := range accounts {
		seen.addAccount(account)
	}
	var reads sync.WaitGroup
	for _, at := range seen.sites {
		reads.Go(func() { seen.readSite(ctx, at, query) })
	}
	reads.Wait()
	o.readClusters(ctx, seen)
	seen.join()
	o.lookForMissing(ctx, seen, query)
	seen.readMissing(ctx, query)
	return seen
}

// addAccount adds an account to its site.
func (s *sight) addAccount(account *Account) {
	for _, at := range s.sites {
		if at.project == account.Session.ProjectID && at.region == account.Region {
			at.accounts = append(at.accounts, account)
			return
		}
	}
	s.sites = append(s.sites, &site{project: account.Session.ProjectID, region: account.Region, accounts: []*Account{account}})
}

// readSite reads the servers of a site, and their addresses if the query asks for them.
func (s *sight) readSite(ctx context.Context, at *site, query Query) {
	var labels map[string]string
	if query.ClusterKey != "" {
		labels = map[string]string{query.ClusterKey: query.ClusterValue}
	}
	var failure error
	for _, account := range at.accounts {
		servers, err := account.servers(ctx, labels)
		if err != nil {
			failure = errors.Join(failure, apiFailure(account.Origin, err))
			continue
		}
		at.servers, at.used = servers, account
		if query.Addresses {
			if at.addresses, err = account.addresses(ctx); err != nil {
				s.miss(PartAddresses, at.String(), apiFailure(account.Origin, err))
			}
		}
		return
	}
	s.miss(PartServers, at.String(), failure)
}

// apiFailure is a failed call of the API as the manager would be told of it.
func apiFailure(origin string, err error) error {
	code, text := provider.Classify(err)
	return fmt.Errorf("%s: %v: %s", origin, code, text)
}

// addresses reads the addresses of all servers of the account's project and region.
func (a *Account) addresses(ctx context.Context) (map[string][]string, error) {
	nics, err := read(ctx, a, func(ctx context.Context) ([]provider.NIC, error) {
		return provider.ListProjectNICs(ctx, a.Session, a.Region)
	})
	if err != nil {
		return nil, err
	}
	byServer := map[string][]string{}
	for i := range nics {
		if server := nics[i].ServerID; server != "" {
			byServer[server] = append(byServer[server], nics[i].Addresses()...)
		}
	}
	return byServer, nil
}

// readClusters reads the Machines and MachineClasses of the control cluster, and the Nodes
// of the target cluster.
func (o *Operator) readClusters(parent context.Context, seen *sight) {
	ctx, cancel := context.WithTimeout(parent, clusterTimeout)
	defer cancel()
	var reads sync.WaitGroup
	reads.Go(func() {
		seen.classes = readNamespaces(o, seen, PartClasses, PartOtherClasses, func(namespace ...string) ([]*inspectedClass, error) {
			return o.inspectedClasses(ctx, namespace...)
		})
	})
	reads.Go(func() {
		seen.machines = readNamespaces(o, seen, PartMachines, PartOtherMachines, func(namespace ...string) ([]v1alpha1.Machine, error) {
			return o.machines(ctx, namespace...)
		})
	})
	if o.TargetError != nil {
		seen.miss(PartNodes, "", o.TargetError)
	}
	if o.Target != nil {
		reads.Go(func() {
			var nodes corev1.NodeList
			if err := o.Target.List(ctx, &nodes); err != nil {
				seen.miss(PartNodes, "", fmt.Errorf("listing Nodes: %w", err))
			}
			seen.nodes = nodes.Items
		})
	}
	reads.Wait()
}

// readNamespaces lists the objects of all namespaces; where that is forbidden, those of the
// Operator's.
func readNamespaces[T any](o *Operator, seen *sight, part, others Part, list func(namespace ...string) ([]T, error)) []T {
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

// inspectedClasses are the MachineClasses of the namespaces, inspected without their Secrets.
func (o *Operator) inspectedClasses(ctx context.Context, namespaces ...string) ([]*inspectedClass, error) {
	classes, err := o.classes(ctx, namespaces...)
	inspected := make([]*inspectedClass, 0, len(classes))
	for _, class := range classes {
		inspected = append(inspected, &inspectedClass{class, provider.Inspect(class, nil)})
	}
	return inspected, err
}
