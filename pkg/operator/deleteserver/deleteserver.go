// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package deleteserver deletes the servers whose IDs the user gives, if no Machine and no Node uses
// them. It never selects servers itself: it is used while the manager does not run (migrations,
// restores), when a cluster's orphans cannot be proved as a whole. The rules are in the method
// refusal of Plan (deleteserver.go).
package deleteserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

const (
	// MaxServers is the maximum number of IDs that a user may give at a time. The caller of Look enforces it.
	MaxServers = 100
	// minAge is the minimum age of a server to delete: a younger one may still be in creation.
	minAge = time.Hour
	// maxParallel is the number of servers that are read or deleted in parallel: a deletion mostly
	// waits.
	maxParallel = 10
	// factsTTL is the maximum age of the Machines and Nodes that a server is checked against. Listing them takes time in a
	// large cluster, so deletions share the lists.
	factsTTL = 5 * time.Second
)

// Outcome is the result for one server. After Look, "" means that the server may be deleted.
type Outcome string

// The outcomes.
const (
	// Gone means that the server is proved gone.
	Gone Outcome = "gone"
	// StillThere means that the API still shows the server after the wait for its deletion.
	StillThere Outcome = "still there"
	// Refused means that no DELETE was sent. Reason has the cause.
	Refused Outcome = "refused"
	// NotFound means that Look did not find the server in any of the searched projects and regions.
	NotFound Outcome = "not found"
	// Unknown means that the result could not be determined, for instance because a read failed.
	// Reason has the cause.
	Unknown Outcome = "unknown"
)

// Server is a server that the user named, and its outcome.
type Server struct {
	ID string
	// At is the account in which Look found the server, Shown is the server as the API returned it
	// then; both are nil if Look could not read it or its addresses. Date is the API's clock at that read,
	// from the Date header; zero if there was none.
	At    *account.Account
	Shown *provider.Server
	Date  time.Time

	Outcome Outcome
	// Reason describes in one line why the server is not Gone, and what to do; "" if it is Gone or may
	// be deleted.
	Reason string
}

// Cluster returns the server's cluster labels as key=value, separated by commas. Shown must not be nil.
func (s *Server) Cluster() string { return account.ClusterText(account.ClusterLabels(s.Shown.Labels)) }

func (s *Server) end(outcome Outcome, format string, args ...any) {
	s.Outcome, s.Reason = outcome, fmt.Sprintf(format, args...)
}

// Plan holds the servers that the user named, and what they are checked against. Look creates it.
type Plan struct {
	// Servers has one entry per ID, in the order of the IDs.
	Servers []*Server
	// Machines counts the Machines whose ProviderID names a server of the same clusters as Servers;
	// Namespaces are the namespaces of these Machines. Nodes counts all Nodes of the target cluster.
	Machines, Nodes int
	Namespaces      []string
	// Places are the projects and regions that were searched, as "project x in eu01".
	Places []string
	// Problems are the reasons why other projects and regions could not be searched.
	Problems []error

	access   *account.Access
	accounts []*account.Account
	// ofCluster maps a cluster's labels to the IDs of its servers.
	ofCluster map[string][]string

	// reading is a semaphore for reading and replacing last.
	reading chan struct{}
	last    *facts
}

// facts are the MachineClasses and Machines, and the Nodes of the target cluster, at one moment.
type facts struct {
	began    time.Time
	classes  []*account.Class
	clusters []map[string]string
	machines []v1alpha1.Machine
	owners   *account.Owners
	nodes    []corev1.Node
}

// isOfCluster reports whether a Machine's class has the cluster labels.
func (f *facts) isOfCluster(machine *v1alpha1.Machine, cluster map[string]string) bool {
	return slices.ContainsFunc(f.classes, func(class *account.Class) bool {
		return class.Namespace == machine.Namespace && class.Name == machine.Spec.Class.Name && !class.IsForeign() &&
			account.Carries(class.Inputs.ClusterLabels, cluster)
	})
}

// Look checks which servers may be deleted, and changes nothing. It reads the servers first and then
// the Machines and Nodes that may use them, because a Machine exists before its server. access must
// have Control and Target. After each server, Look calls progress with the number of servers read;
// the calls do not overlap.
//
// Look returns an error if no project can be searched, or if it cannot read the Machines or
// MachineClasses of all namespaces, the Nodes of the target cluster, or the other servers of a
// server's cluster. A server that cannot be read gets an Outcome instead.
func Look(ctx context.Context, access *account.Access, ids []string, progress func(read int)) (*Plan, error) {
	p := &Plan{access: access, ofCluster: map[string][]string{}, reading: make(chan struct{}, 1)}
	if err := p.readPlaces(ctx); err != nil {
		return nil, err
	}
	for _, id := range ids {
		p.Servers = append(p.Servers, &Server{ID: id})
	}
	shown, count, counting := make([]*observation, len(ids)), 0, sync.Mutex{}
	inParallel(p.Servers, func(i int, server *Server) {
		shown[i] = p.find(ctx, server)
		counting.Lock()
		defer counting.Unlock()
		count++
		progress(count)
	})
	known, err := p.facts(ctx)
	if err != nil {
		return nil, err
	}
	for i, server := range p.Servers {
		if server.Outcome != "" {
			continue
		}
		if err := p.readCluster(ctx, server, known); err != nil {
			return nil, err
		}
		if reason := p.refusal(shown[i], known); reason != "" {
			server.end(Refused, "%s", reason)
		}
	}
	p.count(known)
	return p, nil
}

// inParallel calls do for each server, at most maxParallel at a time.
func inParallel(servers []*Server, do func(i int, server *Server)) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, server := range servers {
		group.Go(func() error {
			do(i, server)
			return nil
		})
	}
	_ = group.Wait()
}

// readPlaces sets the accounts to search.
func (p *Plan) readPlaces(ctx context.Context) error {
	accounts, problems := p.access.Accounts(ctx, p.access.Namespace)
	if len(accounts) == 0 {
		return errors.Join(problems...)
	}
	p.Problems = problems
	p.accounts = accounts // several may share a place, with different keys
	for _, at := range accounts {
		if place := at.String(); !slices.Contains(p.Places, place) {
			p.Places = append(p.Places, place)
		}
	}
	return nil
}

// observation is what the API returned for a server.
type observation struct {
	*provider.Server
	addresses []netip.Addr
	// date is the API's clock; zero if the answer has no Date.
	date time.Time
}

// errAddresses means that a server's addresses are unknown: without them, no Node can be ruled out.
var errAddresses = errors.New("the server's addresses cannot be read")

// read reads a server and its addresses.
func read(ctx context.Context, at *account.Account, id string) (*observation, error) {
	server, err := at.Server(ctx, id)
	if err != nil {
		return nil, err
	}
	addresses, date, err := at.Addresses(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errAddresses, at.Failure(err))
	case len(addresses) == 0: // a list may be empty for a while
		return nil, fmt.Errorf("%w: the API returned none", errAddresses)
	}
	return &observation{server, addresses, date}, nil
}

// find searches the accounts for a server and reads it.
func (p *Plan) find(ctx context.Context, server *Server) *observation {
	var failures []error
	for _, at := range p.accounts {
		shown, err := read(ctx, at, server.ID)
		switch {
		case err == nil:
			server.At, server.Shown, server.Date = at, shown.Server, shown.date
			return shown
		case errors.Is(err, errAddresses):
			server.end(Refused, "%v", err)
			return nil
		case !provider.IsNotFound(err):
			failures = append(failures, at.Failure(err))
		}
	}
	if len(failures) > 0 {
		server.end(Unknown, "%v", errors.Join(failures...))
	} else {
		server.end(NotFound, "no server with this ID found in %s: check ID, namespace and context",
			strings.Join(p.Places, ", "))
	}
	return nil
}

// facts returns MachineClasses, Machines and Nodes read at most factsTTL before the call.
func (p *Plan) facts(ctx context.Context) (*facts, error) {
	asked := p.access.Clock.Now()
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.last != nil && asked.Sub(p.last.began) <= factsTTL {
		return p.last, nil
	}
	known, nodes := &facts{began: p.access.Clock.Now()}, corev1.NodeList{}
	var err error
	if known.classes, err = p.access.Classes(ctx, metav1.NamespaceAll); err != nil {
		return nil, err
	}
	known.clusters = account.Clusters(known.classes)
	if known.machines, err = p.access.Machines(ctx, metav1.NamespaceAll); err != nil {
		return nil, fmt.Errorf("cannot identify orphans without the Machines of all namespaces: %w", err)
	}
	if err := p.access.Target.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing the Nodes of the target cluster: %w", err)
	}
	known.owners, known.nodes = account.NewOwners(known.machines), nodes.Items
	p.last = known
	return known, nil
}

// count counts the Machines with servers of the clusters that were looked at, and the Nodes.
func (p *Plan) count(known *facts) {
	ofClusters := slices.Concat(slices.Collect(maps.Values(p.ofCluster))...)
	p.Nodes = len(known.nodes)
	for i := range known.machines {
		machine := &known.machines[i]
		if slices.ContainsFunc(account.IDsIn(machine.Spec.ProviderID),
			func(id string) bool { return slices.Contains(ofClusters, id) }) {
			p.Machines++
			p.Namespaces = append(p.Namespaces, machine.Namespace)
		}
	}
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
}

// readCluster lists the servers of the server's cluster in all places, once per cluster: its Nodes may be servers of
// another region.
func (p *Plan) readCluster(ctx context.Context, server *Server, known *facts) error {
	labels := account.ClusterOf(server.Shown, known.clusters)
	cluster := account.ClusterText(labels)
	if _, isRead := p.ofCluster[cluster]; isRead || labels == nil {
		return nil
	}
	failures, ids := map[string]error{}, []string{} // failures by place, for places that no account could read
	for _, at := range p.accounts {
		place := at.String()
		if failed, isKnown := failures[place]; isKnown && failed == nil {
			continue
		}
		servers, err := at.Servers(ctx, labels)
		if failures[place] = nil; err != nil {
			failures[place] = at.Failure(err)
		}
		for i := range servers {
			if account.Carries(servers[i].Labels, labels) {
				ids = append(ids, servers[i].ID)
			}
		}
	}
	p.ofCluster[cluster] = ids
	return errors.Join(slices.Collect(maps.Values(failures))...)
}

// ToDelete returns the servers that may be deleted and have not been yet: those without an Outcome.
func (p *Plan) ToDelete() (all []*Server) {
	for _, server := range p.Servers {
		if server.Outcome == "" {
			all = append(all, server)
		}
	}
	return all
}

// ownedBy returns what to do about a server that a Machine names. isOurs reports whether its class has the server's
// cluster labels: a Machine of another cluster may have the same name.
func (p *Plan) ownedBy(machine *v1alpha1.Machine, server *observation, isOurs bool) string {
	ids := account.IDsIn(machine.Spec.ProviderID)
	switch {
	case slices.Contains(ids, server.ID), isOurs && machine.Spec.ProviderID == "":
		return fmt.Sprintf("Machine %s/%s names it; delete both with: %s delete machine %s",
			machine.Namespace, machine.Name, p.access.Kubectl(machine.Namespace), machine.Name)
	case isOurs && len(ids) > 0:
		remedy, _ := account.RemedyOrphan(server.Server)
		return fmt.Sprintf("it is a second server of Machine %s/%s, whose own server is %s: %s",
			machine.Namespace, machine.Name, ids[len(ids)-1], remedy)
	}
	return fmt.Sprintf("Machine %s/%s has the server's name, "+
		"but its ProviderID and class suggest that the server is another cluster's: find the server's owner",
		machine.Namespace, machine.Name)
}

// refusal returns why a server must not be deleted, and what to do; "" if it may be. There are three rules: no
// Machine names it, and a MachineClass of the control cluster names its cluster; no Node of the target cluster
// names it, Ready or not, and one of them names another server of its cluster, so that the target is the right
// cluster; it is older than minAge by the API's clock, the only clock that counts.
func (p *Plan) refusal(server *observation, known *facts) string {
	cluster := account.ClusterOf(server.Server, known.clusters)
	if owners := known.owners.Of(server.Server); len(owners) > 0 {
		return p.ownedBy(owners[0], server, known.isOfCluster(owners[0], cluster))
	}
	const byHand = "find its owner, then delete it with the stackit CLI"
	switch age := server.date.Sub(server.CreatedAt); {
	case !account.IsManaged(server.Server):
		return fmt.Sprintf("it lacks the label %s or %s, so its owner is unknown: %s",
			provider.StackitMachineLabel, provider.StackitMachineClassLabel, byHand)
	case server.Name != server.Labels[provider.StackitMachineLabel]: // the driver refuses it, too
		return fmt.Sprintf("its name is not %s, the value of its label %s, so one of them was edited: %s",
			server.Labels[provider.StackitMachineLabel], provider.StackitMachineLabel, byHand)
	case provider.OpenStackTag(server.Server) != "":
		return fmt.Sprintf("it has OpenStack's tag %s, and its Machine may still have OpenStack's ID "+
			"(kubernetes/migration.md); %s", provider.OpenStackTag(server.Server), byHand)
	case len(account.ClusterLabels(server.Labels)) == 0:
		return "it has no cluster label, so its owner is unknown: " + byHand
	case cluster == nil:
		return fmt.Sprintf("it belongs to another cluster than the MachineClasses here: its label is %s; "+
			"use the control cluster with its Machines or, if that is gone, see kubernetes/runbooks.md",
			account.ClusterText(account.ClusterLabels(server.Labels)))
	case server.date.IsZero(), server.CreatedAt.IsZero():
		return "its age is unknown: the API's answer lacks the creation time or the Date header; ask STACKIT"
	case age < minAge:
		return fmt.Sprintf("it is only %s old and may still be in creation: try again when it is older than %s",
			age.Round(time.Second), minAge)
	}
	isTarget, text := false, account.ClusterText(cluster)
	for i := range known.nodes {
		node := &known.nodes[i]
		if account.IsNodeOf(node, server.Server, server.addresses) {
			return fmt.Sprintf("Node %s of the target cluster runs on this server: "+
				"restore its Machine, or, to delete the server, drain and delete the Node first", node.Name)
		}
		isTarget = isTarget || slices.ContainsFunc(account.NodeIDs(node), func(id string) bool {
			return slices.Contains(p.ofCluster[text], id)
		})
	}
	if !isTarget {
		return fmt.Sprintf("none of the %d Nodes of the target cluster runs on a server of %s: --target-kubeconfig "+
			"may be for another cluster; if there are no Nodes, see kubernetes/runbooks.md", len(known.nodes), text)
	}
	return ""
}
