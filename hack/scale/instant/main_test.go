// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestMachineIsThereAtOnceAndForgottenWhenDeleted(t *testing.T) {
	g := NewWithT(t)
	cloud := iaasmock.New(iaasmock.WithoutAuthentication(), iaasmock.WithBootDuration(time.Hour),
		iaasmock.WithDeleteDuration(time.Hour))
	api := httptest.NewServer(cloud)
	defer api.Close()
	d, err := newInstantDriver(api.URL)
	g.Expect(err).NotTo(HaveOccurred())
	ctx := context.Background()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-1"}}
	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}}
	other := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}}

	_, err = d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m})
	answered, _ := status.FromError(err)
	g.Expect(answered.Code()).To(Equal(codes.NotFound))

	made, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cloud.Servers()).
		To(ConsistOf(And(HaveField("Name", "machine-1"), HaveField("Status", iaasmock.StatusCreating))))
	g.Expect(made).To(HaveValue(Equal(driver.CreateMachineResponse{
		ProviderID: "stackit://" + iaasmock.DefaultProjectID + "/" + cloud.Servers()[0].ID, NodeName: "machine-1"})))

	again, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(made))
	g.Expect(d.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class})).
		To(HaveField("MachineList", Equal(map[string]string{made.ProviderID: "machine-1"})))
	g.Expect(d.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: other})).To(HaveField("MachineList", BeEmpty()))

	for range 2 {
		_, err = d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(cloud.Servers()).To(ConsistOf(HaveField("Status", iaasmock.StatusDeleting)))
	g.Expect(cloud.CallCounts()).To(Equal(map[string]int{"CreateServer": 1, "DeleteServer": 1}))
}
