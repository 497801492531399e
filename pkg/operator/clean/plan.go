// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package clean

import (
	"fmt"
	"slices"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Options say which servers a Plan is about.
type Options struct {
	// ClusterKey and ClusterValue are the one label of the cluster whose servers are looked
	// at. The key ends in "/cluster".
	ClusterKey, ClusterValue string
	// OlderThan is the least age of a server that is deleted.
	OlderThan time.Duration
	// Max is how many servers are deleted without somebody who types their number.
	Max int
	// Namespaces are those whose MachineClasses and Machines are read where the user may not
	// read all.
	Namespaces []string
	// ServerIDs are the only servers that may be deleted; none means all that are orphans.
	ServerIDs []string
}

func (c Options) label() string { return c.ClusterKey + "=" + c.ClusterValue }

func (c Options) labels() map[string]string {
	return map[string]string{c.ClusterKey: c.ClusterValue}
}

// Orphan is a server that account.WhoseIs calls an orphan, and that may be deleted if the
// user says what its Place asks for.
type Orphan struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	State     string    `json:"state"`
	CreatedAt time.Time `json:"createdAt"`
	Class     string    `json:"class"`
	Machine   string    `json:"machine"`
	ProjectID string    `json:"projectId"`
	Region    string    `json:"region"`

	server provider.Server
	in     *Place
}

// Kept is a server of the cluster that is left alone.
type Kept struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"projectId,omitempty"`
	Region    string `json:"region,omitempty"`
	// Reason says why, in one line.
	Reason string `json:"reason"`
	// Remedy is what to do to have it deleted all the same; "" if nothing should.
	Remedy string `json:"remedy,omitempty"`
	// Withheld says that it is an orphan, so that something is left to do; Needs what its
	// deletion takes, if that is more than the user has said.
	Withheld bool    `json:"withheld,omitempty"`
	Needs    Consent `json:"needs,omitempty"`
}

// Plan is what Make found.
type Plan struct {
	// Orphans are the servers that Delete deletes.
	Orphans []Orphan `json:"orphans"`
	Kept    []Kept   `json:"kept"`
	// Places are the projects and regions in which the cluster has servers.
	Places []*Place `json:"places"`

	access  *account.Access
	options Options
	// namespaces are those whose Machines are read; none means all.
	namespaces []string
}

// facts are what the clusters say.
type facts struct {
	owners *account.Owners
	// nodes are those of the target cluster, none without one.
	nodes []corev1.Node
}

// located is a server, and where it is.
type located struct {
	provider.Server
	in *Place
}

// In returns the orphans of a place.
func (c *Plan) In(place *Place) []Orphan {
	return slices.DeleteFunc(slices.Clone(c.Orphans), func(orphan Orphan) bool { return orphan.in != place })
}

// Count is how many of the orphans are not being deleted yet.
func (c *Plan) Count() (count int) {
	for i := range c.Orphans {
		if !c.Orphans[i].server.IsDeleting() {
			count++
		}
	}
	return count
}

// Consent is what a user says before orphans are deleted; a later one is more.
type Consent int

// The consents.
const (
	// Flag is --yes, or "yes" on a terminal.
	Flag Consent = iota
	// Typed is the cluster's name and the number of servers, typed on a terminal.
	Typed
	// TypedWithIDs is that, where the servers' IDs were given as arguments, too.
	TypedWithIDs
	// Nobody may have these orphans deleted.
	Nobody
)

// MarshalText implements encoding.TextMarshaler.
func (c Consent) MarshalText() ([]byte, error) {
	return []byte([]string{"yes", "typed", "typed with server IDs", "nobody"}[c]), nil
}

// Place is a project and region, and what is known of the cluster there.
type Place struct {
	ProjectID string `json:"projectId"`
	Region    string `json:"region"`
	// Servers counts the cluster's servers, Orphans those that neither a Machine nor a Node
	// names, whether they are asked for or not. What is being deleted already is in neither.
	Servers int `json:"servers"`
	Orphans int `json:"orphans"`
	// Linked says that a Machine of the control cluster names one of the servers by its
	// ProviderID, NodesProven that a Node of the target cluster is one of them.
	Linked      bool `json:"linked"`
	NodesProven bool `json:"nodesProven"`
	// Needs is what the deletion of its orphans takes, Reasons why it is more than Flag.
	Needs   Consent  `json:"needs"`
	Reasons []string `json:"reasons,omitempty"`

	at *account.Account
	// classes are those whose Machines have their servers here; none if the account was named.
	classes []*v1alpha1.MachineClass
	// inCreation names an orphan that somebody may be creating; "" if there is none.
	inCreation string
}

func (p *Place) String() string { return fmt.Sprintf("project %s in %s", p.ProjectID, p.Region) }
