// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/internal/token"
)

// createServerOperation is the one operation whose faults read the body, for the name and
// labels of the new server.
const createServerOperation = "CreateServer"

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

// request is a call on its way to a handler.
type request struct {
	*http.Request
	vars  map[string]string
	body  []byte
	fault Fault
	// strictLabels makes decode refuse labels that break the documented rules.
	strictLabels bool
}

func (r *request) project() string { return r.vars["projectId"] }
func (r *request) region() string  { return r.vars["region"] }

const inRegion = "/v2/projects/{projectId}/regions/{region}"

// routes are all operations of the mock.
var routes = slices.Concat(basicRoutes, computeRoutes, catalogueRoutes)

// basicRoutes are the token endpoints, servers, NICs and volumes.
var basicRoutes = []route{
	{fault.OperationToken, "POST", "/oauth/v2/token", 200, true, (*Cloud).issueWorkloadToken},
	{fault.OperationToken, "POST", "/token", 200, true, (*Cloud).issueToken},

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

func (c *Cloud) issueToken(r *request) (any, *apiError) {
	return answerToken(r, c.tokens.Exchange)
}

func (c *Cloud) issueWorkloadToken(r *request) (any, *apiError) {
	return answerToken(r, c.tokens.ExchangeWorkload)
}

func answerToken(r *request, exchange func([]byte, token.Flaw) (token.Response, *token.Refusal)) (any, *apiError) {
	response, refusal := exchange(r.body, token.Flaw{Skew: r.fault.TokenSkew, WithoutExpiry: r.fault.TokenWithoutExpiry})
	if refusal != nil {
		// Source: package token has one beside each.
		return nil, newError(refusal.Status, "%s", refusal.Reason)
	}
	return response, nil
}

const onServer = inRegion + "/servers/{serverId}"

// computeRoutes are the other operations on servers, their attachments, volumes, public
// IPs and projects.
var computeRoutes = []route{
	{"RescueServer", "POST", onServer + "/rescue", 202, false, (*Cloud).rescueServer},
	{"UnrescueServer", "POST", onServer + "/unrescue", 202, false, (*Cloud).unrescueServer},
	{"ResizeServer", "POST", onServer + "/resize", 202, false, (*Cloud).resizeServer},
	{"GetServerConsole", "GET", onServer + "/console", 200, false, (*Cloud).getServerConsole},
	{"GetServerLog", "GET", onServer + "/log", 200, false, (*Cloud).getServerLog},

	{"GetAttachedVolume", "GET", onServer + "/volume-attachments/{volumeId}", 200, false, (*Cloud).getAttachedVolume},
	{"AddVolumeToServer", "PUT", onServer + "/volume-attachments/{volumeId}", 202, false, (*Cloud).addVolumeToServer},
	{"UpdateAttachedVolume", "PATCH", onServer + "/volume-attachments/{volumeId}", 200, false, (*Cloud).updateAttachedVolume},
	{"RemoveVolumeFromServer", "DELETE", onServer + "/volume-attachments/{volumeId}", 204, false, (*Cloud).removeVolumeFromServer},
	{"AddNicToServer", "PUT", onServer + "/nics/{nicId}", 202, false, (*Cloud).addNICToServer},
	{"RemoveNicFromServer", "DELETE", onServer + "/nics/{nicId}", 204, false, (*Cloud).removeNICFromServer},
	{"AddNetworkToServer", "POST", onServer + "/networks/{networkId}", 202, false, (*Cloud).addNetworkToServer},
	{"RemoveNetworkFromServer", "DELETE", onServer + "/networks/{networkId}", 204, false, (*Cloud).removeNetworkFromServer},
	{"AddSecurityGroupToServer", "PUT", onServer + "/security-groups/{securityGroupId}", 202, false, (*Cloud).addSecurityGroupToServer},
	{"RemoveSecurityGroupFromServer", "DELETE", onServer + "/security-groups/{securityGroupId}", 204, false, (*Cloud).removeSecurityGroupFromServer},
	{"AddPublicIpToServer", "PUT", onServer + "/public-ips/{publicIpId}", 202, false, (*Cloud).addPublicIPToServer},
	{"RemovePublicIpFromServer", "DELETE", onServer + "/public-ips/{publicIpId}", 204, false, (*Cloud).removePublicIPFromServer},
	{"ListServerServiceAccounts", "GET", onServer + "/service-accounts", 200, false, (*Cloud).listServerServiceAccounts},
	{"AddServiceAccountToServer", "PUT", onServer + "/service-accounts/{serviceAccountMail}", 201, false, (*Cloud).addServiceAccountToServer},
	{"RemoveServiceAccountFromServer", "DELETE", onServer + "/service-accounts/{serviceAccountMail}", 200, false, (*Cloud).removeServiceAccountFromServer},

	{"UpdateVolume", "PATCH", inRegion + "/volumes/{volumeId}", 200, false, (*Cloud).updateVolume},
	{"ResizeVolume", "POST", inRegion + "/volumes/{volumeId}/resize", 202, false, (*Cloud).resizeVolume},
	{"ListVolumePerformanceClasses", "GET", inRegion + "/volume-performance-classes", 200, false, (*Cloud).listPerformanceClasses},
	{"GetVolumePerformanceClass", "GET", inRegion + "/volume-performance-classes/{volumePerformanceClass}", 200, false, (*Cloud).getPerformanceClass},

	{"ListPublicIPs", "GET", inRegion + "/public-ips", 200, false, (*Cloud).listPublicIPs},
	{"CreatePublicIP", "POST", inRegion + "/public-ips", 201, false, (*Cloud).createPublicIP},
	{"GetPublicIP", "GET", inRegion + "/public-ips/{publicIpId}", 200, false, (*Cloud).getPublicIP},
	{"UpdatePublicIP", "PATCH", inRegion + "/public-ips/{publicIpId}", 200, false, (*Cloud).updatePublicIP},
	{"DeletePublicIP", "DELETE", inRegion + "/public-ips/{publicIpId}", 204, false, (*Cloud).deletePublicIP},

	{"ListPublicIPRanges", "GET", "/v2/networks/public-ip-ranges", 200, false, (*Cloud).listPublicIPRanges},

	{"ListQuotas", "GET", inRegion + "/quotas", 200, false, (*Cloud).listQuotas},
	{"GetProjectRequest", "GET", inRegion + "/requests/{requestId}", 200, false, (*Cloud).getProjectRequest},
	{"GetProjectDetails", "GET", "/v2/projects/{projectId}", 200, false, (*Cloud).getProjectDetails},
	{"GetProject", "GET", "/resource-manager/v2/projects/{projectId}", 200, false, (*Cloud).getResourceManagerProject},
}

const (
	ofNetwork       = inRegion + "/networks/{networkId}"
	ofSecurityGroup = inRegion + "/security-groups/{securityGroupId}"
	ofRule          = ofSecurityGroup + "/rules/{securityGroupRuleId}"
	ofImage         = inRegion + "/images/{imageId}"
	ofAffinityGroup = inRegion + "/affinity-groups/{affinityGroupId}"
	ofSnapshot      = inRegion + "/snapshots/{snapshotId}"
	ofKeypair       = "/v2/keypairs/{keypairName}"
)

// catalogueRoutes are the operations on networks, security groups, images, snapshots,
// affinity groups, key pairs, machine types and zones.
var catalogueRoutes = []route{
	{"ListNetworks", "GET", inRegion + "/networks", 200, false, (*Cloud).listNetworks},
	{"CreateNetwork", "POST", inRegion + "/networks", 202, false, (*Cloud).createNetwork},
	{"GetNetwork", "GET", ofNetwork, 200, false, (*Cloud).getNetwork},
	{"PartialUpdateNetwork", "PATCH", ofNetwork, 202, false, (*Cloud).updateNetwork},
	{"DeleteNetwork", "DELETE", ofNetwork, 202, false, (*Cloud).deleteNetwork},

	{"ListSecurityGroups", "GET", inRegion + "/security-groups", 200, false, (*Cloud).listSecurityGroups},
	{"CreateSecurityGroup", "POST", inRegion + "/security-groups", 201, false, (*Cloud).createSecurityGroup},
	{"GetSecurityGroup", "GET", ofSecurityGroup, 200, false, (*Cloud).getSecurityGroup},
	{"UpdateSecurityGroup", "PATCH", ofSecurityGroup, 200, false, (*Cloud).updateSecurityGroup},
	{"DeleteSecurityGroup", "DELETE", ofSecurityGroup, 204, false, (*Cloud).deleteSecurityGroup},
	{"ListSecurityGroupRules", "GET", ofSecurityGroup + "/rules", 200, false, (*Cloud).listSecurityGroupRules},
	{"CreateSecurityGroupRule", "POST", ofSecurityGroup + "/rules", 201, false, (*Cloud).createSecurityGroupRule},
	{"GetSecurityGroupRule", "GET", ofRule, 200, false, (*Cloud).getSecurityGroupRule},
	{"DeleteSecurityGroupRule", "DELETE", ofRule, 204, false, (*Cloud).deleteSecurityGroupRule},

	{"ListImages", "GET", inRegion + "/images", 200, false, (*Cloud).listImages},
	{"CreateImage", "POST", inRegion + "/images", 201, false, (*Cloud).createImage},
	{"GetImage", "GET", ofImage, 200, false, (*Cloud).getImage},
	{"UpdateImage", "PATCH", ofImage, 200, false, (*Cloud).updateImage},
	{"DeleteImage", "DELETE", ofImage, 204, false, (*Cloud).deleteImage},

	{"ListSnapshotsInProject", "GET", inRegion + "/snapshots", 200, false, (*Cloud).listSnapshots},
	{"CreateSnapshot", "POST", inRegion + "/snapshots", 201, false, (*Cloud).createSnapshot},
	{"GetSnapshot", "GET", ofSnapshot, 200, false, (*Cloud).getSnapshot},
	{"UpdateSnapshot", "PATCH", ofSnapshot, 200, false, (*Cloud).updateSnapshot},
	{"DeleteSnapshot", "DELETE", ofSnapshot, 204, false, (*Cloud).deleteSnapshot},

	{"ListAffinityGroups", "GET", inRegion + "/affinity-groups", 200, false, (*Cloud).listAffinityGroups},
	{"CreateAffinityGroup", "POST", inRegion + "/affinity-groups", 201, false, (*Cloud).createAffinityGroup},
	{"GetAffinityGroup", "GET", ofAffinityGroup, 200, false, (*Cloud).getAffinityGroup},
	{"DeleteAffinityGroup", "DELETE", ofAffinityGroup, 204, false, (*Cloud).deleteAffinityGroup},

	{"ListKeyPairs", "GET", "/v2/keypairs", 200, false, (*Cloud).listKeypairs},
	{"CreateKeyPair", "POST", "/v2/keypairs", 201, false, (*Cloud).createKeypair},
	{"GetKeyPair", "GET", ofKeypair, 200, false, (*Cloud).getKeypair},
	{"UpdateKeyPair", "PATCH", ofKeypair, 200, false, (*Cloud).updateKeypair},
	{"DeleteKeyPair", "DELETE", ofKeypair, 204, false, (*Cloud).deleteKeypair},

	{"ListMachineTypes", "GET", inRegion + "/machine-types", 200, false, (*Cloud).listMachineTypes},
	{"GetMachineType", "GET", inRegion + "/machine-types/{machineType}", 200, false, (*Cloud).getMachineType},
	{"ListAvailabilityZones", "GET", "/v2/regions/{region}/availability-zones", 200, false, (*Cloud).listAvailabilityZones},
}
