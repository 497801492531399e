// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
)

// BenchmarkReads is what one read costs that answers so many who wait.
func BenchmarkReads(b *testing.B) {
	for _, waiters := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			servers := make([]Server, waiters)
			for i := range servers {
				servers[i] = Server{ID: fmt.Sprint(i), Labels: map[string]string{StackitMachineLabel: fmt.Sprint(i)}}
			}
			var lists atomic.Int64
			scope := newReads[serverList, []Server](clock.RealClock{}, 0, rate.NewLimiter(rate.Inf, 1), func(context.Context) (serverList, error) {
				lists.Add(1)
				return newServerList(servers), nil
			})
			b.ReportAllocs()
			times := 0
			for b.Loop() {
				times++
				// Without the gap: its time is not what is measured.
				scope.mu.Lock()
				scope.schedule.began = time.Time{}
				scope.mu.Unlock()
				askAll(b, scope, waiters)
			}
			reads := float64(lists.Load()) / float64(times)
			b.ReportMetric(reads, "lists/op")
			if reads > 3 { // those who come late need another
				b.Errorf("%.2f lists for %d readers", reads, waiters)
			}
		})
	}
}

func askAll(b *testing.B, scope *serverReads, waiters int) {
	b.Helper()
	var all sync.WaitGroup
	due := time.Now().Add(time.Duration(waiters) * 10 * time.Microsecond)
	for i := range waiters {
		all.Go(func() {
			answer := scope.ask(b.Context(), &question[serverList, []Server]{
				reader: reader{due: due},
				find:   func(list serverList) ([]Server, bool) { return list.all[i : i+1], true },
			})
			if answer.err != nil || answer.value[0].ID != fmt.Sprint(i) {
				b.Errorf("reader %d is told %+v", i, answer)
			}
		})
	}
	all.Wait()
}

// BenchmarkDecodeInputs is what every driver call does first.
func BenchmarkDecodeInputs(b *testing.B) {
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "class-a"}, ProviderSpec: runtime.RawExtension{Raw: []byte(`{
		"machineType": "c2i.2", "imageId": "30000000-0000-4000-8000-000000000001", "region": "eu01", "availabilityZone": "eu01-1",
		"networking": {"networkId": "20000000-0000-4000-8000-000000000001"}, "bootVolume": {"size": 50, "performanceClass": "storage_premium_perf4"},
		"allowedAddresses": ["100.64.0.0/12"], "securityGroups": ["40000000-0000-4000-8000-000000000001"],
		"labels": {"kubernetes.io/cluster": "shoot--my--cluster"}}`)}}
	secret := &corev1.Secret{Data: map[string][]byte{
		"project-id": []byte("10000000-0000-4000-8000-000000000001"), "serviceaccount.json": []byte("{}"), "userData": []byte("#cloud-config"),
	}}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-1"}}
	b.ReportAllocs()
	for b.Loop() {
		if in := decodeInputs(machine, class, secret, true); len(in.others) > 0 {
			b.Fatal(in.others)
		}
	}
}
