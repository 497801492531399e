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
	// migratedAnnotation marks a Machine that came from OpenStack. STACKIT's Gardener extension sets
	// it when it migrates a cluster.
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

// staleAttachment is how long a NIC or volume may show as attached to a deleted server until it
// counts as detached. The cloud releases them later than it removes the server.
const staleAttachment = 2 * time.Minute

// leftover is a NIC or a volume that has the Machine's name.
type leftover struct {
	// what names it by kind and ID, for texts.
	what string
	// serverID is the server to which it is attached; "" for none.
	serverID string
	// whyStays is why it is left alone; "" if it is not.
	whyStays string
	// isChanging reports whether it is being created or deleted.
	isChanging bool
	delete     func(context.Context) error
}

// deleteLeftovers deletes the leftover resources of a Machine that came from OpenStack after its
// servers, and returns nil once lists show none. Gardener's OpenStack provider gives a server a
// separate NIC and boot volume, with the Machine's name and without our labels: the NICs of the spec's
// network and the bootable volumes that are the Machine's by name (isByName) are deleted. Nothing else
// is ever deleted by its name, such as a data volume that has the Machine's name by chance.
func (c *call) deleteLeftovers(ctx context.Context) error {
	l := &leftovers{call: c, since: c.clock.Now(), left: map[string]bool{}, notFound: map[string]time.Time{}}
	reads, steps, polls := c.newFailures(), c.newFailures(), pollsFrom(l.since)
	state := fmt.Sprintf("the servers of machine %s are gone, but its NICs and volumes have not been read yet", c.machine)
	for due := (time.Time{}); ; due = polls.after(c.clock.Now(), c.clock.Now()) {
		found, err := l.list(ctx, due)
		if ends := reads.afterRead(ctx, err, state); ends != nil {
			return ends
		}
		pending, first := err != nil, error(nil)
		for _, one := range found {
			stays, err := l.delete(ctx, &one)
			if first = cmp.Or(first, err); err != nil || !stays {
				pending = true
				state = fmt.Sprintf("the servers of machine %s are gone, but %s with the machine's name is not deleted yet",
					c.machine, one.what)
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

// leftovers is the deletion of a Machine's NICs and volumes.
type leftovers struct {
	*call
	// since is when the Machine's servers were gone.
	since time.Time
	// left are the resources that stay, and were logged.
	left map[string]bool
	// notFound is when the first of consecutive GETs answered 404 about a server to which something is
	// attached.
	notFound map[string]time.Time
}

// delete takes the next step for one resource, and reports whether it stays: because something else
// uses it.
func (l *leftovers) delete(ctx context.Context, one *leftover) (stays bool, err error) {
	if one.serverID != "" && one.whyStays == "" {
		if err := l.checkAttached(ctx, one); err != nil {
			return false, err
		}
	}
	switch {
	case one.whyStays != "" && !l.left[one.what]:
		l.left[one.what] = true
		klog.InfoS("Not deleting a resource that has the Machine's name",
			"machine", l.machine, "what", one.what, "why", one.whyStays)
		return true, nil
	case one.whyStays != "":
		return true, nil
	case one.isChanging:
		return false, nil
	}
	err = one.delete(ctx)
	klog.V(2).InfoS("Tried to delete a leftover resource of a Machine that came from OpenStack",
		"machine", l.machine, "what", one.what, "err", err)
	if IsNotFound(err) { // the next list confirms it
		return false, nil
	}
	return false, err
}

// checkAttached finds out whether the server to which a resource is attached still exists.
func (l *leftovers) checkAttached(ctx context.Context, one *leftover) error {
	gone := l.since
	if !l.watch(one.serverID).isGone {
		server, began, err := l.getServer(ctx, one.serverID)
		switch {
		case isServerNotFound(err):
			if _, known := l.notFound[one.serverID]; !known {
				l.notFound[one.serverID] = began
			}
			gone = l.notFound[one.serverID]
		case err != nil:
			return err
		case server.IsDeleting():
			one.isChanging = true
			return nil
		default:
			delete(l.notFound, one.serverID)
			one.whyStays = "it is attached to server " + one.serverID
		}
	}
	one.isChanging = one.isChanging || l.clock.Since(gone) < staleAttachment
	return nil
}

// list lists the Machine's resources by name: volumes of the project and NICs of the network.
func (l *leftovers) list(ctx context.Context, due time.Time) (found []leftover, err error) {
	volumes, nics := l.volumes.get(ctx, due), &list[NIC]{}
	if network := l.networkID(); volumes.err == nil && network != "" {
		nics = l.nicsIn(network).get(ctx, time.Time{})
	}
	if err := cmp.Or(volumes.err, nics.err); err != nil {
		return nil, err
	}
	for i := range volumes.items {
		volume := &volumes.items[i]
		if volume.Status != statusDeleted && volume.MayBoot() && l.isByName(volume.Name, volume.Labels, nil) {
			found = append(found, l.volume(volume))
		}
	}
	for i := range nics.items {
		nic := &nics.items[i]
		if !nic.IsNetworks() && l.isByName(nic.Name, nic.Labels, nil) {
			found = append(found, leftover{what: "NIC " + nic.ID, serverID: nic.ServerID,
				delete: func(ctx context.Context) error { return l.client.DeleteNIC(ctx, nic.NetworkID, nic.ID) }})
		}
	}
	return found, nil
}

func (l *leftovers) volume(volume *Volume) leftover {
	one := leftover{
		what: "volume " + volume.ID, serverID: volume.ServerID,
		isChanging: volume.Status == statusCreating || volume.Status == statusDeleting,
		delete:     func(ctx context.Context) error { return l.client.DeleteVolume(ctx, volume.ID) },
	}
	if volume.Bootable == nil && !one.isChanging {
		one.whyStays = "the API does not say whether it is bootable"
	}
	return one
}
