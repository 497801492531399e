// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// server is a Server with its past and scheduled states, so that its state at any time
// can be computed.
type server struct {
	Server
	// transitions are the states after the first CREATING, in order of time: past and
	// scheduled ones.
	transitions []transition
	// goneAt is when a deletion in progress ends; zero if there is none, or if it never ends.
	goneAt time.Time
	// number counts servers in order of creation.
	number int
	// removedAt and lastNICs are set when the server is removed.
	removedAt time.Time
	lastNICs  []*nic
	// console is the console log.
	console string
}

// transition is a state with the time of its start; a zero time never comes. An empty status
// means that the server is gone.
type transition struct {
	at      time.Time
	status  string
	message string
}

// state has the fields of a server that change with time.
type state struct {
	status, message string
	launchedAt      time.Time
}

// stateAt computes the state at t, which may be in the past.
func (s *server) stateAt(t time.Time) state {
	st := state{status: StatusCreating}
	for _, o := range s.transitions {
		if o.at.After(t) {
			break
		}
		st.status, st.message = o.status, o.message
		if o.status == StatusActive && st.launchedAt.IsZero() {
			st.launchedAt = o.at
		}
	}
	return st
}

// setState sets the state now, drops the scheduled states and schedules end.
func (s *server) setState(now time.Time, status, message string, end transition) {
	s.transitions = append(s.transitions[:s.countReached(now)], transition{at: now, status: status, message: message})
	s.schedule(end)
}

// schedule schedules the state, or the removal, after the current state.
func (s *server) schedule(end transition) {
	s.goneAt = time.Time{}
	switch {
	case end.at.IsZero():
	case end.status == "":
		s.goneAt = end.at
	default:
		s.transitions = append(s.transitions, end)
	}
}

// countReached counts the transitions that have happened by now.
func (s *server) countReached(now time.Time) int {
	scheduled := func(o transition) bool { return o.at.After(now) }
	if i := slices.IndexFunc(s.transitions, scheduled); i >= 0 {
		return i
	}
	return len(s.transitions)
}

// startDeletion starts a deletion, even if an earlier one is stuck or has failed. A
// deletion with a scheduled end continues unchanged.
func (s *server) startDeletion(now time.Time, end transition) {
	underWay := !s.goneAt.IsZero() || s.countReached(now) < len(s.transitions)
	if s.stateAt(now).status == StatusDeleting && underWay {
		return
	}
	s.setState(now, StatusDeleting, "", end)
}

// viewAt returns a copy with the state at t.
func (s *server) viewAt(t time.Time) Server {
	view, st := s.Server, s.stateAt(t)
	view.Status, view.ErrorMessage, view.LaunchedAt = st.status, st.message, st.launchedAt
	return view
}

func (s *server) isBootVolume(id string) bool {
	return s.BootVolume != nil && s.BootVolume.ID == id
}

// deletes reports whether the volume is deleted with the server; data volumes never are. It is unknown
// whether STACKIT applies deleteOnTermination to a boot volume that existed before the server; the mock
// keeps it.
func (s *server) deletes(v *Volume) bool {
	return s.isBootVolume(v.ID) && s.BootVolume.DeleteOnTermination && s.BootVolume.SourceType != sourceVolume
}

func (c *Cloud) listServers(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	details := r.flag("details")
	views := []any{}
	c.locked(func(now time.Time) {
		asOf := now.Add(-max(c.listLag, r.fault.Stale))
		for _, s := range c.serversAt(asOf, func(s *server) bool {
			return r.sees(s) && selector.Matches(s.labelSet())
		}) {
			views = append(views, c.showServer(s, asOf, details))
		}
	})
	return items(views), nil
}

// serversAt returns the wanted servers that existed at t, in order of creation.
func (c *Cloud) serversAt(t time.Time, wanted func(*server) bool) []*server {
	servers := slices.Concat(c.goneServers, slices.Collect(c.servers.each()))
	servers = slices.DeleteFunc(servers, func(s *server) bool {
		isGone := !s.removedAt.IsZero() && !t.Before(s.removedAt)
		return isGone || s.CreatedAt.After(t) || !wanted(s)
	})
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.number, b.number) })
	return servers
}

func (c *Cloud) getServer(r *request) (view any, err *apiError) {
	details := r.flag("details")
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		view = c.showServer(s, now, details)
		return nil
	})
	return view, err
}

func (c *Cloud) updateServer(r *request) (view any, err *apiError) {
	var payload struct {
		Name     *string        `json:"name"`
		Labels   map[string]any `json:"labels"`
		Metadata map[string]any `json:"metadata"`
	}
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		current := s.Labels
		if c.replaceLabels && payload.Labels != nil {
			current = nil
		}
		labels, err := mergeLabels(current, payload.Labels)
		if err != nil {
			return err
		}
		metadata, err := mergeTexts(s.Metadata, payload.Metadata)
		if err != nil {
			return err
		}
		if payload.Name != nil {
			s.Name = *payload.Name
		}
		s.Labels, s.Metadata = labels, metadata
		view = c.showServer(s, now, false)
		return nil
	})
	return view, err
}

// deleteServer accepts a DELETE in every state: no refusal is known.
func (c *Cloud) deleteServer(r *request) (any, *apiError) {
	err := c.withServer(r, func(s *server, now time.Time) *apiError {
		end := transition{at: now.Add(c.deleteDuration), status: r.fault.FinalStatus, message: r.fault.ErrorMessage}
		if r.fault.NeverGone {
			end = transition{}
		}
		s.startDeletion(now, end)
		return nil
	})
	return nil, err
}

// getServerLog shows the last lines of the console log.
func (c *Cloud) getServerLog(r *request) (view any, err *apiError) {
	// Source: the document: parameter v1LogLength. Its default is 2000 lines, and 0 is all of them.
	length, _ := strconv.Atoi(cmp.Or(r.URL.Query().Get("length"), "2000")) // the document has checked it
	err = c.withServer(r, func(s *server, _ time.Time) *apiError {
		lines := slices.Collect(strings.Lines(s.console))
		if length > 0 {
			lines = lines[max(len(lines)-length, 0):]
		}
		view = object{"output": strings.Join(lines, "")}
		return nil
	})
	return view, err
}

// showServer returns a server as the API shows it as of t. It omits networking and
// securityGroups, which are for requests only.
func (c *Cloud) showServer(s *server, t time.Time, details bool) object {
	at := s.viewAt(t)
	view := object{
		"id": at.ID, "name": at.Name, "status": at.Status, "errorMessage": at.ErrorMessage,
		"machineType": at.MachineType, "availabilityZone": at.AvailabilityZone, "affinityGroup": at.AffinityGroup,
		"keypairName": at.KeypairName, "imageId": at.ImageID, "volumes": orEmpty(at.VolumeIDs),
		"labels": at.Labels, "metadata": at.Metadata, "createdAt": at.CreatedAt.UTC(),
	}
	if boot := at.BootVolume; boot != nil {
		view["bootVolume"] = object{"id": boot.ID, "deleteOnTermination": boot.DeleteOnTermination}
	}
	if at.AgentProvisioned != nil {
		view["agent"] = object{"provisioned": *at.AgentProvisioned}
	}
	if !at.LaunchedAt.IsZero() {
		view["launchedAt"] = at.LaunchedAt.UTC()
	}
	if details {
		view["nics"], view["serviceAccountMails"] = c.showServerNICs(s, t), orEmpty(at.ServiceAccountMails)
		view["userData"] = at.UserData
	}
	return filled(view, "errorMessage", "affinityGroup", "keypairName", "imageId")
}

// showServerNICs returns NICs in random order (see listNICs), without allowedAddresses: only the NIC
// resources have them.
func (c *Cloud) showServerNICs(s *server, t time.Time) []object {
	nics := s.lastNICs
	if s.removedAt.IsZero() {
		nics = c.serverNICs(s)
	}
	views := make([]object, 0, len(nics))
	for _, n := range nics {
		if !n.isListed(t) {
			continue
		}
		nic, name := n.viewAt(t), ""
		if network, ok := c.networks.get(nic.NetworkID); ok {
			name = network.Name
		}
		views = append(views, filled(object{
			"nicId": nic.ID, "networkId": nic.NetworkID, "networkName": name, "mac": nic.MAC, "ipv4": nic.IPv4, "ipv6": nic.IPv6,
			"nicSecurity": !nic.SecurityDisabled, "securityGroups": orEmpty(nic.SecurityGroups),
		}, "ipv4", "ipv6"))
	}
	return c.random.shuffled(views)
}
