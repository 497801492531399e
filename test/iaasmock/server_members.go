// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"slices"
	"time"
)

// noPorts is what the service says about a server whose NICs are not there yet,
// or no more: the text is OpenStack's.
func noPorts(s *server) *apiError {
	return newError(http.StatusNotFound, "instance_id %s could not be found as device id on any ports", s.ID)
}

// wired are the server's NICs; a server in creation or deletion has none that
// security groups could be changed on.
func (c *Cloud) wired(s *server, now time.Time) ([]*nic, *apiError) {
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

func (c *Cloud) removeSecurityGroupFromServer(r *request) (any, *apiError) {
	return nil, c.withServerAndGroup(r, func(s *server, nics []*nic, group string, now time.Time) *apiError {
		found := false
		for _, nic := range nics {
			found = found || slices.Contains(nic.SecurityGroups, group)
			nic.SecurityGroups = withoutItem(nic.SecurityGroups, group)
		}
		if !found {
			return notFound("security group")
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
		nics, err := c.wired(s, now)
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

// addServiceAccountToServer: a server has at most one, by the document.
func (c *Cloud) addServiceAccountToServer(r *request) (any, *apiError) {
	mail := r.vars["serviceAccountMail"]
	return c.changeServiceAccounts(r, func(mails []string) ([]string, *apiError) {
		if len(mails) > 0 && !slices.Contains(mails, mail) {
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
