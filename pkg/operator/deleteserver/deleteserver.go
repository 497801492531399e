// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package deleteserver deletes the servers whose IDs the user names, if nobody needs them. It never
// chooses: it is used when the manager does not run, as in migrations and restores, when nothing
// proves anything about a whole cluster. The method refusal says which server is refused.
package deleteserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

const (
	// atOnce is how many servers are read, and deleted, side by side: a deletion mostly waits.
	atOnce = 10
	// factsTTL is how old Machines and Nodes may be when a server is checked: in a large cluster
	// their lists take their time, and one serves all deletions.
	factsTTL = 5 * time.Second
)

// Outcome is what became of a server; "" as long as it is to be deleted.
type Outcome string

// The outcomes.
const (
	// Gone means that the server is proved gone.
	Gone Outcome = "gone"
	// StillThere means that a read showed it after all.
	StillThere Outcome = "still there"
	// Refused means that nothing was sent, for the Reason.
	Refused Outcome = "refused"
	// NotFound means that the first read did not show it.
	NotFound Outcome = "not found"
	// Unknown means that what became of it was not seen.
	Unknown Outcome = "unknown"
)

// Options say what the user names.
type Options struct {
	// IDs are the servers, each once.
	IDs []string
	// OlderThan is the least age of a server that is deleted.
	OlderThan time.Duration
	// Clusters are labels of clusters beside those of the namespace's MachineClasses.
	Clusters []map[string]string
}

// Server is one that the user names, and what became of it.
type Server struct {
	ID string
	// At is where the first read showed it, as Shown, by the API's clock at Date.
	At    *account.Account
	Shown *provider.Server
	Date  time.Time

	Outcome Outcome
	// Reason says why it is not Gone, and what to do, in one line.
	Reason string
}

// Cluster is what its labels say of its cluster.
func (s *Server) Cluster() string { return account.ClusterText(account.ClusterLabels(s.Shown.Labels)) }

func (s *Server) end(outcome Outcome, format string, args ...any) {
	s.Outcome, s.Reason = outcome, fmt.Sprintf(format, args...)
}

// Plan is what the first look showed.
type Plan struct {
	// Servers has one for each ID, in their order.
	Servers []*Server
	// ClusterNodes counts, for each cluster of the servers that are to be deleted, the Nodes of the
	// target cluster that are its servers.
	ClusterNodes map[string]int
	// Machines and Nodes count those that were looked at, Namespaces have the Machines.
	Machines, Nodes int
	Namespaces      []string
	// Places are where was looked.
	Places []string
	// Problems are why other places could not be looked at.
	Problems []error

	access   *account.Access
	options  Options
	clusters []map[string]string
	accounts []*account.Account
	wire     *wire

	// reading has room for who reads last.
	reading chan struct{}
	last    *facts
}

// facts are the Machines, and the Nodes of the target cluster, of a moment.
type facts struct {
	began    time.Time
	machines []v1alpha1.Machine
	owners   *account.Owners
	nodes    []corev1.Node
}

// Look reads the servers, and then who needs them: a Machine is there before its server. It changes
// nothing. The Access must have a Control. It fails if the Machines of all namespaces, the Nodes of the
// target cluster, or a list of a cluster's servers cannot be read: nobody is an orphan then.
func Look(ctx context.Context, o *account.Access, options Options) (*Plan, error) {
	access := *o
	p := &Plan{access: &access, options: options, wire: &wire{next: o.Sessions.Transport}, reading: make(chan struct{}, 1)}
	access.Sessions = &spi.PluginSPIImpl{Config: o.Sessions.Config, UserAgent: o.Sessions.UserAgent, Transport: p.wire}
	if err := p.readPlaces(ctx); err != nil {
		return nil, err
	}
	for _, id := range options.IDs {
		p.Servers = append(p.Servers, &Server{ID: id})
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, server := range p.Servers {
		group.Go(func() error {
			p.find(ctx, server)
			return nil
		})
	}
	_ = group.Wait()
	known, err := p.facts(ctx)
	if err != nil {
		return nil, err
	}
	p.count(known)
	for _, server := range p.Servers {
		if server.Shown == nil {
			continue
		}
		if reason := p.refusal(server.Shown, server.Date, known); reason != "" {
			server.end(Refused, "%s", reason)
		}
	}
	return p, p.findNodes(ctx, known)
}

// readPlaces reads which clusters and accounts are looked at.
func (p *Plan) readPlaces(ctx context.Context) error {
	classes, err := p.access.Classes(ctx, p.access.Namespace)
	if err != nil {
		return err
	}
	p.clusters = append(account.Clusters(classes), p.options.Clusters...)
	accounts, problems := p.access.Accounts(ctx, p.access.Namespace)
	if len(accounts) == 0 {
		return errors.Join(problems...)
	}
	p.Problems = problems
	for _, at := range accounts {
		if place := at.String(); !slices.Contains(p.Places, place) { // else with another key
			p.Places, p.accounts = append(p.Places, place), append(p.accounts, at)
		}
	}
	return nil
}

// find reads a server where it is.
func (p *Plan) find(ctx context.Context, server *Server) {
	var failures []error
	for _, at := range p.accounts {
		shown, date, err := read(ctx, at, server.ID)
		switch {
		case err == nil:
			server.At, server.Shown, server.Date = at, shown, date
			return
		case !provider.IsNotFound(err):
			failures = append(failures, at.Failure(err))
		}
	}
	if len(failures) > 0 {
		server.end(Unknown, "%v", errors.Join(failures...))
	} else {
		server.end(NotFound, "not found in %s", strings.Join(p.Places, ", "))
	}
}

// facts returns Machines and Nodes that are at most factsTTL older than the call.
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
	if known.machines, err = p.access.Machines(ctx, metav1.NamespaceAll); err != nil {
		return nil, fmt.Errorf("only who can read the Machines of all namespaces knows which server is an orphan: %w", err)
	}
	known.owners = account.NewOwners(known.machines)
	if p.access.Target != nil {
		if err := p.access.Target.List(ctx, &nodes); err != nil {
			return nil, fmt.Errorf("the target cluster: listing Nodes: %w", err)
		}
	}
	known.nodes = nodes.Items
	p.last = known
	return known, nil
}

func (p *Plan) count(known *facts) {
	p.Machines, p.Nodes = len(known.machines), len(known.nodes)
	for i := range known.machines {
		p.Namespaces = append(p.Namespaces, known.machines[i].Namespace)
	}
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
}

// findNodes counts the Nodes that are servers of the clusters: without one the target may be
// another cluster.
func (p *Plan) findNodes(ctx context.Context, known *facts) error {
	counted := map[string]bool{}
	p.ClusterNodes = map[string]int{}
	for _, server := range p.ToDelete() {
		key := server.At.String() + " " + server.Cluster()
		if counted[key] {
			continue
		}
		counted[key] = true
		p.ClusterNodes[server.Cluster()] += 0 // also where it has none
		if len(known.nodes) == 0 {
			continue
		}
		labels := account.ClusterLabels(server.Shown.Labels)
		servers, err := server.At.Servers(ctx, labels)
		if err != nil {
			return server.At.Failure(err)
		}
		for j := range known.nodes {
			ids := account.IDsIn(known.nodes[j].Spec.ProviderID)
			if slices.ContainsFunc(servers, func(one provider.Server) bool {
				return slices.Contains(ids, one.ID) && account.Carries(one.Labels, labels)
			}) {
				p.ClusterNodes[server.Cluster()]++
			}
		}
	}
	return nil
}

// ToDelete are the servers without an outcome.
func (p *Plan) ToDelete() (all []*Server) {
	for _, server := range p.Servers {
		if server.Outcome == "" {
			all = append(all, server)
		}
	}
	return all
}

// MaxUnasked is how many servers are deleted without somebody who types their number.
const MaxUnasked = 10

// RefuseUnasked refuses what must not be deleted without a question: more than MaxUnasked, and servers
// of clusters of which the target cluster has no Node, so that it may be the wrong one.
func (p *Plan) RefuseUnasked() {
	const ask = "run this on a terminal without --yes"
	left := p.ToDelete()
	for _, server := range left {
		if len(left) > MaxUnasked {
			server.end(Refused, "it is one of %d, and the number of more than %d must be typed: %s", len(left), MaxUnasked, ask)
		} else if p.ClusterNodes[server.Cluster()] == 0 {
			server.end(Refused, "0 of %d Nodes are servers of %s, so that the target may be the wrong one: %s",
				p.Nodes, server.Cluster(), ask)
		}
	}
}

// refusal says why a server must not be deleted, and what to do; "" if it may be. now is the API's
// time when it showed the server: nobody else's clock counts.
func (p *Plan) refusal(server *provider.Server, now time.Time, known *facts) string {
	label, age := server.Labels[provider.StackitMachineLabel], now.Sub(server.CreatedAt)
	if reason := p.ownerRefusal(server, known.owners); reason != "" {
		return reason
	}
	switch tag := provider.OpenStackTag(server); {
	case server.Name != label:
		return fmt.Sprintf("its name is not %s, as its label %s says: one of them was edited; "+
			"correct it, or look whose it is and delete it by hand", label, provider.StackitMachineLabel)
	case tag != "":
		return fmt.Sprintf("it has OpenStack's tag %s, and its Machine may still have OpenStack's ID "+
			"(kubernetes/migration.md); look whose it is and delete it by hand", tag)
	case now.IsZero():
		return "its age is unknown: the API's answer has no Date; ask STACKIT"
	case server.CreatedAt.IsZero():
		return "its age is unknown: the API shows no creation time; ask STACKIT"
	case age < p.options.OlderThan:
		return fmt.Sprintf("it is %s old, and somebody may be making it: run this again when it is older than %s",
			age.Round(time.Second), p.options.OlderThan)
	}
	for i := range known.nodes {
		node := &known.nodes[i]
		if !account.IsNodeOf(node, server) {
			continue
		}
		if reason := p.nodeRefusal(node, server, now); reason != "" {
			return reason
		}
	}
	return ""
}

// ownerRefusal says why a server is no orphan.
func (p *Plan) ownerRefusal(server *provider.Server, owners *account.Owners) string {
	switch account.WhoseIs(server, p.clusters, owners) {
	case account.Orphan:
		return ""
	case account.OfMachine:
		machine := owners.Of(server)[0]
		ids := account.IDsIn(machine.Spec.ProviderID)
		if len(ids) > 0 && !slices.Contains(ids, server.ID) {
			return fmt.Sprintf("it is a second server of Machine %s/%s, whose server is %s: %s",
				machine.Namespace, machine.Name, ids[len(ids)-1], account.RemedyOrphan)
		}
		return fmt.Sprintf("Machine %s/%s names it; both go with: kubectl -n %s delete machine %s",
			machine.Namespace, machine.Name, machine.Namespace, machine.Name)
	case account.Unmanaged:
		return fmt.Sprintf("it lacks the label %s or %s, and may be anybody's: look whose it is and delete it by hand",
			provider.StackitMachineLabel, provider.StackitMachineClassLabel)
	case account.Untold:
		return string(account.Untold)
	case account.OtherCluster:
	}
	text := account.ClusterText(account.ClusterLabels(server.Labels))
	if text == "" {
		return "it carries no cluster's label, and may be anybody's: look whose it is and delete it by hand"
	}
	return fmt.Sprintf("it is of another cluster than the MachineClasses here: its label is %s; "+
		"use the cluster with its Machines or, if that is gone, --cluster", text)
}

// nodeRefusal says why a server's Node keeps it: it works, or worked a moment ago.
func (p *Plan) nodeRefusal(node *corev1.Node, server *provider.Server, now time.Time) string {
	since := node.CreationTimestamp.Time
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return fmt.Sprintf("Node %s of the target cluster is this server, and Ready: restore its Machine or, "+
				"if it is to go, stop it (stackit server stop %s) and run this %s later",
				node.Name, server.ID, p.options.OlderThan)
		}
		since = condition.LastTransitionTime.Time
	}
	if since.IsZero() || now.Sub(since) < p.options.OlderThan {
		return fmt.Sprintf("Node %s of the target cluster is this server, and has not been out of order for %s: "+
			"run this again later", node.Name, p.options.OlderThan)
	}
	return ""
}
