// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import "github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"

// Remedy is a row of the table of kubernetes/runbooks.md, "When a Machine does not come up".
type Remedy struct {
	// Reason is what the driver's text begins with; "" in the row about a Machine of which the
	// manager says nothing at all.
	Reason provider.Reason
	// Cause is why a Machine does not come up, Remedy what to do about it.
	Cause, Remedy string
}

// remedyFor returns the row about the reason in a text; nil if there is none, as in texts of the
// manager itself and of versions of the driver before there were reasons.
func remedyFor(text string) *Remedy {
	reason := provider.ReasonIn(text)
	for i := range remedies {
		if reason != "" && remedies[i].Reason == reason {
			return &remedies[i]
		}
	}
	return nil
}

// remedyForSilence returns the row about a Machine of which the manager says nothing.
func remedyForSilence() *Remedy { return &remedies[0] }

// remedies are the rows of the table in its order.
var remedies = []Remedy{
	{Cause: "the Secret, or its key userData, is missing",
		Remedy: "create it; the sidecar's log repeats userdata field not found"},
	{provider.ReasonInvalidInput,
		"a value in the MachineClass, the Secret or the Machine is wrong; the text names each field",
		"correct it; a machine.metadata.name that is too long: shorten the MachineDeployment's name"},
	{provider.ReasonInvalidProviderID,
		"the Machine's ProviderID is no server's, or the Secret now names another project",
		"correct spec.providerID, or restore the project: servers do not move"},
	{provider.ReasonRequestRefused,
		"a value that only the cloud can check; boot device size is about a disk without a size, or smaller than its image asks for",
		"correct what the text names; set bootVolume.size"},
	{provider.ReasonResourceMissing,
		"an image, network, NIC or volume is not in this project and region, or a key pair is not one of the service account",
		"correct the ID; check region"},
	{provider.ReasonUnknownMachineType,
		"the class's machine type does not exist, or not in this region",
		"correct providerSpec.machineType; the class gets the same answer for 1 minute"},
	{provider.ReasonQuotaExceeded,
		"the project's quota is used up",
		"raise it, or scale something else down; the class gets the same answer for 1 minute"},
	{provider.ReasonNoCapacity,
		"no capacity for this machine type and zone",
		"another zone or machine type, or wait; the class gets the same answer for 1 minute"},
	{provider.ReasonCredentialsRefused,
		"the key is wrong, expired or revoked; or the workload identity's token is, or is not trusted",
		"put a valid service-account key or token into the Secret; check the service account's federated identity provider"},
	{provider.ReasonCredentialsRevoked,
		"the service account's key or token was refused during a call",
		"put a valid one into the Secret"},
	{provider.ReasonTokenEndpointDown,
		"the token endpoint does not answer, or answers an error",
		"check STACKIT_TOKEN_BASEURL and the network; else nothing: the next call tries again"},
	{provider.ReasonNoPermission,
		"the service account may not do this in this project",
		"grant it these permissions (pkg/provider/apis/README.md); check that key and projectId belong together"},
	{provider.ReasonTooManyRequests,
		"the API takes no more calls for now",
		"nothing at first; if it stays, see StackitAPIThrottled"},
	{provider.ReasonAPIFailed,
		"the API is out of order, or does not answer",
		"nothing at first; requestID in the sidecar's log is what support asks for"},
	{provider.ReasonNotOurs,
		"the server's labels name another machine or cluster, or OpenStack's tag says that it may be another Machine's",
		"restore the label the text names, or delete the server by hand if it is nobody's"},
	{provider.ReasonLabelsMissing,
		"a server of the Machine's name shows no labels: the API dropped them, or it is somebody else's; its class gets no other servers for an hour",
		"set the labels that the text names if the server is that Machine's, else rename it; ask STACKIT, if it happens again"},
	{provider.ReasonClusterUnknown,
		"the class's label that ends in /cluster has a value that no server can carry, or none",
		"correct providerSpec.labels"},
	{provider.ReasonOtherProject,
		"the Secret or class names another project or region than when the Machine's server was made",
		"restore them, or delete the Machine while they name the first one"},
	{provider.ReasonNotTakenOver,
		"the Machine is marked as one from OpenStack, and no server has its name, or several have",
		"none: delete the Machine to have it replaced, or name its server by spec.providerID; one that never had a server is replaced at its creation timeout. Several: set spec.providerID to the right one, or delete the wrong one"},
	{provider.ReasonResourceInUse,
		"a NIC or volume of the class is attached elsewhere",
		"detach it: classes with nicIds or volumes serve one machine"},
	{provider.ReasonNoServer,
		"the Machine has no server that runs",
		"nothing: the manager makes one, or goes on with the deletion"},
	{provider.ReasonNotReady,
		"the server has no address yet, or the API does not show yet what it made",
		"nothing: the next call goes on"},
	{provider.ReasonNotInitialized,
		"the server runs, and its NICs do not carry the allowedAddresses yet",
		"nothing: the next call goes on"},
	{provider.ReasonUpdateIgnored,
		"the API took the update of a NIC and did not do it",
		"ask STACKIT with the NIC's ID"},
	{provider.ReasonServerBusy,
		"the cloud is working on the server, or its deletion failed",
		"nothing at first; if it stays, ask STACKIT with the server's ID"},
	{provider.ReasonServerFailed,
		"the cloud could not make the server; it is deleted and made anew",
		"see the message of the cloud in the text"},
	{provider.ReasonCreationTimedOut,
		"the Machine is older than its creation timeout and has no server",
		"nothing: the manager replaces it"},
	{provider.ReasonTimedOut,
		"the server boots or goes for longer than a call waits; or the answer to a request was lost, and its result is looked for",
		"nothing: the next call goes on"},
	{provider.ReasonInterrupted,
		"the call was cancelled, another call is creating this Machine's server, or somebody deleted the server",
		"nothing: the next call goes on, and makes a new server if need be"},
	{provider.ReasonNoSession,
		"a program that uses the driver as a library waits for a server of a project that no call has named",
		"call a method with the project's Secret before"},
	{provider.ReasonDriverBug,
		"a bug of the driver",
		"report it with the stack from the sidecar's log"},
}
