// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

const (
	ofNetwork       = inRegion + "/networks/{networkId}"
	ofSecurityGroup = inRegion + "/security-groups/{securityGroupId}"
	ofRule          = ofSecurityGroup + "/rules/{securityGroupRuleId}"
	ofImage         = inRegion + "/images/{imageId}"
	ofAffinityGroup = inRegion + "/affinity-groups/{affinityGroupId}"
	ofKeypair       = "/v2/keypairs/{keypairName}"
)

// catalogueRoutes are those of what the catalogue seeds, but for volumes and
// NICs.
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
