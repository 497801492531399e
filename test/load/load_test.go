// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
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

func TestMain(m *testing.M) {
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
}

// newSidecar makes one that has led since then.
func newSidecar(
	t *testing.T, cloud *iaasmock.Cloud, key []byte, sessions *spi.PluginSPIImpl, since time.Time,
) *sidecar {
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
	sessions.Config.TokenURL = sessions.Config.Endpoint + "/oauth/v2/token"
	return &sidecar{
		t: t, cloud: cloud,
		driver: provider.NewProvider(sessions, provider.WithActingSince(func() time.Time { return since })),
		class: &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "pool"},
			ProviderSpec: runtime.RawExtension{Raw: spec}},
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
	err := reconcile()
	if err == nil {
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
	<-time.After(time.Minute)
	s.insist(func() error {
		asked := driver.GetMachineStatusRequest(request)
		_, err := s.driver.GetMachineStatus(s.t.Context(), &asked)
		return err
	})
	now := metav1.Now()
	request.Machine.DeletionTimestamp = &now
	s.insist(func() error {
		deleted := driver.DeleteMachineRequest(request)
		_, err := s.driver.DeleteMachine(s.t.Context(), &deleted)
		return err
	})
}

// TestNothingGrows takes other Machines through their lives each hour, and compares what the process
// holds in the hour after the third with what it holds at the end: the driver forgets after an hour.
func TestNothingGrows(t *testing.T) {
	const first = 3
	hours, machines := 12, 60
	if testing.Short() {
		hours, machines = 6, 20
	}
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(t, newKey(t))
		<-time.After(leads)
		var before, now sample
		for hour := range hours {
			next := time.After(time.Hour)
			var lives sync.WaitGroup
			for i := range machines {
				lives.Go(func() { s.live(fmt.Sprintf("machine-%d-%d", hour, i)) })
			}
			lives.Wait()
			s.collectOrphans()
			<-next
			now = s.sample()
			if hour == first {
				before = now
			}
		}
		t.Logf("hour %d: %+v, at the end: %+v", first, before, now)
		if now.goroutines > before.goroutines || now.heapKB > before.heapKB+256 { // some tens of KB come and go
			t.Errorf("it held %+v, and holds %+v", before, now)
		}
		if left := len(s.cloud.Servers()); left > 0 {
			t.Errorf("%d servers are left", left)
		}
	})
}

// sample is what a process holds that does nothing.
type sample struct{ heapKB, goroutines int }

// sample drops the mock's own memory of calls before.
func (s *sidecar) sample() sample {
	s.cloud.ResetCalls()
	synctest.Wait()
	goruntime.GC()
	var memory goruntime.MemStats
	goruntime.ReadMemStats(&memory)
	return sample{int(memory.HeapAlloc >> 10), goruntime.NumGoroutine()}
}
