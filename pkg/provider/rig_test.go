// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	bootDuration   = 10 * time.Second
	deleteDuration = 5 * time.Second
	clusterLabel   = "kubernetes.io/cluster"
)

// rig is the driver, over the real SDK and real HTTP, against the mock. All of
// them live by one clock, which jumps ahead whenever somebody waits for it.
type rig struct {
	t       testing.TB
	clock   *clocktesting.FakeClock
	cloud   *iaasmock.Cloud
	api     http.Handler
	server  *httptest.Server
	driver  driver.Driver
	key     []byte
	class   *v1alpha1.MachineClass
	secret  *corev1.Secret
	options []provider.Option
}

func newRig(t testing.TB, options ...iaasmock.Option) *rig {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	r := &rig{t: t, clock: clock}
	r.runClock() // before the server, so that it runs on while that closes
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithClock(clock), iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
	}, options...)...)
	api := watched(t, cloud)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	r.cloud, r.api, r.server, r.key = cloud, api, server, key
	r.options = []provider.Option{provider.WithClock(clock), provider.WithActingSince(func() time.Time { return clock.Now().Add(-time.Hour) })}
	r.restart()
	r.makeInputs()
	return r
}

// watched is the cloud with all its calls held against the API document, but for
// benchmarks, which measure the driver.
func watched(t testing.TB, cloud *iaasmock.Cloud) http.Handler {
	if test, ok := t.(*testing.T); ok {
		return conformance.Watch(test, cloud)
	}
	return cloud
}

// secondNICID is a NIC in a dual-stack network.
const secondNICID = "70000000-0000-4000-8000-0000000000ff"

// newRigWithTwoNICs is a rig whose class connects a server through two NICs that
// exist, and allows an address on both.
func newRigWithTwoNICs(t *testing.T) *rig {
	t.Helper()
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.NICs = append(catalogue.NICs, iaasmock.NIC{ID: secondNICID, ProjectID: iaasmock.DefaultProjectID,
		Region: iaasmock.DefaultRegion, NetworkID: iaasmock.DefaultDualStackNetworkID})
	r := newRig(t, iaasmock.WithCatalogue(catalogue))
	r.setSpec(func(spec map[string]any) {
		spec["networking"] = map[string]any{"nicIds": []any{secondNICID, iaasmock.DefaultNICID}}
		spec["allowedAddresses"] = []any{"100.64.0.0/12"}
	})
	return r
}

// makeInputs makes the MachineClass and the Secret.
func (r *rig) makeInputs() {
	r.t.Helper()
	r.class = &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "class-a", Namespace: "default"}}
	r.setSpec(nil)
	r.secret = &corev1.Secret{Data: map[string][]byte{
		"projectId":         []byte(iaasmock.DefaultProjectID),
		"serviceAccountKey": r.key,
		"region":            []byte(iaasmock.DefaultRegion),
		"userData":          []byte("#cloud-config from the Secret"),
	}}
}

// restart replaces the driver by a new one that knows nothing, as after a crash.
func (r *rig) restart(options ...provider.Option) {
	r.driver = provider.NewProvider(&spi.PluginSPIImpl{
		Config: spi.Config{Endpoint: r.server.URL, TokenURL: r.server.URL + "/token"},
		Clock:  r.clock,
	}, append(r.options, options...)...)
}

// runClock lets time pass while, and only while, somebody waits for it.
func (r *rig) runClock() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				if r.clock.HasWaiters() {
					r.clock.Step(250 * time.Millisecond)
				}
			}
		}
	}()
	r.t.Cleanup(func() {
		// What is still under way when the server closes ends in its own time.
		quiet := 0
		r.eventually(func() bool {
			if quiet++; r.clock.HasWaiters() {
				quiet = 0
			}
			return quiet > 5
		})
		close(stop)
		<-stopped
	})
}

// setSpec sets the class's providerSpec: a small valid one, changed.
func (r *rig) setSpec(change func(spec map[string]any)) {
	r.t.Helper()
	spec := map[string]any{
		"machineType": iaasmock.DefaultMachineType,
		"imageId":     iaasmock.DefaultImageID,
		"networking":  map[string]any{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume":  map[string]any{"size": 20},
		"labels":      map[string]any{clusterLabel: "shoot-a"},
	}
	if change != nil {
		change(spec)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	r.class.ProviderSpec = runtime.RawExtension{Raw: raw}
}

func machine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// deleted is the Machine once somebody deleted it.
func (*rig) deleted(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = m.DeepCopy()
	now := metav1.Now()
	m.DeletionTimestamp = &now
	return m
}

func withID(m *v1alpha1.Machine, providerID string) *v1alpha1.Machine {
	m = m.DeepCopy()
	m.Spec.ProviderID = providerID
	return m
}

func (r *rig) create(m *v1alpha1.Machine) (*driver.CreateMachineResponse, error) {
	return r.driver.CreateMachine(r.t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

func (r *rig) mustCreate(m *v1alpha1.Machine) *driver.CreateMachineResponse {
	r.t.Helper()
	response, err := r.create(m)
	if err != nil {
		r.t.Fatalf("CreateMachine: %v", err)
	}
	return response
}

func (r *rig) initialize(m *v1alpha1.Machine) (*driver.InitializeMachineResponse, error) {
	return r.driver.InitializeMachine(r.t.Context(), &driver.InitializeMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

func (r *rig) status(m *v1alpha1.Machine) (*driver.GetMachineStatusResponse, error) {
	return r.driver.GetMachineStatus(r.t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

func (r *rig) delete(m *v1alpha1.Machine) error {
	_, err := r.driver.DeleteMachine(r.t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
	return err
}

func (r *rig) list() map[string]string {
	r.t.Helper()
	response, err := r.driver.ListMachines(r.t.Context(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
	if err != nil {
		r.t.Fatalf("ListMachines: %v", err)
	}
	return response.MachineList
}

// onlyServer returns the one server that exists.
func (r *rig) onlyServer() iaasmock.Server {
	r.t.Helper()
	servers := r.cloud.Servers()
	if len(servers) != 1 {
		r.t.Fatalf("the cloud has %d servers, want 1: %+v", len(servers), servers)
	}
	return servers[0]
}

// eventually waits for what another goroutine brings about.
func (r *rig) eventually(condition func() bool) {
	r.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(30 * time.Second); !condition(); {
		select {
		case <-ticker.C:
		case <-deadline:
			r.t.Fatal("did not come about")
		}
	}
}

// wantNothingLeft checks that nothing is left of what the driver made.
func (r *rig) wantNothingLeft() {
	r.t.Helper()
	if servers := r.cloud.Servers(); len(servers) != 0 {
		r.t.Errorf("servers left: %+v", servers)
	}
	for _, nic := range r.cloud.NICs() {
		if nic.MadeByServer {
			r.t.Errorf("NIC left: %+v", nic)
		}
	}
	for _, volume := range r.cloud.Volumes() {
		if volume.MadeByServer {
			r.t.Errorf("volume left: %+v", volume)
		}
	}
}

// wantCode checks what the manager reads out of the error.
func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	decoded, ok := status.FromError(err)
	if !ok {
		t.Fatalf("the manager cannot decode the error: %v", err)
	}
	if err == nil && want != codes.OK || err != nil && decoded.Code() != want {
		t.Fatalf("the manager is told %v, want %s", err, want)
	}
}

// session is somebody else's client of the same project.
func (r *rig) session() *spi.Session {
	r.t.Helper()
	var sessions spi.SessionProviderInterface = r.inMemorySessions()
	if r.server != nil {
		sessions = &spi.PluginSPIImpl{Config: spi.Config{Endpoint: r.server.URL, TokenURL: r.server.URL + "/token"}, Clock: r.clock}
	}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(r.key)})
	if err != nil {
		r.t.Fatal(err)
	}
	return session
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
