// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The driver creates a server for a Machine in the mock of the cloud, and deletes it.
func Example() {
	cloud := iaasmock.New(iaasmock.WithoutAuthentication(), iaasmock.WithBootDuration(0), iaasmock.WithDeleteDuration(0))
	api := httptest.NewServer(cloud)
	defer api.Close()
	transport := spi.NewTransport()
	defer transport.CloseIdleConnections()
	clock, stop := newFastClock()
	defer stop()
	leading := clock.Now().Add(-time.Minute) // no other sidecar has worked on younger Machines
	stackit := provider.NewProvider(
		&spi.PluginSPIImpl{Config: spi.Config{Endpoint: api.URL, NoAuth: true}, Transport: transport},
		provider.WithClock(clock), provider.WithActingSince(func() time.Time { return leading }),
	)

	secret := &corev1.Secret{Data: map[string][]byte{
		"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
		"userData": []byte("#cloud-config"),
	}}
	class := &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "worker"},
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{
			"machineType": "c2i.2",
			"imageId": "` + iaasmock.DefaultImageID + `",
			"bootVolume": {"size": 20},
			"networking": {"networkId": "` + iaasmock.DefaultNetworkID + `"},
			"labels": {"kubernetes.io/cluster": "my-cluster"}
		}`)},
	}
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "worker-1", CreationTimestamp: metav1.NewTime(clock.Now())},
	}

	created, err := stackit.CreateMachine(context.Background(),
		&driver.CreateMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	if err != nil {
		panic(err)
	}
	fmt.Println(created.NodeName, created.Addresses[0].Address, "servers:", len(cloud.Servers()))

	machine.Spec.ProviderID = created.ProviderID
	machine.DeletionTimestamp = &metav1.Time{Time: clock.Now()}
	_, err = stackit.DeleteMachine(context.Background(),
		&driver.DeleteMachineRequest{Machine: machine, MachineClass: class, Secret: secret})
	if err != nil {
		panic(err)
	}
	fmt.Println("servers:", len(cloud.Servers()))
	// Output:
	// worker-1 10.0.0.3 servers: 1
	// servers: 0
}

// newFastClock returns a clock that advances as soon as the driver waits for it, so that the example ends within a
// second. Without WithClock the driver uses the real clock.
func newFastClock() (*clocktesting.FakeClock, context.CancelFunc) {
	clock := clocktesting.NewFakeClock(time.Now())
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			if clock.HasWaiters() {
				clock.Step(time.Second)
			}
			<-time.After(time.Millisecond)
		}
	}()
	return clock, stop
}
