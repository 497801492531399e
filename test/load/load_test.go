// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var duration = flag.Duration("load", 0, "how long to keep the driver busy; 0 means 1 minute, with -short 10 seconds")

var allSidecars = flag.Bool("all-sidecars", false,
	"also run the thousand sidecars that worked before and were idle for an hour: 40 s of one core")

// workers take a Machine each through its life; -short has a fourth of them, which end
// their last lives sooner.
var workers = 60

// reconciles a second is what the driver is kept at.
const reconciles = 50

func TestMain(m *testing.M) {
	flag.Parse()
	if *duration == 0 {
		*duration = time.Minute
		if testing.Short() {
			*duration = 10 * time.Second
		}
	}
	if testing.Short() {
		workers /= 4
	}
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard) // or it makes files in the temporary folder
	os.Exit(m.Run())
}

// rig is a driver, the mock behind a real connection, and what the manager hands
// to the driver.
type rig struct {
	t      *testing.T
	cloud  *iaasmock.Cloud
	api    *httptest.Server
	driver driver.Driver
	class  *v1alpha1.MachineClass
	secret *corev1.Secret
	// turns bound the pace of the driver calls.
	turns <-chan time.Time
	calls atomic.Int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cloud := iaasmock.New(iaasmock.WithBootDuration(300*time.Millisecond), iaasmock.WithDeleteDuration(300*time.Millisecond))
	api := httptest.NewServer(cloud)
	t.Cleanup(api.Close)
	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
	if err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(time.Second / reconciles)
	t.Cleanup(ticker.Stop)
	// The driver's own pool keeps idle connections for 90 s: the traces of a burst
	// would look like a leak.
	pool := &http.Transport{MaxIdleConnsPerHost: workers, IdleConnTimeout: time.Second}
	t.Cleanup(pool.CloseIdleConnections)
	long := time.Now().Add(-time.Hour)
	return &rig{
		t: t, cloud: cloud, api: api, turns: ticker.C,
		driver: provider.NewProvider(&spi.PluginSPIImpl{Config: spi.Config{Endpoint: api.URL, TokenURL: api.URL + "/token"}, Transport: pool},
			provider.WithActingSince(func() time.Time { return long })),
		class: newClass(t), secret: newSecret(key),
	}
}

func newClass(t *testing.T) *v1alpha1.MachineClass {
	t.Helper()
	spec, err := json.Marshal(map[string]any{
		"machineType": iaasmock.DefaultMachineType, "imageId": iaasmock.DefaultImageID,
		"networking": map[string]any{"networkId": iaasmock.DefaultNetworkID},
		"bootVolume": map[string]any{"size": 20}, "allowedAddresses": []string{"100.64.0.0/12"},
		"labels": map[string]any{"kubernetes.io/cluster": "shoot-a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, ProviderSpec: runtime.RawExtension{Raw: spec}}
}

func newSecret(key []byte) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{
		"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
		"serviceAccountKey": key, "userData": []byte("#cloud-config"),
	}}
}

// live takes a Machine from its creation until it is gone.
func (r *rig) live(name string) {
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()}}
	r.status(machine, codes.NotFound)
	r.turn()
	created, err := r.driver.CreateMachine(r.t.Context(), &driver.CreateMachineRequest{Machine: machine, MachineClass: r.class, Secret: r.secret})
	if err != nil {
		r.t.Errorf("CreateMachine: %v", err)
		return
	}
	machine.Spec.ProviderID = created.ProviderID
	r.turn()
	if _, err := r.driver.InitializeMachine(r.t.Context(), &driver.InitializeMachineRequest{Machine: machine, MachineClass: r.class, Secret: r.secret}); err != nil {
		r.t.Errorf("InitializeMachine: %v", err)
	}
	for range 25 { // the pace of reads allows some two lives a second
		r.status(machine, codes.OK)
	}
	now := metav1.Now()
	machine.DeletionTimestamp = &now
	r.turn()
	if _, err := r.driver.DeleteMachine(r.t.Context(), &driver.DeleteMachineRequest{Machine: machine, MachineClass: r.class, Secret: r.secret}); err != nil {
		r.t.Errorf("DeleteMachine: %v", err)
	}
}

func (r *rig) turn() {
	<-r.turns
	r.calls.Add(1)
}

func (r *rig) status(machine *v1alpha1.Machine, want codes.Code) {
	r.turn()
	_, err := r.driver.GetMachineStatus(r.t.Context(), &driver.GetMachineStatusRequest{Machine: machine, MachineClass: r.class, Secret: r.secret})
	if decoded, _ := status.FromError(err); err == nil && want != codes.OK || err != nil && decoded.Code() != want {
		r.t.Errorf("GetMachineStatus: %v, want %s", err, want)
	}
}

// TestNothingGrows compares what the process holds after a third of the time with
// what it holds at the end.
func TestNothingGrows(t *testing.T) {
	r := newRig(t)
	begin, end := time.Now(), time.Now().Add(*duration)
	var lives sync.WaitGroup
	for worker := range workers {
		lives.Go(func() {
			for life := 0; time.Now().Before(end) && !t.Failed(); life++ {
				r.live(fmt.Sprintf("machine-%d-%d", worker, life))
			}
		})
	}
	early := r.sample(*duration / 3)
	late := r.sample(time.Until(end) - time.Second)
	took := time.Since(begin)
	pace := float64(r.calls.Load()) / took.Seconds()
	lives.Wait()
	t.Logf("%.0f driver calls a second for %s\nafter a third: %+v\nat the end:    %+v", pace, took.Round(time.Second), early, late)
	if pace < reconciles/3 {
		t.Errorf("only %.0f driver calls a second", pace)
	}
	late.within(t, early)
	if left := len(r.cloud.Servers()); left > 0 {
		t.Errorf("%d servers are left", left)
	}
}
