// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// route is one operation of the API document, of the token endpoint or of the resource
// manager.
type route struct {
	operation string
	method    string
	path      string
	// status is the status of success.
	status int
	// open is true if the operation needs no token.
	open   bool
	handle func(*Cloud, *request) (any, *apiError)
}

const inRegion = "/v2/projects/{projectId}/regions/{region}"

// routes are all operations of the mock.
var routes = []route{
	{fault.OperationToken, "POST", "/oauth/v2/token", 200, true, (*Cloud).issueWorkloadToken},
	{fault.OperationToken, "POST", "/token", 200, true, (*Cloud).issueToken},

	{"ListServers", "GET", inRegion + "/servers", 200, false, (*Cloud).listServers},
	{createServerOperation, "POST", inRegion + "/servers", 201, false, (*Cloud).createServer},
	{"GetServer", "GET", inRegion + "/servers/{serverId}", 200, false, (*Cloud).getServer},
	{"UpdateServer", "PATCH", inRegion + "/servers/{serverId}", 200, false, (*Cloud).updateServer},
	{"DeleteServer", "DELETE", inRegion + "/servers/{serverId}", 204, false, (*Cloud).deleteServer},
	{"StartServer", "POST", inRegion + "/servers/{serverId}/start", 202, false, (*Cloud).startServer},
	{"StopServer", "POST", inRegion + "/servers/{serverId}/stop", 202, false, (*Cloud).stopServer},
	{"GetServerLog", "GET", inRegion + "/servers/{serverId}/log", 200, false, (*Cloud).getServerLog},
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
	{"UpdateVolume", "PATCH", inRegion + "/volumes/{volumeId}", 200, false, (*Cloud).updateVolume},

	{"ListVolumePerformanceClasses", "GET", inRegion + "/volume-performance-classes", 200, false, (*Cloud).listPerformanceClasses},
	{"GetVolumePerformanceClass", "GET", inRegion + "/volume-performance-classes/{volumePerformanceClass}", 200, false, (*Cloud).getPerformanceClass},

	{"ListQuotas", "GET", inRegion + "/quotas", 200, false, (*Cloud).listQuotas},
	{"GetProjectDetails", "GET", "/v2/projects/{projectId}", 200, false, (*Cloud).getProjectDetails},
	{"GetProject", "GET", "/resource-manager/v2/projects/{projectId}", 200, false, (*Cloud).getResourceManagerProject},

	{"ListNetworks", "GET", inRegion + "/networks", 200, false, (*Cloud).listNetworks},
	{"CreateNetwork", "POST", inRegion + "/networks", 202, false, (*Cloud).createNetwork},
	{"DeleteNetwork", "DELETE", inRegion + "/networks/{networkId}", 202, false, (*Cloud).deleteNetwork},
	{"GetNetwork", "GET", inRegion + "/networks/{networkId}", 200, false, (*Cloud).getNetwork},

	{"ListSecurityGroups", "GET", inRegion + "/security-groups", 200, false, (*Cloud).listSecurityGroups},
	{"GetSecurityGroup", "GET", inRegion + "/security-groups/{securityGroupId}", 200, false, (*Cloud).getSecurityGroup},

	{"ListImages", "GET", inRegion + "/images", 200, false, (*Cloud).listImages},
	{"GetImage", "GET", inRegion + "/images/{imageId}", 200, false, (*Cloud).getImage},

	{"GetSnapshot", "GET", inRegion + "/snapshots/{snapshotId}", 200, false, (*Cloud).getSnapshot},

	{"ListAffinityGroups", "GET", inRegion + "/affinity-groups", 200, false, (*Cloud).listAffinityGroups},
	{"GetAffinityGroup", "GET", inRegion + "/affinity-groups/{affinityGroupId}", 200, false, (*Cloud).getAffinityGroup},

	{"ListKeyPairs", "GET", "/v2/keypairs", 200, false, (*Cloud).listKeypairs},
	{"GetKeyPair", "GET", "/v2/keypairs/{keypairName}", 200, false, (*Cloud).getKeypair},

	{"ListMachineTypes", "GET", inRegion + "/machine-types", 200, false, (*Cloud).listMachineTypes},
	{"GetMachineType", "GET", inRegion + "/machine-types/{machineType}", 200, false, (*Cloud).getMachineType},
	{"ListAvailabilityZones", "GET", "/v2/regions/{region}/availability-zones", 200, false, (*Cloud).listAvailabilityZones},
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

// matchRoute returns the operation of a request, or the API's error.
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
			// Source: kin-openapi's router, whose messages are STACKIT's.
			miss = newError(http.StatusMethodNotAllowed, "method not allowed")
		}
	}
	return route{operation: fault.OperationUnknown}, nil, miss
}

// notFoundRoute is the answer to a path that the mock does not know.
//
// Source: kin-openapi's router, whose messages are STACKIT's.
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

// fits reports whether the route's path matches a request's path with as many segments.
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
