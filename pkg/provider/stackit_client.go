// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// StackitClient has the calls of the IaaS API that the driver makes, for one project and
// region. Every error of it is an *APIError, or wraps one.
type StackitClient interface {
	// CreateServer asks for a server. An error with an unknown outcome
	// (outcomeUnknown in errors.go) may have made one.
	CreateServer(ctx context.Context, server *ServerRequest) (*Server, error)
	// GetServer reads one server.
	GetServer(ctx context.Context, serverID string) (*Server, error)
	// ListServers reads the servers that carry all the labels. The list may lag
	// behind what GetServer shows.
	ListServers(ctx context.Context, labels map[string]string) ([]Server, error)
	// DeleteServer asks for a server's deletion, which then takes its time.
	DeleteServer(ctx context.Context, serverID string) error
	// ConsoleLog reads the last lines that a server has written to its console.
	ConsoleLog(ctx context.Context, serverID string, lines int64) (string, error)
	// ListServerNICs reads the NICs of a server.
	ListServerNICs(ctx context.Context, serverID string) ([]NIC, error)
	// ListNetworkNICs reads all NICs of a network, also those of no server.
	ListNetworkNICs(ctx context.Context, networkID string) ([]NIC, error)
	// UpdateAllowedAddresses replaces the allowed addresses of a NIC, and returns
	// the NIC as it is then.
	UpdateAllowedAddresses(ctx context.Context, networkID, nicID string, addresses []string) (*NIC, error)

	// What follows is for Machines that came from OpenStack.

	// GetNIC reads one NIC.
	GetNIC(ctx context.Context, networkID, nicID string) (*NIC, error)
	// DeleteNIC deletes a NIC. The API document knows no refusal for one that is in use.
	DeleteNIC(ctx context.Context, networkID, nicID string) error
	// ListVolumes reads all volumes of the project.
	ListVolumes(ctx context.Context) ([]Volume, error)
	// GetVolume reads one volume.
	GetVolume(ctx context.Context, volumeID string) (*Volume, error)
	// DeleteVolume asks for a volume's deletion; 409 for one that is in use.
	DeleteVolume(ctx context.Context, volumeID string) error
}

// Server is a server as the API shows it in lists: without details.
type Server struct {
	ID     string
	Name   string
	Status string
	// ErrorMessage is the API's own. Codes are decided on it; the driver's texts show what reason makes of it.
	ErrorMessage string
	MachineType  string
	// Zone is the availability zone; "" for a server without one.
	Zone   string
	Labels map[string]string
	// Metadata are texts that the server itself can read. A server from OpenStack may have
	// its tags there.
	Metadata  map[string]string
	CreatedAt time.Time
	// Maintenance is nil unless its host is to be worked on.
	Maintenance *Maintenance
}

// Maintenance is when a server's host is worked on. STACKIT announces it about a day before.
type Maintenance struct {
	// Status is PLANNED or ONGOING; the API document says that more may come.
	Status   string
	StartsAt time.Time
}

// Server states that the driver tells apart; all others are waited for. The API
// document says that more may come.
const (
	statusCreating = "CREATING"
	statusActive   = "ACTIVE"
	statusError    = "ERROR"
	statusDeleting = "DELETING"
	statusDeleted  = "DELETED"
)

// IsActive says that the server runs.
func (s *Server) IsActive() bool { return s.Status == statusActive }

// IsDeleting says that the server does not exist any more but for a deletion.
func (s *Server) IsDeleting() bool {
	return s.Status == statusDeleting || s.Status == statusDeleted
}

// reason is why the server failed, for texts; spec is the one that it was made with, or nil.
func (s *Server) reason(spec *apis.ProviderSpec) error {
	if s.ErrorMessage == "" {
		return errors.New("no reason given")
	}
	return errors.New(redacted(s.ErrorMessage, s.Name, spec))
}

// ServerRequest is a server to create.
type ServerRequest struct {
	Name   string
	Labels map[string]string
	Spec   *apis.ProviderSpec
}

// NIC is a network interface.
type NIC struct {
	ID        string
	Name      string
	NetworkID string
	// ServerID is "" if the NIC belongs to nothing.
	ServerID string
	// Type is the API document's: "server" or "none", or "metadata" and "gateway", which
	// belong to the network.
	Type             string
	Labels           map[string]string
	IPv4, IPv6       string
	AllowedAddresses []string
}

// IsNetworks says that the NIC belongs to its network, and not to servers.
func (n *NIC) IsNetworks() bool { return n.Type != "" && n.Type != "server" && n.Type != "none" }

// Addresses of the NIC, IPv4 first.
func (n *NIC) Addresses() []string {
	var addresses []string
	for _, text := range []string{n.IPv4, n.IPv6} {
		if _, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, text)
		}
	}
	return addresses
}

// Volume is a disk.
type Volume struct {
	ID   string
	Name string
	// Status is CREATING, AVAILABLE, ATTACHED, DELETING, ERROR or one of many more.
	Status string
	// ServerID is "" if the volume is attached to nothing.
	ServerID string
	// Bootable says whether servers can boot from it; nil if the API does not say.
	Bootable *bool
	Labels   map[string]string
}

// MayBoot says whether a server may have booted from the volume, or will: it is no volume of data.
// While it is being made the API need not know yet.
func (v *Volume) MayBoot() bool {
	return v.Bootable == nil || *v.Bootable || v.Status == statusCreating
}

// apiCall names a call of the API, for errors.go and for texts.
type apiCall string

const (
	callCreateServer apiCall = "creating a server"
	callGetServer    apiCall = "reading a server"
	callListServers  apiCall = "listing servers"
	callDeleteServer apiCall = "deleting a server"
	callConsoleLog   apiCall = "reading a server's console log"
	callListNICs     apiCall = "reading a server's NICs"
	callNetworkNICs  apiCall = "reading a network's NICs"
	callUpdateNIC    apiCall = "updating a NIC"
	callGetNIC       apiCall = "reading a NIC"
	callDeleteNIC    apiCall = "deleting a NIC"
	callListVolumes  apiCall = "listing volumes"
	callGetVolume    apiCall = "reading a volume"
	callDeleteVolume apiCall = "deleting a volume"

	// callRunServer is no call: it is what the API does with a server that it has accepted.
	callRunServer apiCall = "running a server"
)

// isRead says that the call changes nothing.
func (c apiCall) isRead() bool {
	return strings.HasPrefix(string(c), "reading") || strings.HasPrefix(string(c), "listing")
}

// APIError is a failed call of the API.
type APIError struct {
	// Call names the API call.
	Call apiCall
	// StatusCode of the answer, or of the one for which the call was not sent; 0 if there
	// was none.
	StatusCode int
	// Message is the API's own message; "" if the answer was not in the API's
	// form (spi.Message), as those of gateways are: its status decides nothing then. Codes are decided
	// on it; it may repeat userData, and is never shown as it is.
	Message string
	// isOfIaaS is true if the answer was {code,msg}: only then 404 is about what the call names.
	isOfIaaS bool
	// foreignCause is what an answer in another form says of quota and capacity.
	foreignCause string
	// shown is what texts and log show of Message.
	shown string
	// projectID is the call's; "" if the driver does not make it.
	projectID string
	// isExclusive is true if the call creates a server with NICs or volumes that exist.
	isExclusive bool
	// RequestID is the answer's, if it had one. It goes to the log, not into texts:
	// the manager writes a Machine's status whenever its text changes.
	RequestID string
	// Err is the cause if there was no answer, or the call was not sent.
	Err error
}

// Error never repeats a body that is not in the API's form.
func (e *APIError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s: %s", e.Call, causeText(e.Err))
	case e.Message == "":
		return strings.TrimSuffix(fmt.Sprintf("%s: status %d, not the API's answer: %s", e.Call, e.StatusCode, e.foreignCause), ": ")
	case e.StatusCode == http.StatusForbidden && e.projectID != "":
		return fmt.Sprintf("%s in project %s: status %d: %s", e.Call, e.projectID, e.StatusCode, e.shown)
	default:
		return fmt.Sprintf("%s: status %d: %s", e.Call, e.StatusCode, e.shown)
	}
}

// causeText leaves out what changes with every attempt (ports) or helps nobody
// (the URL).
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

// Status returns the status of an answer that is the API's word; 0 if there was none, as after a
// gateway's page.
func (e *APIError) Status() int {
	if e.Message == "" {
		return 0
	}
	return e.StatusCode
}

func (e *APIError) Unwrap() error { return e.Err }
