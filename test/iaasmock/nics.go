// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"slices"
	"time"
)

// nicPayload is the body of CreateNic and UpdateNic.
type nicPayload struct {
	Name             *string        `json:"name"`
	IPv4             string         `json:"ipv4"`
	IPv6             string         `json:"ipv6"`
	AllowedAddresses *[]string      `json:"allowedAddresses"`
	SecurityGroups   *[]string      `json:"securityGroups"`
	NICSecurity      *bool          `json:"nicSecurity"`
	Labels           map[string]any `json:"labels"`
}

// showNIC returns a NIC as the API shows it; it is ACTIVE while its server is.
func (c *Cloud) showNIC(n *nic, now time.Time) object {
	nic := n.viewAt(now)
	view := object{
		"id": nic.ID, "name": nic.Name, "networkId": nic.NetworkID,
		"device": nic.ServerID, "ipv4": nic.IPv4, "ipv6": nic.IPv6, "mac": nic.MAC, "status": "DOWN", "type": "none",
		"nicSecurity": !nic.SecurityDisabled, "allowedAddresses": orEmpty(nic.AllowedAddresses),
		"securityGroups": orEmpty(nic.SecurityGroups), "labels": orEmptyMap(nic.Labels),
	}
	if s, attached := c.servers.get(nic.ServerID); attached {
		view["type"] = "server"
		if s.stateAt(now).status == StatusActive {
			view["status"] = "ACTIVE"
		}
	}
	return filled(view, "name", "device", "ipv4", "ipv6")
}

// withNetworkNIC runs f on the NIC the path names, in the network it names.
func (c *Cloud) withNetworkNIC(r *request, f func(nic *nic, now time.Time) *apiError) *apiError {
	return onNamed(c, r, &c.networks, namedNetwork, func(network *network, now time.Time) *apiError {
		nic, ok := found(r, &c.nics, r.vars[namedNIC.variable])
		if !ok || nic.NetworkID != network.ID {
			return notFound(namedNIC.what)
		}
		return f(nic, now)
	})
}

// listNICs lists NICs in random order, as the API does: this is why cloud-provider-stackit has
// sortNics (pkg/ccm/instances.go, 2026-07-08).
func (c *Cloud) listNICs(r *request, wanted func(*nic) bool) (any, *apiError) {
	views, err := listWhere(c, r, &c.nics, (*Cloud).showNIC, func(n *nic, now time.Time) bool {
		return wanted(n) && n.isListed(now)
	})
	return items(c.random.shuffled(views)), err
}

func (c *Cloud) listProjectNICs(r *request) (any, *apiError) {
	return c.listNICs(r, func(*nic) bool { return true })
}

func (c *Cloud) listNetworkNICs(r *request) (any, *apiError) {
	exists := func(*network, time.Time) *apiError { return nil }
	if err := onNamed(c, r, &c.networks, namedNetwork, exists); err != nil {
		return nil, err
	}
	return c.listNICs(r, func(n *nic) bool { return n.NetworkID == r.vars[namedNetwork.variable] })
}

func (c *Cloud) createNIC(r *request) (view any, err *apiError) {
	var payload nicPayload
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	err = onNamed(c, r, &c.networks, namedNetwork, func(network *network, now time.Time) *apiError {
		nic := &nic{NIC: NIC{
			ID: c.random.uuid(), ProjectID: r.project(), Region: r.region(), NetworkID: network.ID,
			IPv4: payload.IPv4, IPv6: payload.IPv6,
		}}
		if err := changeNIC(nic, payload); err != nil {
			return err
		}
		if err := network.assign(&nic.NIC); err != nil {
			// Source: the document: 409 of CreateNic, for an address in use. For a network without free
			// addresses there is no source.
			return newError(http.StatusConflict, "%v", err)
		}
		c.nics.put(nic.ID, nic)
		view = c.showNIC(nic, now)
		return nil
	})
	return view, err
}

func (c *Cloud) updateNIC(r *request) (view any, err *apiError) {
	var payload nicPayload
	if err := r.decode(&payload); err != nil {
		return nil, err
	}
	err = c.withNetworkNIC(r, func(nic *nic, now time.Time) *apiError {
		if err := changeNIC(nic, payload); err != nil {
			return err
		}
		view = c.showNIC(nic, now)
		return nil
	})
	return view, err
}

// changeNIC sets the fields that the payload has; lists are replaced as a whole. On error it
// changes nothing.
func changeNIC(nic *nic, payload nicPayload) *apiError {
	labels, err := mergeLabels(nic.Labels, payload.Labels)
	if err != nil {
		return err
	}
	secured := !nic.SecurityDisabled
	set(&secured, payload.NICSecurity)
	if !secured && payload.AllowedAddresses != nil && len(*payload.AllowedAddresses) > 0 {
		// Source: the text and status are OpenStack Neutron's (neutron-lib,
		// AddressPairAndPortSecurityRequired); STACKIT's own are not known.
		return newError(http.StatusConflict,
			"Port Security must be enabled in order to have allowed address pairs on a port.")
	}
	nic.Labels, nic.SecurityDisabled = labels, !secured
	set(&nic.SecurityGroups, payload.SecurityGroups)
	set(&nic.AllowedAddresses, payload.AllowedAddresses)
	set(&nic.Name, payload.Name)
	return nil
}

// deleteNIC deletes a NIC, even if a server has it: the document has no conflict for it.
func (c *Cloud) deleteNIC(r *request) (any, *apiError) {
	err := c.withNetworkNIC(r, func(nic *nic, _ time.Time) *apiError {
		if s, attached := c.servers.get(nic.ServerID); attached {
			s.NICIDs = withoutItem(s.NICIDs, nic.ID)
		}
		c.removeNIC(nic)
		return nil
	})
	return nil, err
}

// set sets a field if value is not nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func (c *Cloud) listServerNICs(r *request) (any, *apiError) {
	views := []object{}
	err := c.withServer(r, func(s *server, now time.Time) *apiError {
		for _, nic := range c.serverNICs(s) {
			if nic.isListed(now) {
				views = append(views, c.showNIC(nic, now))
			}
		}
		return nil
	})
	return items(c.random.shuffled(views)), err
}

// withoutItem returns a new list without the item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == item })
}
