// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/internal/coalesce"
)

// remains deletes what the cloud keeps of a machine that came from OpenStack when its servers
// are gone. Gardener's OpenStack provider gives a server a NIC and a boot volume that are
// resources of their own, with the machine's name and without our labels: those NICs of the
// spec's network and those bootable volumes of the project that are the machine's by name
// (isByName). Nothing else is deleted by its name, ever: not a volume of data that somebody
// called like the machine.
type remains struct {
	*call
	// asked is when the deletion of each was asked for last.
	asked map[string]time.Time
	// leftAlone are those that the log has told of; true for those that stay for good.
	leftAlone map[string]bool
	// state is what the last look showed, for the text of a late end.
	state string
}

// remnant is a NIC or a volume.
type remnant struct {
	// what it is, for texts, with its ID.
	what string
	// isByName says that it is the machine's.
	isByName bool
	// serverID is the server that it is attached to; "" for none.
	serverID string
	// isNetworks says that it belongs to its network.
	isNetworks bool
	// isChanging says that it is being made or deleted.
	isChanging bool

	read   func(context.Context) (remnant, error)
	delete func(context.Context) error
}

// delete returns nil once two looks in a row, unexpectedApart between them, show nothing more
// that is to go: one list lies. What is attached to a server that is gone, or is being made, is
// waited for; what is attached elsewhere is left alone.
func (r *remains) delete(ctx context.Context) error {
	r.asked, r.leftAlone = map[string]time.Time{}, map[string]bool{}
	r.state = fmt.Sprintf("the servers of machine %s are gone, what they left is not read yet", r.machine)
	r.begin()
	since := r.clock.Now()
	var due, first time.Time
	for {
		began := later(due, r.clock.Now())
		pending, err := r.look(ctx, due)
		if ends := r.afterRead(ctx, err, r.state); ends != nil {
			return ends
		}
		due = began.Add(pollInterval(r.clock.Since(since)))
		switch {
		case err != nil || pending:
			first = time.Time{}
		case first.IsZero():
			first = r.clock.Now()
			due = first.Add(unexpectedApart)
		default:
			return nil
		}
	}
}

// look asks for the deletion of what it finds, and says whether anything is still to go.
func (r *remains) look(ctx context.Context, due time.Time) (pending bool, err error) {
	found, err := r.list(ctx, due)
	if err != nil {
		return false, err
	}
	for _, one := range found {
		stays, err := r.advance(ctx, &one)
		if ends := r.afterStep(ctx, err, one.what+" is left"); ends != nil {
			return true, ends
		}
		if err != nil || !stays {
			pending = true
			r.state = fmt.Sprintf("the servers of machine %s are gone, but %s of its name is left", r.machine, one.what)
		}
	}
	return pending, nil
}

// advance does the next step for one of them: stays says that it is to be left alone.
func (r *remains) advance(ctx context.Context, one *remnant) (stays bool, err error) {
	switch {
	case r.leftAlone[one.what]: // also after the other server went
		return true, nil
	case one.isNetworks:
		return r.leave(one, "it belongs to its network", true)
	case one.serverID != "":
		// By the readers, as each read of a server, but never by a list, which may lag.
		result := r.readers.serversOf(r.scope()).Read(ctx, coalesce.Request[serverList, observation]{Single: safely(r.poll(one.serverID).get)})
		server := result.Value.server()
		if result.Err != nil || server == nil || server.IsDeleting() {
			return false, result.Err
		}
		// A server of the machine's own name may be the one that is gone, in a read that lags.
		return r.leave(one, "it is attached to server "+one.serverID, server.Name != r.machine)
	case one.isChanging || r.clock.Since(r.asked[one.what]) < deletionPatience:
		return false, nil
	}
	// The list may be old: a read by the ID has the last word.
	seen, err := one.read(ctx)
	if err != nil || !seen.isByName || seen.serverID != "" || seen.isNetworks || seen.isChanging {
		return false, ignoreNotFound(err)
	}
	if err := one.delete(ctx); err != nil {
		return false, ignoreNotFound(err)
	}
	r.asked[one.what] = r.clock.Now()
	klog.V(2).InfoS("Deletion requested of what a server from OpenStack left", "machine", r.machine, "what", one.what)
	return false, nil
}

// leave notes that something of the machine's name stays, in this look or for good.
func (r *remains) leave(one *remnant, why string, forGood bool) (stays bool, err error) {
	if _, told := r.leftAlone[one.what]; !told {
		klog.InfoS("Something has the name of a Machine from OpenStack, and is left alone", "machine", r.machine, "what", one.what, "why", why)
	}
	r.leftAlone[one.what] = forGood
	return true, nil
}

// ignoreNotFound drops the API's answer that something does not exist: lists show when that
// is so.
func ignoreNotFound(err error) error {
	var api *APIError
	if errors.As(err, &api) && api.saysNotFound() {
		return nil
	}
	return err
}

// list reads what is the machine's by name.
func (r *remains) list(ctx context.Context, due time.Time) ([]remnant, error) {
	volumes := r.readers.volumes.Read(ctx, coalesce.Request[[]Volume, []Volume]{
		NotBefore: due,
		Single:    safely(r.client.ListVolumes),
		Pick:      func(all []Volume, _ time.Time) ([]Volume, bool) { return all, true },
	})
	if volumes.Err != nil {
		return nil, volumes.Err
	}
	var found []remnant
	for i := range volumes.Value {
		if one := r.volume(&volumes.Value[i]); one.isByName && volumes.Value[i].Status != statusDeleted {
			found = append(found, one)
		}
	}
	if r.spec.Networking == nil || r.spec.Networking.NetworkID == "" {
		return found, nil // its NICs are the user's
	}
	nics, err := r.listNICs(ctx, r.spec.Networking.NetworkID, due)
	for i := range nics {
		if one := r.nic(&nics[i]); one.isByName {
			found = append(found, one)
		}
	}
	return found, err
}

func (r *remains) listNICs(ctx context.Context, networkID string, due time.Time) ([]NIC, error) {
	result := r.readers.nicsOf(networkID).Read(ctx, coalesce.Request[map[string][]NIC, []NIC]{
		NotBefore: due,
		Single:    safely(func(ctx context.Context) ([]NIC, error) { return r.client.ListNetworkNICs(ctx, networkID) }),
		Pick: func(byServer map[string][]NIC, _ time.Time) ([]NIC, bool) {
			var all []NIC
			for _, nics := range byServer {
				all = append(all, nics...)
			}
			return all, true
		},
	})
	return result.Value, result.Err
}

func (r *remains) volume(volume *Volume) remnant {
	id := volume.ID
	return remnant{
		what: "volume " + id, isByName: volume.MayBoot() && r.isByName(volume.Name, volume.Labels, nil), serverID: volume.ServerID,
		isChanging: slices.Contains([]string{statusCreating, statusDeleting}, volume.Status),
		read: func(ctx context.Context) (remnant, error) {
			seen, err := r.client.GetVolume(ctx, id)
			if err != nil {
				return remnant{}, err
			}
			return r.volume(seen), nil
		},
		delete: func(ctx context.Context) error { return r.client.DeleteVolume(ctx, id) },
	}
}

func (r *remains) nic(nic *NIC) remnant {
	networkID, id := r.spec.Networking.NetworkID, nic.ID
	return remnant{
		what: "NIC " + id, isByName: r.isByName(nic.Name, nic.Labels, nil), serverID: nic.ServerID,
		isNetworks: nic.IsNetworks(),
		read: func(ctx context.Context) (remnant, error) {
			seen, err := r.client.GetNIC(ctx, networkID, id)
			if err != nil {
				return remnant{}, err
			}
			return r.nic(seen), nil
		},
		delete: func(ctx context.Context) error { return r.client.DeleteNIC(ctx, networkID, id) },
	}
}
