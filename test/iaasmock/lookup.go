// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// resource is what all resources of a project or region have in common.
type resource interface {
	// scope returns its project and region; an empty one means all.
	scope() (projectID, region string)
	labelSet() labels.Set
}

func (s Server) scope() (string, string)  { return s.ProjectID, s.Region }
func (n NIC) scope() (string, string)     { return n.ProjectID, n.Region }
func (v Volume) scope() (string, string)  { return v.ProjectID, v.Region }
func (n Network) scope() (string, string) { return n.ProjectID, n.Region }

func (s Server) labelSet() labels.Set  { return s.Labels }
func (n NIC) labelSet() labels.Set     { return n.Labels }
func (v Volume) labelSet() labels.Set  { return v.Labels }
func (n Network) labelSet() labels.Set { return n.Labels }

// sees reports whether the resource is in the request's project and region.
func (r *request) sees(item resource) bool {
	project, region := item.scope()
	return (project == "" || project == r.project()) && (region == "" || region == r.region())
}

// found returns the resource with this ID in the request's project and region.
func found[T resource](r *request, in *collection[T], id string) (T, bool) {
	item, ok := in.get(id)
	return item, ok && r.sees(item)
}

func (c *Cloud) project(id string) (Project, bool) {
	return first(c.catalogue.Projects, func(p Project) bool { return p.ID == id })
}

func (c *Cloud) hasProject(id string) bool {
	_, ok := c.project(id)
	return ok
}

// first returns the first item for which fits is true.
func first[T any](items []T, fits func(T) bool) (T, bool) {
	if i := slices.IndexFunc(items, fits); i >= 0 {
		return items[i], true
	}
	var none T
	return none, false
}

// named says by which variable a path names a resource, and what the API calls it.
type named struct{ variable, what string }

var (
	namedServer  = named{"serverId", "server"}
	namedNIC     = named{"nicId", "network interface"}
	namedVolume  = named{"volumeId", "volume"}
	namedNetwork = named{"networkId", "network"}
)

// onNamed runs f on the resource that the path names.
func onNamed[T resource](c *Cloud, r *request, in *collection[T], by named, f func(T, time.Time) *apiError) (err *apiError) {
	c.locked(func(now time.Time) {
		item, ok := found(r, in, r.vars[by.variable])
		if !ok {
			err = notFound(by.what)
			return
		}
		err = f(item, now)
	})
	return err
}

// withServer runs f on the server that the path names.
func (c *Cloud) withServer(r *request, f func(s *server, now time.Time) *apiError) *apiError {
	return onNamed(c, r, &c.servers, namedServer, f)
}

// shown answers with the resource that the path names.
func shown[T resource, V any](c *Cloud, r *request, in *collection[T], by named, show func(T, time.Time) V) (view any, err *apiError) {
	err = onNamed(c, r, in, by, func(item T, now time.Time) *apiError {
		view = show(item, now)
		return nil
	})
	return view, err
}

// listed answers with the resources that the request sees and its label_selector selects.
func listed[T resource, V any](c *Cloud, r *request, in *collection[T], show func(T, time.Time) V) (any, *apiError) {
	return listedWhere(c, r, in, show, func(T) bool { return true })
}

// listedWhere is listed for those that are wanted.
func listedWhere[T resource, V any](c *Cloud, r *request, in *collection[T], show func(T, time.Time) V, wanted func(T) bool) (any, *apiError) {
	selector, err := r.selector()
	if err != nil {
		return nil, err
	}
	views := []V{}
	c.locked(func(now time.Time) {
		for item := range in.each() {
			if wanted(item) && r.sees(item) && selector.Matches(item.labelSet()) {
				views = append(views, show(item, now))
			}
		}
	})
	return items(views), nil
}
