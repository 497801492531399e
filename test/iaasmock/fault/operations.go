// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

// Operations are the operations of the mock that a Fault may name: operationIds of the
// API document, and GetProject of the resource manager.
var Operations = []string{
	"CreateNic", "CreateServer", "CreateVolume", "DeleteNic", "DeleteServer", "DeleteVolume",
	"GetAffinityGroup", "GetImage", "GetKeyPair", "GetMachineType", "GetNetwork", "GetNic", "GetProject",
	"GetProjectDetails", "GetProjectNIC", "GetSecurityGroup", "GetServer", "GetSnapshot", "GetVolume",
	"GetVolumePerformanceClass", "ListAffinityGroups", "ListAttachedVolumes", "ListAvailabilityZones",
	"ListImages", "ListKeyPairs", "ListMachineTypes", "ListNetworks", "ListNics", "ListProjectNICs",
	"ListQuotas", "ListSecurityGroups", "ListServerNICs", "ListServers", "ListVolumePerformanceClasses",
	"ListVolumes", "StartServer", "StopServer", "UpdateNic", "UpdateServer", "UpdateVolume",
}
