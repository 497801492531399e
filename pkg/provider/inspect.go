// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"net/http"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// What is here lets package operator decide as the driver does.

// Inputs are what a MachineClass and its Secret say, decoded and checked as every call of
// the driver does.
type Inputs struct {
	Secret *apis.Secret
	// Spec has its defaults set. A field that could not be decoded is empty.
	Spec *apis.ProviderSpec
	// ClusterLabels are the labels of Spec by which a cluster's servers are told from those
	// of others: as a rule one, or none.
	ClusterLabels map[string]string
	// ClusterUnknown says that the cluster labels could not be decoded, or are no valid
	// labels: which servers are the cluster's cannot be told then.
	ClusterUnknown bool
	// Unknown are the fields of the providerSpec that the driver ignores, or refuses with
	// --strict-provider-spec, as apis.DecodeProviderSpec names them.
	Unknown []error
	// Errors are everything that a strict call would refuse, with the paths of the fields:
	// providerSpec.…, secret.…, machineClass.… .
	Errors field.ErrorList
}

// Inspect decodes and checks what the driver is given for machines of a class. It opens no
// session: whether the service-account key can be used is for package spi to say. A nil
// Secret is an empty one.
func Inspect(class *v1alpha1.MachineClass, secret *corev1.Secret) *Inputs {
	if secret == nil {
		secret = &corev1.Secret{}
	}
	in := decodeInputs(nil, class, secret, false)
	return &Inputs{
		Secret: in.secret, Spec: in.spec,
		ClusterLabels: in.identity.cluster, ClusterUnknown: in.identity.clusterUnknown,
		Unknown: in.unknown, Errors: append(in.needed, in.others...),
	}
}

// CheckOwned returns an error unless the server is the Machine's, by the rule that decides
// before every change and deletion. labels are those of the class's providerSpec; byID says
// that the Machine's ProviderID names this very server. The error's code is
// FailedPrecondition.
func CheckOwned(machine, class string, labels map[string]string, server *Server, byID bool) error {
	return newIdentity(machine, class, labels).checkOwned(server, byID)
}

// FoundByName says whether the driver would find the server as the Machine's by its labels,
// without a ProviderID. labels are those of the class's providerSpec.
func FoundByName(machine, class string, labels map[string]string, server *Server) bool {
	identity := newIdentity(machine, class, labels)
	return matches(server, identity.machineSelector()) && identity.checkOwned(server, false) == nil
}

// NewClient returns the calls of the driver's for the session's project. Reads are not
// shared, and take no turn among the session's reads.
func NewClient(session *spi.Session, region string) StackitClient {
	return &sdkClient{api: session.API, projectID: session.ProjectID, region: region}
}

// NewAPIError makes an *APIError of what the SDK answered a call with that the driver does
// not make. what names the call, in the form "reading an image"; response may be nil.
func NewAPIError(what string, response *http.Response, err error) error {
	return apiError(apiCall(what), response, err)
}

// IsNotFound says whether the API itself answered that what a call names does not exist.
// An answer about the project, or of a gateway, does not tell.
func IsNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.saysNotFound()
}
