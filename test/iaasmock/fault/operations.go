// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "slices"

// Operations are the operations of the mock that a Fault may name: operationIds of the
// API document, and GetProject of the resource manager.
var Operations = []string{
	"CreateNetwork", "CreateNic", "CreateServer", "CreateVolume", "DeleteNetwork", "DeleteNic", "DeleteServer", "DeleteVolume",
	"GetAffinityGroup", "GetImage", "GetKeyPair", "GetMachineType", "GetNetwork", "GetNic", "GetProject",
	"GetProjectDetails", "GetProjectNIC", "GetSecurityGroup", "GetServer", "GetServerLog", "GetSnapshot", "GetVolume",
	"GetVolumePerformanceClass", "ListAffinityGroups", "ListAttachedVolumes", "ListAvailabilityZones",
	"ListImages", "ListKeyPairs", "ListMachineTypes", "ListNetworks", "ListNics", "ListProjectNICs",
	"ListQuotas", "ListSecurityGroups", "ListServerNICs", "ListServers", "ListVolumePerformanceClasses",
	"ListVolumes", "StartServer", "StopServer", "UpdateNic", "UpdateServer", "UpdateVolume",
}

// Operations that a Fault may name besides those in Operations.
const (
	// OperationIaaS is every call except those of the token endpoint, which is a separate
	// service.
	OperationIaaS = "IaaS"
	// OperationToken is a call of a token endpoint: for keys, or for workload identities.
	OperationToken = "Token"
	// OperationUnknown is a call that the mock does not implement.
	OperationUnknown = "Unknown"
)

const operationCreate = "CreateServer"

// endingOperations are the operations with a state in which the server ends.
var endingOperations = []string{operationCreate, "DeleteServer", "StartServer", "StopServer"}

// listOperations are the operations that answer with a list.
var listOperations = []string{
	"ListServers", "ListServerNICs", "ListAttachedVolumes", "ListProjectNICs", "ListNics", "ListVolumes", "ListNetworks",
	"ListSecurityGroups", "ListImages", "ListAffinityGroups", "ListKeyPairs", "ListMachineTypes", "ListAvailabilityZones",
	"ListVolumePerformanceClasses",
}

// emptiedOperations are the operations that EmptyProject works with.
var emptiedOperations = []string{
	"ListServers", "GetServer", "GetServerLog", "DeleteServer", "ListServerNICs", "ListAttachedVolumes", "ListProjectNICs", "GetProjectNIC",
	"ListNics", "GetNic", "DeleteNic", "ListVolumes", "GetVolume", "DeleteVolume",
}

// EmptiedOperations returns the operations that EmptyProject works with: lists, reads and
// deletions of servers, NICs and volumes.
func EmptiedOperations() []string { return slices.Clone(emptiedOperations) }
