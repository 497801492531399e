// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// StackitClient makes the driver's calls to the IaaS API with the STACKIT SDK, for one project and region
// (sdk_client.go). Every error is an *APIError, or wraps one.
type StackitClient struct {
	api       iaas.DefaultAPI
	projectID string
	region    string
}

// Server is a server of the IaaS API, with the fields that lists show.
type Server struct {
	ID   string
	Name string
	// Status is the API's, such as CREATING, ACTIVE, DELETING or ERROR.
	Status string
	// ErrorMessage is the API's unchanged message about a server in ERROR; the error code for the
	// manager is derived from it. It may repeat userData, so it must not be printed: error texts and
	// logs use faultyError.
	ErrorMessage string
	MachineType  string
	// Zone is the availability zone; "" for a server without one.
	Zone   string
	Labels map[string]string
	// Metadata holds texts that the server itself can read. A server from OpenStack may have its
	// tags there.
	Metadata  map[string]string
	CreatedAt time.Time
}

// States of a server that the driver distinguishes; in any other state it waits. The API may add
// states.
const (
	statusActive   = "ACTIVE"
	statusError    = "ERROR"
	statusDeleting = "DELETING"
	statusDeleted  = "DELETED"
)

// IsActive reports whether the server runs.
func (s *Server) IsActive() bool { return s.Status == statusActive }

// IsDeleting reports whether the server is being deleted or already DELETED.
func (s *Server) IsDeleting() bool {
	return s.Status == statusDeleting || s.Status == statusDeleted
}

// ServerRequest describes a server to create.
type ServerRequest struct {
	Name string
	// Labels are all labels of the server. Spec.Labels is not sent.
	Labels map[string]string
	Spec   *apis.ProviderSpec
}

// NIC is a network interface.
type NIC struct {
	ID        string
	Name      string
	NetworkID string
	// ServerID is the server that the NIC is attached to; "" if there is none.
	ServerID string
	// Type is "server" or "none", or, for a NIC that belongs to the network, "metadata" or
	// "gateway".
	Type   string
	Labels map[string]string
	// IPv4 and IPv6 are the NIC's addresses; "" for an address that it does not have.
	IPv4, IPv6 string
	// AllowedAddresses are the addresses and CIDRs that may pass the NIC in addition to its own.
	AllowedAddresses []string
	// Insecure is true if the API shows nicSecurity: false. Every address passes such a NIC, and the
	// API refuses AllowedAddresses for it.
	Insecure bool
}

// IsNetworks reports whether the NIC belongs to the network itself, such as a gateway's.
func (n *NIC) IsNetworks() bool { return n.Type != "" && n.Type != "server" && n.Type != "none" }

// Addresses returns the NIC's IP addresses, IPv4 first; nil if it has none yet. It omits values that
// are not IP addresses.
func (n *NIC) Addresses() []string {
	var addresses []string
	for _, text := range []string{n.IPv4, n.IPv6} {
		if _, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, text)
		}
	}
	return addresses
}

// apiCall is a call of the API, for errors.go and for texts.
type apiCall string

const (
	callCreateServer apiCall = "creating a server"
	callGetServer    apiCall = "reading a server"
	callListServers  apiCall = "listing servers"
	callDeleteServer apiCall = "deleting a server"
	callListNICs     apiCall = "reading a server's NICs"
	callNetworkNICs  apiCall = "reading a network's NICs"
	callUpdateNIC    apiCall = "updating a NIC"
	callDeleteNIC    apiCall = "deleting a NIC"

	// callRunServer is not a call: it stands for the API's work on an accepted server.
	callRunServer apiCall = "running a server"
)

// isRead reports whether the call changes nothing.
func (c apiCall) isRead() bool {
	return strings.HasPrefix(string(c), "reading") || strings.HasPrefix(string(c), "listing")
}

// APIError is a failed call of the API.
type APIError struct {
	// Call is the call that failed.
	Call apiCall
	// StatusCode is the HTTP status of the answer; 0 without an answer. If the call was held back
	// because of an earlier answer, it is the status of that answer.
	StatusCode int
	// Message is the API's unchanged message; "" if the answer is not in the API's form
	// (spi.Message), such as a gateway's page, whose status is ignored. Message determines the error
	// code for the manager. It may repeat userData, so texts and logs never show it unchanged.
	Message string
	// isOfIaaS is true if the answer was {code,msg}: only then a 404 proves that the resource of a read or
	// DELETE, or the place, does not exist.
	isOfIaaS bool
	// shown is the version of Message for texts and logs.
	shown string
	// projectID is the call's project; "" for calls that the driver does not make.
	projectID string
	// isExclusive is true if the call creates a server with existing NICs or volumes.
	isExclusive bool
	// RequestID is the request ID of the answer; "" if it has none. It is logged, but not part of
	// error texts: the manager updates a Machine's status whenever the text changes.
	RequestID string
	// Err is the cause if the API did not answer, its answer could not be used, or the call was not
	// sent; else nil.
	Err error
}

// foreignCredentials is the hint for a gateway that does not know the key with which a token was signed. The
// answer passes while the gateway learns a new key; for a token of another environment it lasts
// (terraform-provider-stackit #709).
const foreignCredentials = "if it lasts, check that the credentials and the API's endpoint belong to the same " +
	"environment of STACKIT"

// Error implements error. The text never contains a body that is not in the API's form.
func (e *APIError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s: %s", e.Call, causeText(e.Err))
	case e.Message == "" && e.StatusCode == http.StatusUnauthorized:
		return fmt.Sprintf("%s: status %d, not the API's answer: %s", e.Call, e.StatusCode, foreignCredentials)
	case e.Message == "":
		return fmt.Sprintf("%s: status %d, not the API's answer", e.Call, e.StatusCode)
	case e.StatusCode == http.StatusForbidden && e.projectID != "":
		return fmt.Sprintf("%s in project %s: status %d: %s", e.Call, e.projectID, e.StatusCode, e.shown)
	default:
		return fmt.Sprintf("%s: status %d: %s", e.Call, e.StatusCode, e.shown)
	}
}

// causeText omits the parts that change with every attempt (ports) or are useless (the URL).
func causeText(err error) string {
	var request *url.Error
	if !errors.As(err, &request) {
		return err.Error()
	}
	err = request.Err
	var network *net.OpError
	if errors.As(err, &network) {
		err = fmt.Errorf("%s: %w", network.Op, network.Err)
	}
	return err.Error()
}

// Status returns the HTTP status of an answer from the API itself; 0 if there is none, or if a
// gateway answered.
func (e *APIError) Status() int {
	if e.Message == "" {
		return 0
	}
	return e.StatusCode
}

// isHeldBack reports whether no attempt at the call was made.
func (e *APIError) isHeldBack() bool {
	var notSent *spi.NotSentError
	return errors.As(e.Err, &notSent) && !notSent.Attempted
}

func (e *APIError) Unwrap() error { return e.Err }

// isServerNotFound reports whether the API itself, not a gateway, answered that a server does not
// exist. An answer about the project or region does not count.
func isServerNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && (api.Call == callGetServer || api.Call == callDeleteServer) && IsNotFound(err)
}

// IsNotFound reports whether the API itself answered that the requested resource does not exist. A
// gateway's answer does not count, nor does an answer about the project or region.
func IsNotFound(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.isMissing() && !placeWords.MatchString(api.Message)
}

// isMissing reports whether the IaaS API answered 404 or 410. Gateways write other 404s.
func (e *APIError) isMissing() bool {
	return e.isOfIaaS && (e.Status() == http.StatusNotFound || e.Status() == http.StatusGone)
}

// IsPlaceMissing reports whether the IaaS API answered that the project or region does not exist.
// Every 404 to a list of servers means this.
func IsPlaceMissing(err error) bool {
	var api *APIError
	return errors.As(err, &api) && api.isMissing() && (api.Call == callListServers || placeWords.MatchString(api.Message))
}

// statusOf returns the status with which the API itself answered a failed call; 0 if it did not.
func statusOf(err error) int {
	var api *APIError
	if errors.As(err, &api) {
		return api.Status()
	}
	return 0
}
