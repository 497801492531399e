// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// requestIDHeader names a request to the client; the same ID is what
// GetProjectRequest takes.
const requestIDHeader = "X-Request-Id"

// keptRequests is the number of changes that are kept. It bounds the memory of a
// long-running mock; clients ask within minutes.
const keptRequests = 5000

// What a request does to a resource, as in requestAction.
const (
	requestCreate = "CREATE"
	requestUpdate = "UPDATE"
	requestDelete = "DELETE"
)

// resourceServer is the one type of resource whose progress is tracked; changes of all
// others are reported as done at once.
const resourceServer = "SERVER"

// resourceTypes has the types of resources by the name of their collection in the path.
var resourceTypes = map[string]string{
	"servers": resourceServer, "volumes": "VOLUME", "networks": "NETWORK", "nics": "NIC", "images": "IMAGE",
	"public-ips": "PUBLICIP", "security-groups": "SECURITYGROUP", "affinity-groups": "AFFINITYGROUP",
}

// change is a successful call that changed a resource.
type change struct {
	project, region            string
	operation                  string
	resourceType, resource, do string
}

// changeLog keeps the last changes by the ID of their request.
type changeLog struct {
	changes collection[change]
}

// add adds a change and drops the oldest beyond keptRequests. Cloud.mu must be held.
func (b *changeLog) add(id string, made change) {
	b.changes.put(id, made)
	if b.changes.count() <= keptRequests {
		return
	}
	for oldest := range b.changes.ids() {
		b.changes.remove(oldest)
		return
	}
}

// remember adds what a successful call has changed, if anything, to the change log.
func (c *Cloud) remember(r *request, route route, reply answer) {
	made, ok := changeOf(r, route)
	if !ok {
		return
	}
	if made.do == requestCreate {
		var view struct{ ID string }
		if json.Unmarshal(reply.body, &view) != nil {
			return
		}
		made.resource = view.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.add(r.Header.Get(requestIDHeader), made)
}

// changeOf finds what a call changes by its path: the resource of the first collection in
// it, but the NIC for NICs of networks.
func changeOf(r *request, route route) (change, bool) {
	path, inProject := strings.CutPrefix(route.path, inRegion+"/")
	if !inProject || route.method == http.MethodGet {
		return change{}, false
	}
	segments := strings.Split(path, "/")
	if len(segments) > 2 && segments[0] == "networks" && segments[2] == "nics" {
		segments = segments[2:]
	}
	resourceType, known := resourceTypes[segments[0]]
	made := change{
		project: r.project(), region: r.region(), operation: route.operation, resourceType: resourceType, do: requestUpdate,
	}
	if len(segments) == 1 {
		made.do = requestCreate
		return made, known
	}
	made.resource = r.vars[strings.Trim(segments[1], "{}")]
	if len(segments) == 2 && route.method == http.MethodDelete {
		made.do = requestDelete
	}
	return made, known
}

// serverActions are the changes of a server that take time.
var serverActions = []string{
	"StartServer", "StopServer", "DeallocateServer", "RebootServer", "RescueServer", "UnrescueServer", "ResizeServer",
}

// progress is the status of the change, by the resource's state now.
func (c *Cloud) progress(made change, now time.Time) string {
	if made.resourceType != resourceServer {
		return made.do + "D"
	}
	s, there := c.servers.get(made.resource)
	var st state
	if there {
		st = s.stateAt(now)
	}
	switch made.do {
	case requestCreate:
		return outcomeOf(st.status == StatusCreating, st.status == StatusError && st.launchedAt.IsZero(), made.do)
	case requestDelete:
		return outcomeOf(there && st.status != StatusError, there, made.do)
	default:
		if !slices.Contains(serverActions, made.operation) {
			return made.do + "D"
		}
		return outcomeOf(there && s.countReached(now) < len(s.transitions), st.status == StatusError, made.do)
	}
}

// outcomeOf returns a status in the form of the API: CREATING, CREATED, FAILED.
func outcomeOf(goingOn, failed bool, do string) string {
	switch {
	case goingOn:
		return strings.TrimSuffix(do, "E") + "ING"
	case failed:
		return "FAILED"
	default:
		return do + "D"
	}
}

type requestView struct {
	RequestID     string                `json:"requestId"`
	RequestType   string                `json:"requestType"`
	RequestAction string                `json:"requestAction"`
	Resources     []requestResourceView `json:"resources"`
	Status        string                `json:"status"`
}

type requestResourceView struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
}

// getProjectRequest knows the requests in the change log: calls that were refused, or
// read only, are a 404.
func (c *Cloud) getProjectRequest(r *request) (view any, err *apiError) {
	id := r.vars["requestId"]
	c.locked(func(now time.Time) {
		made, ok := c.requests.changes.get(id)
		if !ok || !r.covers(made.project, made.region) {
			err = notFound("request")
			return
		}
		status := c.progress(made, now)
		view = requestView{
			RequestID: id, RequestType: made.resourceType, RequestAction: made.do, Status: status,
			Resources: []requestResourceView{{ID: made.resource, Type: made.resourceType, Status: status}},
		}
	})
	return view, err
}
