// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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

// rig is the driver over the real SDK and the real net/http against the mock, with a
// network in memory. A test makes it within a bubble (testing/synctest): there time
// passes by itself while everybody waits, and <-time.After waits for as long as it says.
type rig struct {
	t         testing.TB
	cloud     *iaasmock.Cloud
	transport http.RoundTripper
	driver    driver.Driver
	class     *v1alpha1.MachineClass
	secret    *corev1.Secret
	options   []provider.Option
	registry  *prometheus.Registry // the driver's metrics
	other     *spi.Session
	// own is the server that the Machine must have in the end; theirs are others', which nobody may touch.
	own    string
	theirs []string
}

func newRig(t testing.TB, options ...iaasmock.Option) *rig {
	t.Helper()
	if _, isTest := t.(*testing.T); isTest && !inBubble() {
		t.Fatal("this test waits in real time: put it into a bubble")
	}
	cloud := iaasmock.New(append([]iaasmock.Option{
		iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
	}, options...)...)
	for projectID, key := range map[string][]byte{iaasmock.DefaultProjectID: keys().first,
		iaasmock.SecondProjectID: keys().secondProject} {
		if err := cloud.RegisterServiceAccountKey(projectID, key); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t, cloud: cloud, transport: serve(t, watched(t, cloud))}
	began := time.Now()
	r.options = []provider.Option{provider.WithActingSince(func() time.Time { return began.Add(-time.Hour) })}
	r.restart()
	r.makeInputs()
	return r
}

// bubble runs a test of its own in virtual time: a row of a table.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// watched is the cloud with all its calls held against the API document, but for
// benchmarks, which measure the driver.
func watched(t testing.TB, cloud *iaasmock.Cloud) http.Handler {
	if test, ok := t.(*testing.T); ok {
		return conformance.Watch(test, cloud)
	}
	return cloud
}

// makeInputs makes the MachineClass and the Secret.
func (r *rig) makeInputs() {
	r.t.Helper()
	r.class = &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "class-a", Namespace: "default"}}
	r.setSpec(nil)
	r.secret = &corev1.Secret{Data: map[string][]byte{
		"projectId":         []byte(iaasmock.DefaultProjectID),
		"serviceAccountKey": keys().first,
		"region":            []byte(iaasmock.DefaultRegion),
		"userData":          []byte("#cloud-config from the Secret"),
	}}
}

// restart replaces the driver by a new one that knows nothing, as after a crash.
func (r *rig) restart(options ...provider.Option) {
	r.registry = prometheus.NewPedanticRegistry()
	options = slices.Concat(r.options, []provider.Option{provider.WithMetrics(r.registry)}, options)
	r.driver = provider.NewProvider(r.sessions(), options...)
}

// restartNow replaces the driver by one that leads from a second later on: a predecessor
// may have worked on all Machines that there are.
func (r *rig) restartNow() {
	<-time.After(time.Second)
	since := time.Now()
	r.restart(provider.WithActingSince(func() time.Time { return since }))
}

// provider is the driver with the methods that the manager's interface does not have.
func (r *rig) provider() *provider.Provider {
	r.t.Helper()
	p, ok := r.driver.(*provider.Provider)
	if !ok {
		r.t.Fatalf("NewProvider returns a %T", r.driver)
	}
	return p
}

// sessions are those of a new process, with the rate limit that the sidecar has.
func (r *rig) sessions() *spi.PluginSPIImpl {
	return &spi.PluginSPIImpl{
		Config:    spi.Config{Endpoint: endpoint, TokenURL: tokenURL, IdentityURL: tokenURL},
		Limiter:   rate.NewLimiter(50, 100),
		Transport: r.transport,
	}
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

// machine is a Machine that was made now.
func machine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		// As the API server has it.
		Name: name, Namespace: "default", CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}
}

// orphan is what the orphan collector hands in.
func orphan(name, serverID string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1alpha1.MachineSpec{ProviderID: providerIDOf(serverID)}}
}

// providerIDOf is the ProviderID that the driver gives to a server.
func providerIDOf(serverID string) string {
	return "stackit://" + iaasmock.DefaultProjectID + "/" + serverID
}

// deleted is the Machine once somebody deleted it. It had a Node, whose conditions it has.
func (*rig) deleted(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = m.DeepCopy()
	m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	now := metav1.Now()
	m.DeletionTimestamp = &now
	return m
}

// withUID is the Machine with a UID, as the API server gives one to each object of a name.
func withUID(m *v1alpha1.Machine, uid string) *v1alpha1.Machine {
	m.UID = types.UID(uid)
	return m
}

func withID(m *v1alpha1.Machine, providerID string) *v1alpha1.Machine {
	m = m.DeepCopy()
	m.Spec.ProviderID = providerID
	return m
}

func (r *rig) create(m *v1alpha1.Machine) (*driver.CreateMachineResponse, error) {
	return r.driver.CreateMachine(r.t.Context(),
		&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

// createFor calls CreateMachine with a deadline, at which the process may end.
func (r *rig) createFor(m *v1alpha1.Machine, d time.Duration) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	_, err := r.driver.CreateMachine(ctx,
		&driver.CreateMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
	return err
}

func (r *rig) mustCreate(m *v1alpha1.Machine) *driver.CreateMachineResponse {
	r.t.Helper()
	response, err := r.create(m)
	if err != nil {
		r.t.Fatalf("CreateMachine: %v", err)
	}
	return response
}

// createAsManager calls CreateMachine as the manager does.
func (r *rig) createAsManager(m *v1alpha1.Machine) (response *driver.CreateMachineResponse, err error) {
	err = insist(func() error { response, err = r.create(m); return err })
	return response, err
}

// insist calls as the manager does: 5 s after each answer that asks for it, for an hour at most.
func insist(call func() error) error {
	for end := time.Now().Add(time.Hour); ; {
		err := call()
		decoded, _ := status.FromError(err)
		if err == nil || time.Now().After(end) ||
			!slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}, decoded.Code()) {
			return err
		}
		<-time.After(5 * time.Second)
	}
}

// mustCreateAsManager is createAsManager until there is a server.
func (r *rig) mustCreateAsManager(m *v1alpha1.Machine) *driver.CreateMachineResponse {
	r.t.Helper()
	response, err := r.createAsManager(m)
	if err != nil {
		r.t.Fatalf("CreateMachine: %v", err)
	}
	return response
}

// startCreate calls CreateMachine, and returns where its error will come.
func (r *rig) startCreate(m *v1alpha1.Machine) <-chan error {
	return start(func() error { return r.createErr(m) })
}

// start calls call by itself, and returns where its error will come.
func start(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

func (r *rig) initialize(m *v1alpha1.Machine) (*driver.InitializeMachineResponse, error) {
	return r.driver.InitializeMachine(r.t.Context(),
		&driver.InitializeMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

func (r *rig) status(m *v1alpha1.Machine) (*driver.GetMachineStatusResponse, error) {
	return r.driver.GetMachineStatus(r.t.Context(),
		&driver.GetMachineStatusRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
}

func (r *rig) delete(m *v1alpha1.Machine) error {
	_, err := r.driver.DeleteMachine(r.t.Context(),
		&driver.DeleteMachineRequest{Machine: m, MachineClass: r.class, Secret: r.secret})
	return err
}

// remove deletes the Machine's server once somebody deleted the Machine.
func (r *rig) remove(m *v1alpha1.Machine) error { return r.delete(r.deleted(m)) }

func (r *rig) mustRemove(m *v1alpha1.Machine) {
	r.t.Helper()
	r.mustDelete(r.deleted(m))
}

func (r *rig) mustDelete(m *v1alpha1.Machine) {
	r.t.Helper()
	if err := r.delete(m); err != nil {
		r.t.Fatalf("DeleteMachine: %v", err)
	}
}

// createErr, initErr and statusErr call the method, and return its error alone.
func (r *rig) createErr(m *v1alpha1.Machine) error { _, err := r.create(m); return err }

func (r *rig) initErr(m *v1alpha1.Machine) error { _, err := r.initialize(m); return err }

func (r *rig) statusErr(m *v1alpha1.Machine) error { _, err := r.status(m); return err }

func (r *rig) listErr() error {
	_, err := r.driver.ListMachines(r.t.Context(), &driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
	return err
}

// everyCall has the methods of the driver, called for machine m1.
var everyCall = map[string]func(*rig) error{
	"CreateMachine":     func(r *rig) error { return r.createErr(machine("m1")) },
	"InitializeMachine": func(r *rig) error { return r.initErr(machine("m1")) },
	"GetMachineStatus":  func(r *rig) error { return r.statusErr(machine("m1")) },
	"DeleteMachine":     func(r *rig) error { return r.remove(machine("m1")) },
	"ListMachines":      (*rig).listErr,
}

func (r *rig) list() map[string]string {
	r.t.Helper()
	response, err := r.driver.ListMachines(r.t.Context(),
		&driver.ListMachinesRequest{MachineClass: r.class, Secret: r.secret})
	if err != nil {
		r.t.Fatalf("ListMachines: %v", err)
	}
	return response.MachineList
}

// someServerID is the ID of no server.
const someServerID = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"

// onlyServer returns the one server that exists.
func (r *rig) onlyServer() iaasmock.Server {
	r.t.Helper()
	servers := r.cloud.Servers()
	if len(servers) != 1 {
		r.t.Fatalf("the cloud has %d servers, want 1: %+v", len(servers), servers)
	}
	return servers[0]
}

// wantOnly checks that one server exists, that it is this one, and that nobody asked for its deletion.
func (r *rig) wantOnly(serverID string) {
	r.t.Helper()
	if left := r.onlyServer(); left.ID != serverID || left.Status == iaasmock.StatusDeleting {
		r.t.Errorf("server %s is left %s, want %s untouched", left.ID, left.Status, serverID)
	}
}

// wantCalls checks how many calls of the operation there were.
func (r *rig) wantCalls(operation string, want int) {
	r.t.Helper()
	if got := r.cloud.CallCounts()[operation]; got != want {
		r.t.Errorf("%s: %d calls, want %d", operation, got, want)
	}
}

func (r *rig) wantNoCalls() {
	r.t.Helper()
	if calls := r.cloud.CallCounts(); len(calls) > 0 {
		r.t.Errorf("made %v, want no calls", calls)
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
	isRetried := want == codes.Unavailable && strings.Contains(decoded.Message(), "; next: ") // with a fallback
	if err != nil &&
		(provider.ReasonIn(err.Error()) == "" || provider.ReasonIn(err.Error()).Code() != want && !isRetried) {
		t.Fatalf("the manager is told %v, want a reason that has the code %s", err, want)
	}
}

// wantReason is wantCode, and checks the reason, too.
func wantReason(t *testing.T, err error, want provider.Reason) {
	t.Helper()
	wantCode(t, err, want.Code())
	if got := provider.ReasonIn(err.Error()); got != want {
		t.Errorf("the manager is told %v, want the reason %s", err, want)
	}
}

// wantWithin checks that what began then did not take longer.
func wantWithin(t *testing.T, began time.Time, atMost time.Duration) {
	t.Helper()
	if took := time.Since(began); took > atMost {
		t.Errorf("it took %s, want at most %s", took, atMost)
	}
}

// wantSaid checks that a text says all that.
func wantSaid(t *testing.T, text string, says ...string) {
	t.Helper()
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// reasonOf is the reason that the manager is told.
func reasonOf(err error) provider.Reason {
	if err == nil {
		return ""
	}
	return provider.ReasonIn(err.Error())
}
