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
	return providerid.Format(c.ref.project, serverID)
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
func (c *creation) takeOver(ctx context.Context) (*tracked, error) {
	server, err := c.theServer(ctx)
	isNone := errors.Is(err, errGone) || errors.Is(err, errUnusable)
	if isNone || err == nil && server.last.server.IsDeleting() {
		return nil, newError(ReasonNotTakenOver,
			"machine %s came from OpenStack, but no server or more than one matches it, so no server is created: "+
				"delete the machine to have it replaced, or set spec.providerID to "+
				"stackit://<projectId>/<serverId> of its server", c.machine)
	}
	return server, err
}

// checkSeveral returns an error if a machine that came from OpenStack has more than one server, by
// a look-up and the record, and no ProviderID. Servers that are being deleted do not count.
func (c *call) checkSeveral(shown []Server) error {
	var ids []string
	staying, _ := withoutDeleting(shown)
	for _, server := range staying {
		ids = append(ids, server.ID)
	}
	known := c.record().serverID
	if known != "" && !slices.ContainsFunc(shown, func(server Server) bool { return server.ID == known }) {
		ids = append(ids, known)
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

// confirmSingle returns the look-up of a machine that came from OpenStack once another one,
// minGap later, shows no further server: one list may hide a server, and the visible one
// would be deleted. Its error is checkSeveral's, or that of a read that ends the call.
func (c *call) confirmSingle(ctx context.Context, look *lookup, found lookupResult) (lookupResult, error) {
	for {
		if err := c.checkSeveral(found.servers); err != nil || !c.byName || len(found.servers) == 0 {
			return found, err
		}
		again, err := c.find(ctx, later(found.ended.Add(minGap), look.retryAt), true)
		if ends := look.reads.afterRead(ctx, err, look.state); ends != nil {
			return found, ends
		}
		if err != nil {
			look.retryAt = c.clock.Now().Add(minPoll)
			continue
		}
		for _, server := range found.servers {
			if !slices.ContainsFunc(again.servers, func(other Server) bool { return other.ID == server.ID }) {
				again.servers = append(again.servers, server)
			}
		}
		isNew := len(again.servers) > len(found.servers)
		if found = again; !isNew {
			return found, c.checkSeveral(found.servers)
		}
	}
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

// leftovers deletes the leftover resources of a Machine that came from OpenStack after its servers.
// Gardener's OpenStack provider gives a server a separate NIC and boot volume, with the Machine's
// name and without our labels: the NICs of the spec's network and the bootable volumes of the
// project that are the Machine's by name (isByName) are deleted. Nothing else is ever deleted by
// its name, such as a data volume that has the Machine's name by chance.
type leftovers struct {
	*call
	polls polls
	// leftAlone are the logged resources that stay; true if no later list changes that.
	leftAlone map[string]bool
	// notFound is the time of the first of consecutive GETs that answer 404 about a server to which
	// something is attached.
	notFound map[string]time.Time
	// reads and steps decide which errors end the call: reads for the lists, steps for the resources.
	reads, steps wait
	// state describes the last list, for the text of a timeout.
	state string
}

// staleAttachment is how long a NIC or volume may show as attached to a deleted server until it
// counts as detached. The cloud releases them later than it removes the server.
const staleAttachment = 2 * time.Minute

// leftover is a NIC or a volume.
type leftover struct {
	// what names it by kind and ID, for texts.
	what string
	// isByName reports whether it is the Machine's.
	isByName bool
	// serverID is the server to which it is attached; "" for none.
	serverID string
	// whyStays is why it is left alone regardless of attachments; "" if it is not.
	whyStays string
	// isChanging reports whether it is being created or deleted.
	isChanging bool

	// read returns the zero leftover if it does not exist.
	read   func(context.Context) (leftover, error)
	delete func(context.Context) error
}

// delete returns nil once two lists, at least minGap from each other, show nothing to
// delete, and no list between them does: one list may be wrong. All Machines share the lists.
func (l *leftovers) delete(ctx context.Context) error {
	l.reads, l.steps = l.newWait(), l.newWait()
	l.polls = pollsFrom(l.clock.Now())
	l.leftAlone, l.notFound = map[string]bool{}, map[string]time.Time{}
	l.state = fmt.Sprintf("the servers of machine %s are gone, but its NICs and volumes have not been read yet", l.machine)
	var due, first time.Time
	for {
		found, began, failed := l.list(ctx, due)
		if ends := l.reads.afterRead(ctx, failed, l.state); ends != nil {
			return ends
		}
		pending, err := l.advanceAll(ctx, found)
		switch {
		case err != nil:
			return err
		case failed != nil || pending:
			first = time.Time{}
			due = l.polls.after(l.clock.Now(), l.clock.Now())
			continue
		case first.IsZero():
			first = began
		case began.Sub(first) >= minGap:
			return nil
		}
		due = first.Add(minGap)
	}
}

// advanceAll takes the next step for each listed resource, and reports whether any is still to be
// deleted. A resource that fails does not block the others.
func (l *leftovers) advanceAll(ctx context.Context, found []leftover) (pending bool, err error) {
	var first error
	for _, one := range found {
		stays, err := l.advance(ctx, &one)
		first = cmp.Or(first, err)
		if err != nil || !stays {
			pending = true
			l.state = fmt.Sprintf("the servers of machine %s are gone, but %s with the machine's name is not deleted yet",
				l.machine, one.what)
		}
	}
	return pending, l.steps.afterStep(ctx, first, l.state)
}

// advance takes the next step for one resource, and reports whether it stays.
func (l *leftovers) advance(ctx context.Context, one *leftover) (stays bool, err error) {
	switch {
	case l.leftAlone[one.what]: // also after the other server is gone
		return true, nil
	case one.whyStays != "":
		return l.leave(one, one.whyStays, true)
	case l.isAttached(one) && !l.isGone(one.serverID):
		seen := l.track(one.serverID).get(ctx, nil) // not by a list, which may lag
		if seen.err != nil {
			return false, seen.err
		}
		l.noteFound(one.serverID, seen.server != nil, seen.began)
		if seen.server == nil || seen.server.IsDeleting() {
			return false, nil
		}
		// A server of the Machine's own name may be a deleted one, in a lagging read.
		return l.leave(one, "it is attached to server "+one.serverID, seen.server.Name != l.machine)
	case l.isAttached(one), one.isChanging:
		return false, nil
	}
	return l.deleteOne(ctx, one)
}

// deleteOne deletes a listed resource. The list may be old: a read by the ID decides.
func (l *leftovers) deleteOne(ctx context.Context, one *leftover) (stays bool, err error) {
	var seen leftover
	if err = l.turn(ctx); err == nil {
		seen, err = one.read(ctx)
	}
	switch {
	case err != nil, seen.what == "": // the latter is gone
	case seen.whyStays != "":
		return l.leave(one, seen.whyStays, true)
	case !seen.isByName, seen.isChanging, l.isAttached(&seen):
		return false, nil // the next list shows it
	default:
		err = one.delete(ctx)
		klog.V(2).InfoS("Tried to delete a leftover resource of a Machine that came from OpenStack",
			"machine", l.machine, "what", one.what, "err", err)
	}
	return false, ignoreNotFound(err)
}

// isAttached reports whether it is attached to a server. A deleted server counts for
// staleAttachment at most.
func (l *leftovers) isAttached(one *leftover) bool {
	isStale := l.isGone(one.serverID) && l.clock.Since(l.polls.since) >= staleAttachment
	return one.serverID != "" && !isStale
}

// noteFound notes whether a GET showed a server to which something of the Machine's name is
// attached. After a restart the record has no server: two GETs that answer 404, minGap
// from each other without another answer between, prove it gone.
func (l *leftovers) noteFound(serverID string, found bool, began time.Time) {
	first, isMissing := l.notFound[serverID]
	switch {
	case found:
		delete(l.notFound, serverID)
	case !isMissing:
		l.notFound[serverID] = began
	case began.Sub(first) >= minGap:
		l.memory.serverGone(&l.ref, serverID)
	}
}

// isGone reports whether a server was proved gone.
func (l *leftovers) isGone(serverID string) bool { return !l.memory.goneAt(&l.ref, serverID).IsZero() }

// leave notes that something of the Machine's name stays, by this list or regardless of later ones.
func (l *leftovers) leave(one *leftover, why string, forGood bool) (stays bool, err error) {
	if _, isLogged := l.leftAlone[one.what]; !isLogged {
		klog.InfoS("Not deleting a resource that has the Machine's name",
			"machine", l.machine, "what", one.what, "why", why)
		if why == bootableUnknown {
			l.meters.volumesLeft.Inc()
		}
	}
	l.leftAlone[one.what] = forGood
	return true, nil
}

// ignoreNotFound drops the API's answer that something does not exist: the lists confirm it.
func ignoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// list returns the Machine's resources by name: volumes of the project and NICs of the network.
// began is the start of the first of the two lists.
func (l *leftovers) list(ctx context.Context, due time.Time) (found []leftover, began time.Time, err error) {
	volumes, nics := l.volumes.next(ctx, due, listsOnly), &list[NIC]{}
	if network := l.networkID(); volumes.err == nil && network != "" {
		nics = l.nicsIn(network).next(ctx, time.Time{}, listsOnly)
	}
	if err := cmp.Or(volumes.err, nics.err); err != nil {
		return nil, time.Time{}, err
	}
	for i := range volumes.items {
		if one := l.volume(&volumes.items[i]); one.isByName && volumes.items[i].Status != statusDeleted {
			found = append(found, one)
		}
	}
	for i := range nics.items {
		if one := l.nic(&nics.items[i]); one.isByName {
			found = append(found, one)
		}
	}
	return found, volumes.began, nil
}

// bootableUnknown is why a possible data volume stays.
const bootableUnknown = "the API does not say whether it is bootable"

func (l *leftovers) volume(volume *Volume) leftover {
	id := volume.ID
	one := leftover{
		what: "volume " + id, serverID: volume.ServerID,
		isByName:   volume.MayBoot() && l.isByName(volume.Name, volume.Labels, nil),
		isChanging: slices.Contains([]string{statusCreating, statusDeleting}, volume.Status),
		read: func(ctx context.Context) (leftover, error) {
			seen, err := l.client.GetVolume(ctx, id)
			if err != nil {
				return leftover{}, ignoreNotFound(err)
			}
			return l.volume(seen), nil
		},
		delete: func(ctx context.Context) error { return l.client.DeleteVolume(ctx, id) },
	}
	if volume.Bootable == nil && !one.isChanging {
		one.whyStays = bootableUnknown
	}
	return one
}

func (l *leftovers) nic(nic *NIC) leftover {
	networkID, id := l.networkID(), nic.ID
	one := leftover{
		what: "NIC " + id, isByName: l.isByName(nic.Name, nic.Labels, nil), serverID: nic.ServerID,
		read: func(ctx context.Context) (leftover, error) {
			seen, err := l.client.GetNIC(ctx, networkID, id)
			if err != nil {
				return leftover{}, ignoreNotFound(err)
			}
			return l.nic(seen), nil
		},
		delete: func(ctx context.Context) error { return l.client.DeleteNIC(ctx, networkID, id) },
	}
	if nic.IsNetworks() {
		one.whyStays = "it is the network's own NIC"
	}
	return one
}
