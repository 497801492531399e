// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"go.uber.org/goleak"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// What somebody else does in the project, and the network of a rig.

// session is somebody else's client of the same project.
func (r *rig) session() *spi.Session {
	r.t.Helper()
	if r.other == nil {
		sessions := r.sessions()
		sessions.Limiter = nil
		var err error
		r.other, err = sessions.Session(
			spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(keys().first)})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return r.other
}

// serverOf returns the ID of the server in the Machine's ProviderID.
func serverOf(m *v1alpha1.Machine) string {
	return m.Spec.ProviderID[strings.LastIndex(m.Spec.ProviderID, "/")+1:]
}

// setStatus puts a server into a state.
func (r *rig) setStatus(serverID, status, message string) {
	r.t.Helper()
	if err := r.cloud.SetServerStatus(serverID, status, message); err != nil {
		r.t.Fatal(err)
	}
}

// removeServer lets a server be gone at once.
func (r *rig) removeServer(serverID string) {
	r.t.Helper()
	if err := r.cloud.RemoveServer(serverID); err != nil {
		r.t.Fatal(err)
	}
}

// deleteByHand deletes a server by another's hand.
func (r *rig) deleteByHand(serverID string) {
	r.t.Helper()
	if err := r.session().API.DeleteServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, serverID).
		Execute(); err != nil {
		r.t.Fatal(err)
	}
}

// allow sets a NIC's allowed addresses by another's hand.
func (r *rig) allow(nicID string, addresses ...string) {
	r.t.Helper()
	var payload iaas.UpdateNicPayload
	for i := range addresses {
		payload.AllowedAddresses = append(payload.AllowedAddresses, iaas.StringAsAllowedAddressesInner(&addresses[i]))
	}
	if _, err := r.session().API.UpdateNic(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion,
		iaasmock.DefaultNetworkID, nicID).UpdateNicPayload(payload).Execute(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) nicOf(server iaasmock.Server) iaasmock.NIC {
	r.t.Helper()
	for _, nic := range r.cloud.NICs() {
		if nic.ServerID == server.ID {
			return nic
		}
	}
	r.t.Fatalf("server %s has no NIC", server.ID)
	return iaasmock.NIC{}
}

// makeServer makes a server as the driver would, but by another's hand.
func (r *rig) makeServer(name string, change func(labels map[string]any)) string {
	r.t.Helper()
	labels := map[string]any{
		provider.StackitMachineLabel: name, provider.StackitMachineClassLabel: r.class.Name, clusterLabel: "shoot-a",
	}
	if change != nil {
		change(labels)
	}
	network, image, remove := iaasmock.DefaultNetworkID, iaasmock.DefaultImageID, true
	size := int64(20)
	server, err := r.session().API.CreateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(iaas.CreateServerPayload{
			Name: name, MachineType: iaasmock.DefaultMachineType, Labels: labels,
			BootVolume: &iaas.BootVolume{Size: &size, DeleteOnTermination: &remove,
				Source: &iaas.BootVolumeSource{Type: "image", Id: image}},
			Networking: iaas.CreateServerPayloadAllOfNetworking{
				CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}},
		}).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	return server.GetId()
}

// makeRunning makes a server that runs, as a predecessor may have left it, and returns
// its ProviderID.
func (r *rig) makeRunning(name string) string {
	r.t.Helper()
	id := r.makeServer(name, nil)
	if err := r.cloud.SetServerStatus(id, iaasmock.StatusActive, ""); err != nil {
		r.t.Fatal(err)
	}
	return providerIDOf(id)
}

// relabel changes a server's labels by another's hand; nil removes one.
func (r *rig) relabel(serverID string, labels map[string]any) {
	r.t.Helper()
	if _, err := r.session().API.UpdateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, serverID).
		UpdateServerPayload(iaas.UpdateServerPayload{Labels: labels}).Execute(); err != nil {
		r.t.Fatal(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// endpoint is the API's address in every rig's network.
const (
	endpoint = "http://iaas.invalid"
	tokenURL = endpoint + "/oauth/v2/token"
)

// network carries connections in memory. A goroutine that waits for the other side
// blocks durably (net.Pipe consists of channels), so that a bubble's time passes
// while net/http waits for an answer.
type network struct {
	connections chan net.Conn
	closed      chan struct{}
	close       sync.Once
}

var _ net.Listener = (*network)(nil)

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case connection := <-n.connections:
		return connection, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.close.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (*network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// dial connects a client, whatever the address.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.connections <- server:
		return client, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
}

// serve lets a real http.Server answer over the network, and returns a real client's
// transport. Both end with the test.
func serve(t testing.TB, handler http.Handler) *http.Transport {
	t.Helper()
	n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	transport := &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 500}
	go func() { _ = server.Serve(n) }()
	t.Cleanup(func() {
		if inBubble() {
			<-time.After(10 * time.Minute) // what is under way ends in its own time
		}
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return transport
}

// inBubble says whether time is virtual: there it begins in the year 2000.
func inBubble() bool { return time.Now().Year() < 2020 }

// What takes long is made once, and before any bubble, whose time would stand still
// for others who wait for it.
func TestMain(m *testing.M) {
	keys()
	conformance.Load()
	goleak.VerifyTestMain(m)
}

// testKeys are service-account keys, which every rig's cloud knows.
type testKeys struct{ first, rotated, secondProject []byte }

var keys = sync.OnceValue(func() testKeys {
	cloud := iaasmock.New()
	newKey := func(projectID string) []byte {
		key, err := cloud.NewServiceAccountKey(projectID)
		if err != nil {
			panic(err)
		}
		return key
	}
	return testKeys{newKey(iaasmock.DefaultProjectID), newKey(iaasmock.DefaultProjectID), newKey(iaasmock.SecondProjectID)}
})
