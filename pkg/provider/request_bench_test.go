// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
