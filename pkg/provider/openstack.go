// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// migratedAnnotation marks a Machine that came from OpenStack. An operator sets it as
	// kubernetes/migration.md says; STACKIT's Gardener extension is to do so (its open pull request 272).
	migratedAnnotation = "stackit.cloud/migrated-machine"
	// openStackClusterTag is the start of a tag, before the cluster's name, that Gardener's OpenStack
	// provider gives a server. STACKIT's API may show it as metadata or as a label.
	openStackClusterTag = "kubernetes.io-cluster-"
)

// CameFromOpenStack reports whether the Machine was migrated from Gardener's OpenStack provider,
// which created its server.
func CameFromOpenStack(machine *v1alpha1.Machine) bool {
	migrated, _ := strconv.ParseBool(machine.Annotations[migratedAnnotation])
	return migrated || providerid.IsOpenStack(machine.Spec.ProviderID)
}

// providerID returns the ProviderID to answer for a server. OpenStack's own stays unchanged: the
// manager writes back the answer (v0.62.1 machine.go, updateLabels), and with our ID a Machine
// would no longer be recognisable as OpenStack's.
func (c *call) providerID(serverID string) string {
	if serverID == c.serverID && providerid.IsOpenStack(c.givenID) {
		return c.givenID
	}
	return providerid.Format(c.place.project, serverID)
}

// isByName reports whether a resource of this name is the Machine's, if that came from OpenStack:
// neither labels nor metadata name another machine or cluster. The rest of them is ignored.
func (i identity) isByName(name string, labels, metadata map[string]string) bool {
	machine, labelled := labels[StackitMachineLabel]
	return name == i.machine && (!labelled || machine == i.machine) &&
		!i.isOfAnotherCluster(labels) && !i.isOfAnotherCluster(metadata)
}

// isOfAnotherCluster reports whether labels or metadata name another cluster: by a cluster label or
// by a tag of Gardener's OpenStack provider.
func (i identity) isOfAnotherCluster(told map[string]string) bool {
	clusters := slices.Collect(maps.Values(i.cluster))
	for key := range told {
		if cluster, isTag := strings.CutPrefix(key, openStackClusterTag); isTag && !slices.Contains(clusters, cluster) {
			return true
		}
	}
	_, contradicts := i.contradiction(told)
	return contradicts
}

// IsByName reports whether a resource belongs to a Machine from OpenStack: it has the Machine's name,
// and neither its labels nor its metadata name another machine or cluster. classLabels are the labels
// in the class's providerSpec, which name the Machine's cluster.
func IsByName(machine string, classLabels map[string]string, name string, labels, metadata map[string]string) bool {
	return newIdentity(machine, "", classLabels).isByName(name, labels, metadata)
}

// takeOver returns the only server of a machine that came from OpenStack. It never creates or
// deletes a server.
func (c *call) takeOver(ctx context.Context) (*watch, error) {
	w, err := c.theServer(ctx)
	if errors.Is(err, errUnusable) {
		return nil, newError(ReasonNotTakenOver,
			"machine %s came from OpenStack, but no server or more than one matches it, so no server is created: "+
				"delete the machine to have it replaced, or set spec.providerID to "+
				"stackit://<projectId>/<serverId> of its server", c.machine)
	}
	return w, err
}

// checkSeveral returns an error if a machine that came from OpenStack has more than one server and no
// ProviderID. Servers that are being deleted do not count.
func (c *call) checkSeveral(servers []Server) error {
	var ids []string
	for i := range servers {
		if !servers[i].IsDeleting() {
			ids = append(ids, servers[i].ID)
		}
	}
	if !c.byName || len(ids) < 2 {
		return nil
	}
	slices.Sort(ids)
	return newError(ReasonNotTakenOver, "machine %s came from OpenStack and has no ProviderID, but "+
		"several servers match it; the driver neither uses nor deletes any: set spec.providerID to "+
		"stackit://<projectId>/<serverId> of the right one, or delete the others; found: %s",
		c.machine, strings.Join(ids, ", "))
}

// checkNetwork returns an error if the network of a machine that came from OpenStack cannot be
// read: its NICs would be left over.
func (c *call) checkNetwork() error {
	if !c.fromOpenStack || len(c.networkErrors) == 0 {
		return nil
	}
	return invalidError(c.networkErrors)
}

// checkTag returns an error if a server has a tag of Gardener's OpenStack provider: the orphan
// collector may name the server of a Machine that still has OpenStack's ProviderID.
func checkTag(server *Server) error {
	tag := OpenStackTag(server)
	if tag == "" {
		return nil
	}
	return &Error{Reason: ReasonNotOurs, Label: tag, Text: fmt.Sprintf("server %s (%s) is left alone: it has "+
		"OpenStack's tag %s, so a Machine with an OpenStack ProviderID may own it; if none does, delete it by hand",
		server.ID, server.Name, tag)}
}

// OpenStackTag returns the tag with which Gardener's OpenStack provider marks a server of a cluster,
// kubernetes.io-cluster-<name>, from the server's labels or metadata; "" if there is none.
func OpenStackTag(server *Server) string {
	for _, told := range []map[string]string{server.Labels, server.Metadata} {
		for _, key := range slices.Sorted(maps.Keys(told)) {
			if strings.HasPrefix(key, openStackClusterTag) {
				return key
			}
		}
	}
	return ""
}

// staleAttachment is how long a NIC may show as attached to a deleted server until it counts as
// detached. The cloud releases it later than it removes the server.
const staleAttachment = 2 * time.Minute

// leftovers is the deletion of the NICs of a Machine that came from OpenStack.
type leftovers struct {
	*call
	// since is when the Machine's servers were gone.
	since time.Time
	// left are the NICs that stay, and were logged.
	left map[string]bool
	// notFound is when the first of consecutive GETs answered 404 about a server to which a NIC is
	// attached.
	notFound map[string]time.Time
}

// deleteLeftovers deletes the NICs of a Machine that came from OpenStack after its servers, and
// returns nil once a list shows none. Gardener's OpenStack provider gives a server a NIC of its own, with
// the Machine's name and without our labels: those of the spec's network that are the Machine's by name
// (isByName) are deleted. Nothing else is ever deleted by its name; a boot volume of its own stays, and
// the log names it.
func (c *call) deleteLeftovers(ctx context.Context) error {
	klog.InfoS("The servers of a Machine from OpenStack are gone. If its boot volume was one of its own, it has the "+
		"Machine's name and stays: delete it by hand", "machine", c.machine)
	if c.networkID() == "" {
		return nil
	}
	l := &leftovers{call: c, since: c.clock.Now(), left: map[string]bool{}, notFound: map[string]time.Time{}}
	reads, steps, polls := c.newFailures(), c.newFailures(), pollsFrom(l.since)
	state := fmt.Sprintf("the servers of machine %s are gone, but its NICs have not been read yet", c.machine)
	for due := (time.Time{}); ; due = polls.after(c.clock.Now(), c.clock.Now()) {
		nics := l.nicsIn(c.networkID()).get(ctx, due)
		if ends := reads.afterRead(ctx, nics.err, state); ends != nil {
			return ends
		}
		pending, first := nics.err != nil, error(nil)
		for i := range nics.items {
			nic := &nics.items[i]
			if nic.IsNetworks() || !l.isByName(nic.Name, nic.Labels, nil) {
				continue
			}
			stays, err := l.delete(ctx, nic)
			if first = cmp.Or(first, err); err != nil || !stays {
				pending = true
				state = fmt.Sprintf("the servers of machine %s are gone, but NIC %s with the machine's name is not deleted yet",
					c.machine, nic.ID)
			}
		}
		if err := steps.afterStep(ctx, first, state); err != nil {
			return err
		}
		if !pending {
			return nil
		}
	}
}

// delete takes the next step for one NIC, and reports whether it stays: because a server uses it.
func (l *leftovers) delete(ctx context.Context, nic *NIC) (stays bool, err error) {
	if nic.ServerID != "" {
		gone, err := l.goneSince(ctx, nic.ServerID)
		if err != nil {
			return false, err
		}
		if stays = gone.IsZero(); stays && !l.left[nic.ID] {
			l.left[nic.ID] = true
			klog.InfoS("Not deleting a NIC that has the Machine's name: it is attached to a server",
				"machine", l.machine, "nic", nic.ID, "server", nic.ServerID)
		}
		if stays || l.clock.Since(gone) < staleAttachment {
			return stays, nil
		}
	}
	err = l.client.DeleteNIC(ctx, nic.NetworkID, nic.ID)
	klog.V(2).InfoS("Tried to delete a NIC of a Machine that came from OpenStack",
		"machine", l.machine, "nic", nic.ID, "err", err)
	if IsNotFound(err) { // the next list confirms it
		return false, nil
	}
	return false, err
}

// goneSince returns since when the server to which a NIC is attached is gone, now for one that is being
// deleted; the zero time if it exists.
func (l *leftovers) goneSince(ctx context.Context, serverID string) (time.Time, error) {
	if l.watch(serverID).isGone {
		return l.since, nil
	}
	server, began, err := l.getServer(ctx, serverID)
	switch {
	case isServerNotFound(err):
		if _, known := l.notFound[serverID]; !known {
			l.notFound[serverID] = began
		}
		return l.notFound[serverID], nil
	case err != nil:
		return time.Time{}, err
	}
	delete(l.notFound, serverID)
	if server.IsDeleting() {
		return l.clock.Now(), nil
	}
	return time.Time{}, nil
}
