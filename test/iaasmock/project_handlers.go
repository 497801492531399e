// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import "time"

// projectView is a project as the IaaS API shows it.
type projectView struct {
	ID             string    `json:"id"`
	AreaID         string    `json:"areaId"`
	InternetAccess bool      `json:"internetAccess"`
	Status         string    `json:"status"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// name is never empty: clients print it.
func (p Project) name() string {
	if p.Name == "" {
		return "project-" + p.ID
	}
	return p.Name
}

// getProjectDetails shows a project in the public network area, as most are.
func (c *Cloud) getProjectDetails(r *request) (any, *apiError) {
	return projectView{
		ID: r.project(), AreaID: "PUBLIC", InternetAccess: true, Status: "CREATED",
		CreatedAt: c.startedAt.UTC(), UpdatedAt: c.startedAt.UTC(),
	}, nil
}

// containerView is a project as the resource manager shows it. Clients ask that API for a
// project's name. It has the same paths as the IaaS API, so that it needs an endpoint of
// its own.
type containerView struct {
	ProjectID      string            `json:"projectId"`
	ContainerID    string            `json:"containerId"`
	Name           string            `json:"name"`
	LifecycleState string            `json:"lifecycleState"`
	Labels         map[string]string `json:"labels"`
	Parent         parentView        `json:"parent"`
	Parents        []parentView      `json:"parents,omitempty"`
	CreationTime   time.Time         `json:"creationTime"`
	UpdateTime     time.Time         `json:"updateTime"`
}

type parentView struct {
	ID          string `json:"id"`
	ContainerID string `json:"containerId"`
	Type        string `json:"type"`
	Name        string `json:"name,omitempty"`
}

// organization owns all projects.
var organization = parentView{
	ID: "90000000-0000-4000-8000-000000000001", ContainerID: "default-organization", Type: "ORGANIZATION",
}

func (c *Cloud) getResourceManagerProject(r *request) (any, *apiError) {
	parents := r.flag("includeParents")
	project, _ := c.project(r.project())
	view := containerView{
		ProjectID: project.ID, ContainerID: project.name(), Name: project.name(), LifecycleState: "ACTIVE",
		Labels: map[string]string{}, Parent: organization,
		CreationTime: c.startedAt.UTC(), UpdateTime: c.startedAt.UTC(),
	}
	if parents {
		named := organization
		named.Name = organization.ContainerID
		view.Parents = []parentView{named}
	}
	return view, nil
}
