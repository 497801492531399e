// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/schema"
)

func (c *Cloud) listServers(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	details, err := r.flag("details")
	if err != nil {
		return nil, err
	}
	views := []any{}
	project, region := r.project(), r.region()
	c.locked(func(now time.Time) {
		asOf := now.Add(-max(c.listLag, c.replicaLag(), r.fault.Stale))
		for _, s := range c.serversAt(asOf, func(s *server) bool {
			return s.ProjectID == project && s.Region == region && selector.Matches(labels.Set(s.Labels))
		}) {
			views = append(views, c.showServer(s, asOf, details))
		}
	})
	return items(views), nil
}

// serversAt returns the wanted servers that existed at t, in order of creation.
func (c *Cloud) serversAt(t time.Time, wanted func(*server) bool) []*server {
	var servers []*server
	for s := range c.servers.each() {
		if wanted(s) && !s.CreatedAt.After(t) {
			servers = append(servers, s)
		}
	}
	for _, s := range c.goneServers {
		if t.Before(s.removedAt) && !s.CreatedAt.After(t) && wanted(s) {
			servers = append(servers, s)
		}
	}
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.number, b.number) })
	return servers
}

// withServer runs f on the server that the path names.
func (c *Cloud) withServer(r *request, f func(s *server, now time.Time) *apiError) *apiError {
	var err *apiError
	c.locked(func(now time.Time) {
		s, ok := c.servers.get(r.vars["serverId"])
		if !ok || !s.in(r) {
			err = notFound("server")
			return
		}
		err = f(s, now)
	})
	return err
}

func (c *Cloud) getServer(r *request) (view any, err *apiError) {
	details, err := r.flag("details")
	if err != nil {
		return nil, err
	}
	if stale := r.fault.Stale; stale > 0 {
		c.locked(func(now time.Time) { view, err = c.staleServer(r, now.Add(-stale), details) })
		return view, err
	}
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
	if err := r.decode("UpdateServerPayload", schema.UpdateServer, &payload); err != nil {
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
		metadata, err := mergeMetadata(s.Metadata, payload.Metadata)
		if err != nil {
			return err
		}
		if payload.Name != nil {
			s.Name = *payload.Name
		}
		s.Labels, s.Metadata, s.UpdatedAt = labels, metadata, now
		view = c.showServer(s, now, false)
		return nil
	})
	return view, err
}

// deleteServer is accepted in every state, as far as is known.
func (c *Cloud) deleteServer(r *request) (any, *apiError) {
	err := c.withServer(r, func(s *server, now time.Time) *apiError {
		end := transition{at: now.Add(c.deleteDuration), status: r.fault.FinalStatus, message: r.fault.ErrorMessage}
		if r.fault.NeverGone {
			end = transition{}
		}
		s.startDeletion(now, end)
		c.deleting[s.ID] = s
		return nil
	})
	return nil, err
}

func (c *Cloud) listServerNICs(r *request) (any, *apiError) {
	views := []any{}
	err := c.withServer(r, func(s *server, now time.Time) *apiError {
		for _, nic := range c.serverNICs(s) {
			views = append(views, c.showNIC(nic, now))
		}
		return nil
	})
	return items(views), err
}

func (s *server) in(r *request) bool {
	return s.ProjectID == r.project() && s.Region == r.region()
}

// flag reads a boolean query parameter; the default is false.
func (r *request) flag(name string) (bool, *apiError) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		// Source: the document: these parameters are booleans; the message is kin-openapi's.
		return false, badRequest("parameter %q in query has an error: value %s: an invalid boolean: invalid syntax", name, text)
	}
	return value, nil
}
