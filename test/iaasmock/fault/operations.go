// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

// Operations are the operations of the mock that a Fault may name: operationIds of the
// API document, and GetProject of the resource manager.
var Operations = []string{
	"AddNetworkToServer", "AddNicToServer", "AddPublicIpToServer", "AddSecurityGroupToServer",
	"AddServiceAccountToServer", "AddVolumeToServer", "CreateAffinityGroup", "CreateImage", "CreateKeyPair",
	"CreateNetwork", "CreateNic", "CreatePublicIP", "CreateSecurityGroup", "CreateSecurityGroupRule",
	"CreateServer", "CreateSnapshot", "CreateVolume", "DeallocateServer", "DeleteAffinityGroup", "DeleteImage",
	"DeleteKeyPair", "DeleteNetwork", "DeleteNic", "DeletePublicIP", "DeleteSecurityGroup",
	"DeleteSecurityGroupRule", "DeleteServer", "DeleteSnapshot", "DeleteVolume", "GetAffinityGroup",
	"GetAttachedVolume", "GetImage", "GetKeyPair", "GetMachineType", "GetNetwork", "GetNic", "GetProject",
	"GetProjectDetails", "GetProjectNIC", "GetProjectRequest", "GetPublicIP", "GetSecurityGroup",
	"GetSecurityGroupRule", "GetServer", "GetServerConsole", "GetServerLog", "GetSnapshot", "GetVolume",
	"GetVolumePerformanceClass", "ListAffinityGroups", "ListAttachedVolumes", "ListAvailabilityZones",
	"ListImages", "ListKeyPairs", "ListMachineTypes", "ListNetworks", "ListNics", "ListProjectNICs",
	"ListPublicIPRanges", "ListPublicIPs", "ListQuotas", "ListSecurityGroupRules", "ListSecurityGroups",
	"ListServerNICs", "ListServerServiceAccounts", "ListServers", "ListSnapshotsInProject",
	"ListVolumePerformanceClasses", "ListVolumes", "PartialUpdateNetwork", "RebootServer",
	"RemoveNetworkFromServer", "RemoveNicFromServer", "RemovePublicIpFromServer",
	"RemoveSecurityGroupFromServer", "RemoveServiceAccountFromServer", "RemoveVolumeFromServer", "RescueServer",
	"ResizeServer", "ResizeVolume", "StartServer", "StopServer", "UnrescueServer", "UpdateAttachedVolume",
	"UpdateImage", "UpdateKeyPair", "UpdateNic", "UpdatePublicIP", "UpdateSecurityGroup", "UpdateServer",
	"UpdateSnapshot", "UpdateVolume",
}
