// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

const (
	// migratedAnnotation on a Machine says that it came from OpenStack. STACKIT's Gardener
	// extension sets it when it moves a cluster.
	migratedAnnotation = "stackit.cloud/migrated-machine"
	// openStackClusterTag and the cluster's name are a tag that Gardener's OpenStack provider
	// gives to a server. STACKIT's API may show it as metadata or as a label.
	openStackClusterTag = "kubernetes.io-cluster-"
)

// CameFromOpenStack says whether Gardener's OpenStack provider made the Machine's server.
func CameFromOpenStack(machine *v1alpha1.Machine) bool {
	migrated, _ := strconv.ParseBool(machine.Annotations[migratedAnnotation])
	return migrated || providerid.IsOpenStack(machine.Spec.ProviderID)
}

// providerID returns the ProviderID to answer for a server. One that OpenStack's provider wrote
// stays as it is: the manager writes back what it is told (v0.62.1 machine.go, updateLabels),
// and a Machine whose ID had become ours would not be known to have come from there.
func (c *call) providerID(serverID string) string {
	if serverID == c.serverID && providerid.IsOpenStack(c.givenID) {
		return c.givenID
	}
	return providerid.Format(c.key.ProjectID, serverID)
}

// isByName says whether what has this name is the machine's, if that came from OpenStack:
// neither labels nor metadata say that it is of another machine or cluster. What else they say
// does not count.
func (i identity) isByName(name string, labels, metadata map[string]string) bool {
	machine, labelled := labels[StackitMachineLabel]
	return name == i.machine && (!labelled || machine == i.machine) &&
		!i.isOfAnotherCluster(labels) && !i.isOfAnotherCluster(metadata)
}

// isOfAnotherCluster says whether labels or metadata name another cluster: by a cluster label or
// by a tag of Gardener's OpenStack provider.
func (i identity) isOfAnotherCluster(told map[string]string) bool {
	clusters := slices.Collect(maps.Values(i.cluster))
	for key, value := range told {
		cluster, isTag := strings.CutPrefix(key, openStackClusterTag)
		want, isOurKey := i.cluster[key]
		switch {
		case isOurKey && value != want,
			IsClusterLabel(key) && !slices.Contains(clusters, value),
			isTag && !slices.Contains(clusters, cluster):
			return true
		}
	}
	return false
}

// IsByName says whether what has this name, these labels and this metadata is the Machine's, if
// that came from OpenStack. classLabels are those of the class's providerSpec.
func IsByName(machine string, classLabels map[string]string, name string, labels, metadata map[string]string) bool {
	return newIdentity(machine, "", classLabels).isByName(name, labels, metadata)
}

// takeOver returns the only server of a machine that came from OpenStack. It makes none and
// deletes none, whatever there is.
func (c *creation) takeOver(ctx context.Context) (*poll, error) {
	server, err := c.existing(ctx)
	isNone := errors.Is(err, errGone) || errors.Is(err, errUnusable)
	if isNone || err == nil && server.last.IsDeleting() {
		return nil, newError(ReasonNotTakenOver,
			"machine %s came from OpenStack, and not exactly one server is found that is its: it gets no other; "+
				"delete the machine to have it replaced, or name its server by spec.providerID", c.machine)
	}
	return server, err
}

// checkSeveral returns an error if there is more than one server of a machine that came from
// OpenStack, by a look-up and what this process knows, and no ProviderID says which of them is its.
// Those that are being deleted do not count.
func (c *call) checkSeveral(shown []Server) error {
	var ids []string
	staying, _ := withoutDeleting(shown)
	for _, server := range staying {
		ids = append(ids, server.ID)
	}
	known := c.ledger.Get(c.key).ServerID
	if known != "" && !slices.ContainsFunc(shown, func(server Server) bool { return server.ID == known }) {
		ids = append(ids, known)
	}
	if !c.byName || len(ids) < 2 {
		return nil
	}
	slices.Sort(ids)
	return newError(ReasonNotTakenOver, "machine %s came from OpenStack, has no ProviderID, and "+
		"several servers have its name, of which none is touched: set spec.providerID to the right one, "+
		"or delete the wrong one, of %s", c.machine, strings.Join(ids, ", "))
}

// confirmSingle returns what a look-up has shown of a machine that came from OpenStack once another one,
// unexpectedApart later, shows no server beside it: one list may hide a server, and the one that it shows
// would be deleted. Its error is that of checkSeveral, or of a read that ends the call.
func (c *call) confirmSingle(ctx context.Context, search *search, found lookUp) (lookUp, error) {
	for {
		if err := c.checkSeveral(found.servers); err != nil || !c.byName || len(found.servers) == 0 {
			return found, err
		}
		c.begin()
		again, err := c.findNamed(ctx, later(found.ended.Add(unexpectedApart), search.retryAt), bySelector)
		if ends := search.reads.afterRead(ctx, err, search.state); ends != nil {
			return found, ends
		}
		if err != nil {
			search.retryAt = c.clock.Now().Add(leastPoll)
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

// checkNetwork returns an error if the network of a machine that came from OpenStack cannot be read:
// its NICs would stay.
func (c *call) checkNetwork() error {
	if !c.fromOpenStack || len(c.networkErrors) == 0 {
		return nil
	}
	return invalidError(c.networkErrors)
}

// checkTag returns an error if a server has a tag of Gardener's OpenStack provider: what the orphan
// collector names may be the server of a Machine that still has OpenStack's ProviderID.
func checkTag(server *Server) error {
	tag := OpenStackTag(server)
	if tag == "" {
		return nil
	}
	return &Error{Reason: ReasonNotOurs, Label: tag, Text: fmt.Sprintf("server %s (%s) is left alone: it has "+
		"OpenStack's tag %s, and its Machine may have another ProviderID; delete it by hand if it has no Machine",
		server.ID, server.Name, tag)}
}

// OpenStackTag returns the tag by which Gardener's OpenStack provider says which cluster a server is
// of, among its labels or metadata; "" without one.
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

// leftovers deletes the resources that are left of a machine that came from OpenStack when its
// servers are gone. Gardener's OpenStack provider gives a server a NIC and a boot volume that are
// resources of their own, with the machine's name and without our labels: those NICs of the
// spec's network and those bootable volumes of the project that are the machine's by name
// (isByName). Nothing else is deleted by its name, ever: not a volume of data that somebody
// called like the machine.
type leftovers struct {
	*call
	// since is when the wait began: the poll interval follows from it.
	since time.Time
	// asked is when the API last accepted the deletion of each, or did not know it.
	asked map[string]time.Time
	// leftAlone are those that the log has told of; true for those that stay for good.
	leftAlone map[string]bool
	// notFound is since when GETs answer 404 about a server that something is attached to.
	notFound map[string]time.Time
	// reads is the wait of the lists, steps has that of each of them.
	reads wait
	steps map[string]*wait
	// state is what the last list showed, for the text of a late end.
	state string
}

// leftoverWindow is the least time between two lists of leftover resources. Of many machines some
// have just begun to wait, so that their own poll intervals would ask for a list each second.
const leftoverWindow = 3 * time.Second

// staleAttachment is for how long a NIC or volume may show as attached to a server that is gone,
// until it counts as detached. The cloud releases them later than it removes the server.
const staleAttachment = 2 * time.Minute

// leftover is a NIC or a volume.
type leftover struct {
	// what it is, for texts, with its ID.
	what string
	// isByName says that it is the machine's.
	isByName bool
	// serverID is the server that it is attached to; "" for none.
	serverID string
	// stays says why it is left alone whatever it is attached to; "" if it is not.
	stays string
	// isChanging says that it is being made or deleted.
	isChanging bool

	// read returns the zero leftover if there is none.
	read   func(context.Context) (leftover, error)
	delete func(context.Context) error
}

// delete returns nil once two lists, unexpectedApart between them, show nothing more that is to
// go, and none between them does: one list lies. All machines share the lists.
func (l *leftovers) delete(ctx context.Context) error {
	l.reads, l.steps = l.newWait(), map[string]*wait{}
	l.since, l.asked = l.clock.Now(), map[string]time.Time{}
	l.leftAlone, l.notFound = map[string]bool{}, map[string]time.Time{}
	l.state = fmt.Sprintf("the servers of machine %s are gone, what they left is not read yet", l.machine)
	l.begin()
	var due, first time.Time
	for {
		lists := l.readers.leftoversOf(l.networkID()).Read(ctx, coalesce.Request[leftoverList, leftoverList]{
			NotBefore: due,
			Pick:      func(all leftoverList, _ time.Time) (leftoverList, bool) { return all, true },
		})
		if ends := l.reads.afterRead(ctx, lists.Err, l.state); ends != nil {
			return ends
		}
		pending, err := l.advanceAll(ctx, lists.Value)
		switch {
		case err != nil:
			return err
		case lists.Err != nil || pending:
			first = time.Time{}
			due = l.clock.Now().Add(pollInterval(l.clock.Since(l.since)))
			continue
		case first.IsZero():
			first = lists.Began
		case lists.Began.Sub(first) >= unexpectedApart:
			return nil
		}
		due = first.Add(unexpectedApart)
	}
}

// advanceAll does the next step for each that a list shows, and says whether anything is still to
// go. One that fails does not block the others.
func (l *leftovers) advanceAll(ctx context.Context, list leftoverList) (pending bool, err error) {
	var errs []error
	for _, one := range l.byName(list) {
		stays, err := l.advance(ctx, &one)
		errs = append(errs, l.waitOf(&one).afterStep(ctx, err, one.what+" is left"))
		if err != nil || !stays {
			pending = true
			l.state = fmt.Sprintf("the servers of machine %s are gone, but %s of its name is left", l.machine, one.what)
		}
	}
	return pending, errors.Join(errs...)
}

// waitOf returns the wait of one of them.
func (l *leftovers) waitOf(one *leftover) *wait {
	known, ok := l.steps[one.what]
	if !ok {
		known = new(l.newWait())
		l.steps[one.what] = known
	}
	return known
}

// advance does the next step for one of them: stays says that it is to be left alone.
func (l *leftovers) advance(ctx context.Context, one *leftover) (stays bool, err error) {
	switch {
	case l.leftAlone[one.what]: // also after the other server went
		return true, nil
	case one.stays != "":
		return l.leave(one, one.stays, true)
	case l.isAttached(one) && !l.isGone(one.serverID):
		// By the readers, as each read of a server, but never by a list, which may lag.
		result := l.readers.serversOf(l.scope()).Read(ctx, coalesce.Request[serverList, observation]{
			Single: l.poll(one.serverID).get(false),
		})
		if result.Err != nil {
			return false, result.Err
		}
		server := result.Value.server()
		l.noteFound(one.serverID, server != nil, result.Began)
		if server == nil || server.IsDeleting() {
			return false, nil
		}
		// A server of the machine's own name may be the one that is gone, in a read that lags.
		return l.leave(one, "it is attached to server "+one.serverID, server.Name != l.machine)
	case l.isAttached(one), one.isChanging, l.clock.Since(l.asked[one.what]) < deletionPatience:
		return false, nil
	}
	return l.deleteOne(ctx, one)
}

// deleteOne deletes one that a list shows. The list may be old: a read by the ID has the last word.
func (l *leftovers) deleteOne(ctx context.Context, one *leftover) (stays bool, err error) {
	result := l.readers.leftovers.Read(ctx, coalesce.Request[struct{}, leftover]{Single: one.read})
	seen, err := result.Value, result.Err
	switch {
	case err != nil, seen.what == "": // the latter is gone
	case seen.stays != "":
		return l.leave(one, seen.stays, true)
	case !seen.isByName, seen.isChanging, l.isAttached(&seen):
		return false, nil // the next list shows it
	default:
		err = one.delete(ctx)
		klog.V(2).InfoS("Deletion requested of what a server from OpenStack left",
			"machine", l.machine, "what", one.what, "err", err)
	}
	if err = ignoreNotFound(err); err == nil {
		l.asked[one.what] = l.clock.Now()
	}
	return false, err
}

// isAttached says whether a server has it. One that is gone has nothing for longer than
// staleAttachment.
func (l *leftovers) isAttached(one *leftover) bool {
	isStale := l.isGone(one.serverID) && l.clock.Since(l.since) >= staleAttachment
	return one.serverID != "" && !isStale
}

// noteFound notes whether a GET showed a server that something of the machine's name is attached to.
// After a restart nobody remembers that the machine's server went: two GETs answering 404,
// unexpectedApart and none between that shows it, prove it gone.
func (l *leftovers) noteFound(serverID string, found bool, began time.Time) {
	first, isMissing := l.notFound[serverID]
	switch {
	case found:
		delete(l.notFound, serverID)
	case !isMissing:
		l.notFound[serverID] = began
	case began.Sub(first) >= unexpectedApart:
		l.provedGone.Store(serverID, true)
	}
}

// isGone says that a server was proved gone: by this call, or not long ago by another.
func (l *leftovers) isGone(serverID string) bool {
	_, byThisCall := l.provedGone.Load(serverID)
	return byThisCall || l.ledger.Gone(l.key, serverID)
}

// leave notes that something of the machine's name stays, by this list or for good.
func (l *leftovers) leave(one *leftover, why string, forGood bool) (stays bool, err error) {
	if _, told := l.leftAlone[one.what]; !told {
		klog.InfoS("Something has the name of a Machine from OpenStack, and is left alone",
			"machine", l.machine, "what", one.what, "why", why)
		if why == bootableUnknown {
			l.meters.volumesLeft.Inc()
		}
	}
	l.leftAlone[one.what] = forGood
	return true, nil
}

// ignoreNotFound drops the API's answer that something does not exist: lists show when that
// is so.
func ignoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// leftoverList has the volumes of the project and the NICs of a network, by their names.
type leftoverList struct {
	volumes map[string][]Volume
	nics    map[string][]NIC
}

// leftoversOf returns the reader of the leftover resources in a network; "" for volumes only.
func (r *readers) leftoversOf(networkID string) *leftoverReader {
	return r.leftoverLists.Get(networkID, func() *leftoverReader {
		policy := r.policy
		policy.Window = leftoverWindow
		list := func(ctx context.Context) (leftoverList, error) { return r.listLeftovers(ctx, networkID) }
		return coalesce.New[leftoverList, leftoverList](r.clock, policy, list)
	})
}

// listLeftovers makes two reads, of which the first has had its turn.
func (r *readers) listLeftovers(ctx context.Context, networkID string) (leftoverList, error) {
	list := leftoverList{volumes: map[string][]Volume{}, nics: map[string][]NIC{}}
	volumes, err := r.client.ListVolumes(ctx)
	if err != nil {
		return list, err
	}
	for i := range volumes {
		list.volumes[volumes[i].Name] = append(list.volumes[volumes[i].Name], volumes[i])
	}
	if networkID == "" {
		return list, nil
	}
	if err := r.policy.Turn(ctx); err != nil {
		return list, err
	}
	nics, err := r.client.ListNetworkNICs(ctx, networkID)
	for i := range nics {
		list.nics[nics[i].Name] = append(list.nics[nics[i].Name], nics[i])
	}
	return list, err
}

// byName returns what is the machine's by name.
func (l *leftovers) byName(list leftoverList) (found []leftover) {
	for _, volume := range list.volumes[l.machine] {
		if one := l.volume(&volume); one.isByName && volume.Status != statusDeleted {
			found = append(found, one)
		}
	}
	for _, nic := range list.nics[l.machine] {
		if one := l.nic(&nic); one.isByName {
			found = append(found, one)
		}
	}
	return found
}

// bootableUnknown is why a volume stays that may be one of data.
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
		one.stays = bootableUnknown
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
		one.stays = "it belongs to its network"
	}
	return one
}
