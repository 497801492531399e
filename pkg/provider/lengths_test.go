// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// setHeavy makes the class one that is found and read as before, with n objects in its metadata.
func (r *rig) setHeavy(n int) {
	r.class.ProviderSpec = k8sruntime.RawExtension{
		Raw: []byte(`{"region":"eu01","labels":{"` + clusterLabel + `":"shoot-a"},"metadata":{"a":[` +
			strings.Repeat(`{},`, n) + `{}]}}`)}
}

// Each method says what is too long and how long it is, asks the API for nothing, and writes no long line.
func TestWhatIsTooLongIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, and nothing in it is concurrent")
	}
	long := strings.Repeat("r", 400_000)
	const region = "providerSpec.region: Invalid value: has 400000 bytes: must have at most 63, set here or in the Secret"
	inSpec := func(field, value string) func(*rig) {
		return func(r *rig) { r.setSpec(func(spec map[string]any) { spec[field] = value }) }
	}
	for name, row := range map[string]struct {
		change func(*rig)
		says   string
	}{
		"the providerSpec": {func(r *rig) { r.setHeavy(430_000) },
			"providerSpec: Invalid value: has 1290084 bytes: must have at most 524288"},
		"a region": {inSpec("region", long), region},
		"a Secret's region": {func(r *rig) { r.secret.Data["region"] = []byte(long) },
			region},
		"userData": {
			inSpec("userData", long), "providerSpec.userData: Invalid value: has 400000 bytes: must have at most 262144"},
		"a Secret's userData": {func(r *rig) { r.secret.Data["userData"] = []byte(long) },
			"secret.userData: Invalid value: has 400000 bytes: must have at most 262144"},
	} {
		for method, call := range everyCall {
			bubble(t, name+"/"+method, func(t *testing.T) {
				r := newRig(t)
				row.change(r)
				var err error
				log := logAt(t, "2", func() { err = call(r) })
				if method == "ListMachines" && name == "the providerSpec" { // an error would end the manager's orphan run
					wantCode(t, err, codes.OK)
				} else {
					wantReason(t, err, provider.ReasonInvalidInput)
					wantSaid(t, err.Error(), row.says)
				}
				wantSaid(t, log, row.says)
				for line := range strings.Lines(log) {
					if len(line) > 1024 {
						t.Errorf("a line has %d bytes: %.200s", len(line), line)
					}
				}
				r.wantNoCalls()
			})
		}
	}
}

// A class was made heavy after its Machines. In a container of 512 MiB, 60 deletions of a class of 1.3 MB killed the
// sidecar, again and again, before it sent a DELETE: they allocated 7 GiB, and held 1.6 GiB.
func TestDeletionsOfAHeavyClassNeedLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, and nothing in it is concurrent")
	}
	const deletions = 60
	for name, row := range map[string]struct {
		objects         int
		allocated, held int64 // in MiB
		want            codes.Code
	}{
		"too long":       {430_000, 16, 16, codes.InvalidArgument},
		"within 512 KiB": {170_000, 200, 16, codes.OK},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setHeavy(row.objects)
			answers, network := make(chan struct{}), r.transport
			r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
				<-answers
				return network.RoundTrip(request)
			})
			r.restart()
			done := make(chan error, deletions)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range deletions {
				go func() { done <- r.remove(withID(machine(fmt.Sprint("m", i)), providerIDOf(someServerID))) }()
			}
			synctest.Wait()
			runtime.GC()
			runtime.ReadMemStats(&after)
			allocated, held := int64(after.TotalAlloc-before.TotalAlloc)>>20,
				(int64(after.HeapAlloc)-int64(before.HeapAlloc))>>20
			if allocated > row.allocated || held > row.held {
				t.Errorf("%d deletions allocated %d MiB and hold %d MiB, want at most %d and %d", deletions, allocated, held,
					row.allocated, row.held)
			}
			close(answers)
			for range deletions {
				wantCode(t, <-done, row.want)
			}
		})
	}
}
