// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// unknownOperation is how calls are counted that no route fits.
const unknownOperation = "Unknown"

// The operations that have a meaning beyond the route.
const (
	tokenOperation        = "Token"
	createServerOperation = "CreateServer"
)

// route is one operation of the API document.
type route struct {
	operation string
	method    string
	path      string
	// status is that of success.
	status int
	// open needs no token.
	open   bool
	handle func(*Cloud, *request) (any, *apiError)
}

// request is a call on its way to a handler.
type request struct {
	*http.Request
	vars  map[string]string
	body  []byte
	fault Fault
	// strictLabels: decode refuses labels that break the documented rules.
	strictLabels bool
}

func (r *request) project() string { return r.vars["projectId"] }
func (r *request) region() string  { return r.vars["region"] }

const inRegion = "/v2/projects/{projectId}/regions/{region}"

// routes is the API that the mock knows.
var routes = slices.Concat(basicRoutes, computeRoutes, catalogueRoutes)

// basicRoutes are for servers, their NICs and volumes, and what those refer to.
var basicRoutes = []route{
	{tokenOperation, "POST", "/token", 200, true, (*Cloud).issueToken},

	{"ListServers", "GET", inRegion + "/servers", 200, false, (*Cloud).listServers},
	{createServerOperation, "POST", inRegion + "/servers", 201, false, (*Cloud).createServer},
	{"GetServer", "GET", inRegion + "/servers/{serverId}", 200, false, (*Cloud).getServer},
	{"UpdateServer", "PATCH", inRegion + "/servers/{serverId}", 200, false, (*Cloud).updateServer},
	{"DeleteServer", "DELETE", inRegion + "/servers/{serverId}", 204, false, (*Cloud).deleteServer},
	{"StartServer", "POST", inRegion + "/servers/{serverId}/start", 202, false, (*Cloud).startServer},
	{"StopServer", "POST", inRegion + "/servers/{serverId}/stop", 202, false, (*Cloud).stopServer},
	{"DeallocateServer", "POST", inRegion + "/servers/{serverId}/deallocate", 202, false, (*Cloud).deallocateServer},
	{"RebootServer", "POST", inRegion + "/servers/{serverId}/reboot", 202, false, (*Cloud).rebootServer},
	{"ListServerNICs", "GET", inRegion + "/servers/{serverId}/nics", 200, false, (*Cloud).listServerNICs},
	{"ListAttachedVolumes", "GET", inRegion + "/servers/{serverId}/volume-attachments", 200, false, (*Cloud).listAttachedVolumes},

	{"ListProjectNICs", "GET", inRegion + "/nics", 200, false, (*Cloud).listProjectNICs},
	{"GetProjectNIC", "GET", inRegion + "/nics/{nicId}", 200, false, (*Cloud).getProjectNIC},
	{"ListNics", "GET", inRegion + "/networks/{networkId}/nics", 200, false, (*Cloud).listNetworkNICs},
	{"CreateNic", "POST", inRegion + "/networks/{networkId}/nics", 201, false, (*Cloud).createNIC},
	{"GetNic", "GET", inRegion + "/networks/{networkId}/nics/{nicId}", 200, false, (*Cloud).getNetworkNIC},
	{"UpdateNic", "PATCH", inRegion + "/networks/{networkId}/nics/{nicId}", 200, false, (*Cloud).updateNIC},
	{"DeleteNic", "DELETE", inRegion + "/networks/{networkId}/nics/{nicId}", 204, false, (*Cloud).deleteNIC},

	{"ListVolumes", "GET", inRegion + "/volumes", 200, false, (*Cloud).listVolumes},
	{"CreateVolume", "POST", inRegion + "/volumes", 201, false, (*Cloud).createVolume},
	{"GetVolume", "GET", inRegion + "/volumes/{volumeId}", 200, false, (*Cloud).getVolume},
	{"DeleteVolume", "DELETE", inRegion + "/volumes/{volumeId}", 204, false, (*Cloud).deleteVolume},
}

// routeTable holds the routes by the number of segments in their paths.
type routeTable map[int][]tableEntry

type tableEntry struct {
	route
	segments []string
}

var routesByLength = tabulate(routes)

func tabulate(routes []route) routeTable {
	table := routeTable{}
	for _, r := range routes {
		segments := strings.Split(r.path, "/")
		table[len(segments)] = append(table[len(segments)], tableEntry{route: r, segments: segments})
	}
	return table
}

// matchRoute finds the operation; without one it says why, in the API's words.
func matchRoute(r *http.Request) (route, map[string]string, *apiError) {
	segments, err := pathSegments(r.URL)
	miss := notFoundRoute()
	if err == nil && !slices.Contains(segments[1:], "") {
		for _, candidate := range routesByLength[len(segments)] {
			if !candidate.fits(segments) {
				continue
			}
			if candidate.method == r.Method {
				return candidate.route, candidate.vars(segments), nil
			}
			miss = newError(http.StatusMethodNotAllowed, "method not allowed")
		}
	}
	return route{operation: unknownOperation}, nil, miss
}

func notFoundRoute() *apiError {
	return newError(http.StatusNotFound, "no matching operation was found")
}

func pathSegments(u *url.URL) ([]string, error) {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return nil, err
		}
		segments[i] = decoded
	}
	return segments, nil
}

// fits compares with as many segments of a request's path.
func (e *tableEntry) fits(segments []string) bool {
	for i, own := range e.segments {
		if own != segments[i] && !strings.HasPrefix(own, "{") {
			return false
		}
	}
	return true
}

func (e *tableEntry) vars(segments []string) map[string]string {
	vars := map[string]string{}
	for i, own := range e.segments {
		if name, isVar := strings.CutPrefix(own, "{"); isVar {
			vars[strings.TrimSuffix(name, "}")] = segments[i]
		}
	}
	return vars
}

func (c *Cloud) issueToken(r *request) (any, *apiError) {
	response, err := c.tokens.exchange(r.body, &r.fault)
	if err != nil {
		return nil, err
	}
	return response, nil
}
