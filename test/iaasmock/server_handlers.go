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

func (c *Cloud) listServers(r *request) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	details := r.flag("details")
	views := []any{}
	c.locked(func(now time.Time) {
		asOf := now.Add(-max(c.listLag, c.replicaLag(), r.fault.Stale))
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

func (c *Cloud) getServer(r *request) (view any, err *apiError) {
	details := r.flag("details")
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

// defaultLogLength is how many lines of a console log are shown to who does not say it.
//
// Source: the document: parameter v1LogLength.
const defaultLogLength = 2000

// getServerLog shows the last lines of the console log.
func (c *Cloud) getServerLog(r *request) (view any, err *apiError) {
	length := defaultLogLength
	if text := r.URL.Query().Get("length"); text != "" {
		length, _ = strconv.Atoi(text) // the document has checked it
	}
	err = c.withServer(r, func(s *server, now time.Time) *apiError {
		log := ""
		if !now.Before(s.consoleAt) {
			log = lastLines(s.console, length)
		}
		view = map[string]string{"output": log}
		return nil
	})
	return view, err
}

// lastLines returns the last lines of a text; all for 0.
func lastLines(text string, most int) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if most == 0 || len(lines) <= most {
		return text
	}
	return strings.Join(lines[len(lines)-most:], "")
}

// staleServer shows the server in the path as it was at t.
func (c *Cloud) staleServer(r *request, t time.Time, details bool) (any, *apiError) {
	servers := c.serversAt(t, func(s *server) bool { return s.ID == r.vars[namedServer.variable] && r.sees(s) })
	if len(servers) == 0 {
		return nil, notFound(namedServer.what)
	}
	return c.showServer(servers[0], t, details), nil
}

// replicaLag returns the lag of the random replica that answers a list.
func (c *Cloud) replicaLag() time.Duration {
	if len(c.replicaLags) == 0 {
		return 0
	}
	return c.replicaLags[c.replicas.number(len(c.replicaLags))]
}
