// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"slices"
	"time"
)

// noPorts is the answer about a server without NICs, or whose NICs do not exist yet or no
// more.
//
// Source: seen by cluster-api-provider-stackit while the server is CREATING; the message
// is OpenStack's.
func noPorts(s *server) *apiError {
	return newError(http.StatusNotFound, "instance_id %s could not be found as device id on any ports", s.ID)
}

// nicsForGroups returns the server's NICs, for changes of their security groups. Without
// NICs, or while CREATING or DELETING, it returns a 404.
func (c *Cloud) nicsForGroups(s *server, now time.Time) ([]*nic, *apiError) {
	var nics []*nic
	for _, id := range s.NICIDs {
		if nic, ok := c.nics.get(id); ok {
			nics = append(nics, nic)
		}
	}
	status := s.stateAt(now).status
	if len(nics) == 0 || status == StatusCreating || status == StatusDeleting {
		return nil, noPorts(s)
	}
	return nics, nil
}

// addSecurityGroupToServer adds the group to every NIC of the server.
func (c *Cloud) addSecurityGroupToServer(r *request) (any, *apiError) {
	return nil, c.withServerAndGroup(r, func(s *server, nics []*nic, group string, now time.Time) *apiError {
		for _, nic := range nics {
			if slices.Contains(nic.SecurityGroups, group) {
				// Source: seen by cluster-api-provider-stackit.
				return duplicateItem(group)
			}
		}
		for _, nic := range nics {
			nic.SecurityGroups = withItem(nic.SecurityGroups, group)
		}
		s.SecurityGroups, s.UpdatedAt = withItem(withoutItem(s.SecurityGroups, group), group), now
		return nil
	})
}

// removeSecurityGroupFromServer also accepts a group that the server does not have.
func (c *Cloud) removeSecurityGroupFromServer(r *request) (any, *apiError) {
	return nil, c.withServerAndGroup(r, func(s *server, nics []*nic, group string, now time.Time) *apiError {
		found := false
		for _, nic := range nics {
			found = found || slices.Contains(nic.SecurityGroups, group)
			nic.SecurityGroups = withoutItem(nic.SecurityGroups, group)
		}
		if !found {
			if err := c.unconfirmed(noSuch("security group")); err != nil {
				return err
			}
		}
		s.SecurityGroups, s.UpdatedAt = withoutItem(s.SecurityGroups, group), now
		return nil
	})
}

func (c *Cloud) withServerAndGroup(r *request, f func(s *server, nics []*nic, group string, now time.Time) *apiError) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		group, ok := c.findSecurityGroup(r, r.vars["securityGroupId"])
		if !ok {
			return notFound("security group")
		}
		nics, err := c.nicsForGroups(s, now)
		if err != nil {
			return err
		}
		return f(s, nics, group.ID, now)
	})
}

func (c *Cloud) listServerServiceAccounts(r *request) (view any, err *apiError) {
	err = c.withServer(r, func(s *server, _ time.Time) *apiError {
		view = items(s.ServiceAccountMails)
		return nil
	})
	return view, err
}

// addServiceAccountToServer refuses a second service account: by the document a server
// has at most one.
func (c *Cloud) addServiceAccountToServer(r *request) (any, *apiError) {
	mail := r.vars["serviceAccountMail"]
	return c.changeServiceAccounts(r, func(mails []string) ([]string, *apiError) {
		if len(mails) > 0 && !slices.Contains(mails, mail) {
			// Source: the document: 409 of AddServiceAccountToServer; ServiceAccountMailList's largest length.
			return nil, conflict()
		}
		return []string{mail}, nil
	})
}

func (c *Cloud) removeServiceAccountFromServer(r *request) (any, *apiError) {
	mail := r.vars["serviceAccountMail"]
	return c.changeServiceAccounts(r, func(mails []string) ([]string, *apiError) {
		if !slices.Contains(mails, mail) {
			return nil, notFound("service account")
		}
		return withoutItem(mails, mail), nil
	})
}

func (c *Cloud) changeServiceAccounts(r *request, change func([]string) ([]string, *apiError)) (view any, err *apiError) {
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		if s.stateAt(now).status == StatusDeleting {
			// Source: the document: 409 of AddServiceAccountToServer and RemoveServiceAccountFromServer.
			return conflict()
		}
		mails, err := change(s.ServiceAccountMails)
		if err != nil {
			return err
		}
		s.ServiceAccountMails, s.UpdatedAt = mails, now
		view = items(mails)
		return nil
	})
	return view, err
}

// nicStates are the states in which NICs are attached and detached. A deallocated server
// has no host for them.
var nicStates = []string{StatusActive, StatusInactive}

// withNICState runs f if the server's state allows changes of its NICs; in another state
// only without WithUnconfirmedRefusals. The document has a 409 for AddNicToServer only.
func (c *Cloud) withNICState(r *request, f func(s *server, now time.Time) *apiError) *apiError {
	return c.withServer(r, func(s *server, now time.Time) *apiError {
		if status := s.stateAt(now).status; !slices.Contains(nicStates, status) {
			if err := c.unconfirmed(badRequest("server is in status %s", status)); err != nil {
				return err
			}
		}
		return f(s, now)
	})
}

func (c *Cloud) addNICToServer(r *request) (any, *apiError) {
	return nil, c.withServer(r, func(s *server, now time.Time) *apiError {
		nic, err := c.nicOf(r)
		if err != nil {
			return err
		}
		if nic.ServerID != "" || !slices.Contains(nicStates, s.stateAt(now).status) {
			// Source: the document: 409 of AddNicToServer; the states are the mock's choice.
			return conflict()
		}
		s.attachNIC(nic, now)
		return nil
	})
}

func (s *server) attachNIC(n *nic, now time.Time) {
	n.ServerID = s.ID
	s.NICIDs, s.UpdatedAt = withItem(s.NICIDs, n.ID), now
}

// removeNICFromServer keeps the NIC, also one that was made for the server: only
// RemoveNetworkFromServer is documented to delete NICs. Its public IP stays attached.
func (c *Cloud) removeNICFromServer(r *request) (any, *apiError) {
	return nil, c.withNICState(r, func(s *server, now time.Time) *apiError {
		nic, err := c.nicOf(r)
		if err != nil {
			return err
		}
		if nic.ServerID != s.ID {
			return notFound("network interface")
		}
		nic.ServerID, nic.MadeByServer = "", false
		s.NICIDs, s.UpdatedAt = withoutItem(s.NICIDs, nic.ID), now
		return nil
	})
}

// addNetworkToServer makes a NIC in the network, with the server's security groups. It is
// deleted with the server.
func (c *Cloud) addNetworkToServer(r *request) (any, *apiError) {
	return nil, c.withNICState(r, func(s *server, now time.Time) *apiError {
		network, err := c.networkOf(r)
		if err != nil {
			return err
		}
		if err := c.allowNIC(http.StatusForbidden, s.ProjectID, s.Region); err != nil {
			return err
		}
		nic := &nic{NIC: NIC{
			ID: c.newID(), ProjectID: s.ProjectID, Region: s.Region, NetworkID: network.ID,
			SecurityGroups: s.SecurityGroups, MadeByServer: true,
		}}
		if network.assign(&nic.NIC) != nil {
			// Source: none; there is no address left to give.
			return badRequest("No more IP addresses available on the network")
		}
		c.nics.put(nic.ID, nic)
		c.totals.NICsCreated++
		s.attachNIC(nic, now)
		return nil
	})
}

// removeNetworkFromServer detaches and deletes the NICs in the network.
func (c *Cloud) removeNetworkFromServer(r *request) (any, *apiError) {
	return nil, c.withNICState(r, func(s *server, now time.Time) *apiError {
		network, err := c.networkOf(r)
		if err != nil {
			return err
		}
		kept := make([]string, 0, len(s.NICIDs))
		for _, id := range s.NICIDs {
			if nic, ok := c.nics.get(id); ok && nic.NetworkID == network.ID {
				c.removeNIC(nic)
				continue
			}
			kept = append(kept, id)
		}
		if len(kept) == len(s.NICIDs) {
			return notFound("network interface")
		}
		s.NICIDs, s.UpdatedAt = kept, now
		return nil
	})
}
