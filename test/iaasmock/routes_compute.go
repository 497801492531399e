// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

const onServer = inRegion + "/servers/{serverId}"

// computeRoutes change servers that exist, what is attached to them, volumes and
// public IPs, and tell what a project is and may.
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
