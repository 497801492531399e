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
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var duration = flag.Duration("load", 0, "how long to keep the driver busy; 0 means 30 seconds, with -short 10")

// workers take a Machine each through its life; -short has a fourth of them, which end
// their last lives sooner.
var workers = 60

// reconciles a second is what the driver is kept at.
const reconciles = 50

func TestMain(m *testing.M) {
	flag.Parse()
	if *duration == 0 {
		*duration = 30 * time.Second
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

// sidecar is a driver with an account of its own, and what the manager hands to it.
type sidecar struct {
	t      *testing.T
	cloud  *iaasmock.Cloud
	driver driver.Driver
	class  *v1alpha1.MachineClass
	secret *corev1.Secret
	// turns bound the pace of reconciles; without them each begins at once, and again if it fails.
	turns <-chan time.Time
	calls atomic.Int64
}

// newSidecar makes one that has led since then.
func newSidecar(t *testing.T, cloud *iaasmock.Cloud, key []byte, sessions *spi.PluginSPIImpl, since time.Time) *sidecar {
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
	if err := cloud.RegisterServiceAccountKey(iaasmock.DefaultProjectID, key); err != nil {
		t.Fatal(err)
	}
	sessions.Config.TokenURL = sessions.Config.Endpoint + "/token"
	return &sidecar{
		t: t, cloud: cloud,
		driver: provider.NewProvider(sessions, provider.WithActingSince(func() time.Time { return since })),
		class:  &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, ProviderSpec: runtime.RawExtension{Raw: spec}},
		secret: &corev1.Secret{Data: map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
			"serviceAccountKey": key, "userData": []byte("#cloud-config"),
		}},
	}
}

// bringUp does what the manager does until the Machine's server is initialized.
func (s *sidecar) bringUp(name string) driver.CreateMachineRequest {
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)), // as the API server has it
	}}
	ctx, request := s.t.Context(), driver.CreateMachineRequest{Machine: machine, MachineClass: s.class, Secret: s.secret}
	s.insist(func() error {
		asked := driver.GetMachineStatusRequest(request)
		if _, err := s.driver.GetMachineStatus(ctx, &asked); code(err) != codes.NotFound {
			return err
		}
		created, err := s.driver.CreateMachine(ctx, &request)
		if err == nil {
			machine.Spec.ProviderID = created.ProviderID
		}
		return err
	})
	s.insist(func() error {
		initialized := driver.InitializeMachineRequest(request)
		_, err := s.driver.InitializeMachine(ctx, &initialized)
		return err
	})
	return request
}

// insist reconciles again after the manager's retry periods (machineCreateErrorHandler of v0.62.1).
func (s *sidecar) insist(reconcile func() error) {
	if s.turns != nil {
		<-s.turns
	}
	s.calls.Add(1)
	err := reconcile()
	if err == nil {
		return
	}
	if s.turns != nil {
		s.t.Error(err)
		return
	}
	period := machineutils.MediumRetry
	switch told := code(err); {
	case told == codes.ResourceExhausted:
		period = machineutils.LongRetry
	case slices.Contains([]codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable}, told):
		period = machineutils.ShortRetry
	}
	<-time.After(time.Duration(period))
	s.insist(reconcile)
}

func code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	decoded, _ := status.FromError(err)
	return decoded.Code()
}

// live takes a Machine from its creation until it is gone.
func (s *sidecar) live(name string) {
	request := s.bringUp(name)
	for range 25 { // the pace of reads allows some two lives a second
		s.insist(func() error {
			asked := driver.GetMachineStatusRequest(request)
			_, err := s.driver.GetMachineStatus(s.t.Context(), &asked)
			return err
		})
	}
	now := metav1.Now()
	request.Machine.DeletionTimestamp = &now
	s.insist(func() error {
		deleted := driver.DeleteMachineRequest(request)
		_, err := s.driver.DeleteMachine(s.t.Context(), &deleted)
		return err
	})
}

// newBusySidecar has the mock behind a real connection, and a bounded pace.
func newBusySidecar(t *testing.T) *sidecar {
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
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: api.URL}, Transport: pool}
	s := newSidecar(t, cloud, key, sessions, time.Now().Add(-time.Hour))
	s.turns = ticker.C
	return s
}

// TestNothingGrows compares what the process holds after a third of the time with
// what it holds at the end.
func TestNothingGrows(t *testing.T) {
	s := newBusySidecar(t)
	begin, end := time.Now(), time.Now().Add(*duration)
	var lives sync.WaitGroup
	for worker := range workers {
		lives.Go(func() {
			for life := 0; time.Now().Before(end) && !t.Failed(); life++ {
				s.live(fmt.Sprintf("machine-%d-%d", worker, life))
			}
		})
	}
	early := s.sample(*duration / 3)
	late := s.sample(time.Until(end) - time.Second)
	took := time.Since(begin)
	calls := s.calls.Load()
	lives.Wait()
	t.Logf("%d reconciles in %s\nafter a third: %+v\nat the end:    %+v", calls, took.Round(time.Second), early, late)
	if calls < reconciles { // a driver that does nothing does not grow
		t.Errorf("only %d reconciles in %s", calls, took)
	}
	late.within(t, early)
	if left := len(s.cloud.Servers()); left > 0 {
		t.Errorf("%d servers are left", left)
	}
}

// sample is what a process holds while it is at work.
type sample struct {
	heapKB, goroutines, files int
}

// sample is the least of several looks after the wait: the work itself comes and
// goes, what is never given back stays. The mock's own memory of calls is dropped
// before.
func (s *sidecar) sample(after time.Duration) sample {
	<-time.After(after - looks*pause)
	var least sample
	for look := range looks {
		<-time.After(pause)
		s.cloud.ResetCalls()
		goruntime.GC()
		var memory goruntime.MemStats
		goruntime.ReadMemStats(&memory)
		seen := sample{int(memory.HeapAlloc >> 10), goruntime.NumGoroutine(), openFiles()}
		if look == 0 {
			least = seen
		}
		least = sample{min(least.heapKB, seen.heapKB), min(least.goroutines, seen.goroutines), min(least.files, seen.files)}
	}
	return least
}

const (
	looks = 10
	pause = 200 * time.Millisecond
)

// openFiles counts file descriptors, connections included; 0 where the system does
// not show them.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// within reports what has grown by more than the work's own ups and downs.
func (s sample) within(t *testing.T, before sample) {
	t.Helper()
	for _, row := range []struct {
		what           string
		before, now    int
		percent, spare int
	}{
		{"heap in KB", before.heapKB, s.heapKB, 20, 2048},
		{"goroutines", before.goroutines, s.goroutines, 30, 40},
		{"file descriptors", before.files, s.files, 30, 40},
	} {
		if limit := row.before*(100+row.percent)/100 + row.spare; row.now > limit {
			t.Errorf("%s: %d after a third of the time, %d at the end", row.what, row.before, row.now)
		}
	}
}
