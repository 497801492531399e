// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"slices"
	"strings"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// checkNodeTemplate has the rule of the manager's validateNodeTemplate (v0.62.1
// machine_util.go:146), which cannot be imported. The manager leaves machines of a class
// that breaks it alone, and says so in its log only. What is there must be what the
// providerSpec makes: Gardener's cluster-autoscaler, which scales a pool up from zero, takes
// the nodeTemplate for the Node, with its capacity, and with instanceType, region, zone and
// architecture as labels.
func (v *validator) checkNodeTemplate(check *classCheck) {
	template, spec := check.class.NodeTemplate, check.inputs.Spec
	if template == nil {
		return
	}
	const remedy = "set it: machine-controller-manager makes no machines of a class whose nodeTemplate lacks it"
	for _, resource := range []corev1.ResourceName{"cpu", "gpu", "memory"} {
		if _, ok := template.Capacity[resource]; !ok {
			v.wrong(check.object, fmt.Sprintf("nodeTemplate.capacity.%s", resource), "is missing", remedy)
		}
	}
	for _, required := range []struct{ name, value, field, want string }{
		{"instanceType", template.InstanceType, "machineType", spec.MachineType},
		{"region", template.Region, "region", spec.Region},
		{"zone", template.Zone, "availabilityZone", spec.AvailabilityZone},
	} {
		switch {
		case required.value == "":
			v.wrong(check.object, "nodeTemplate."+required.name, "is missing", remedy)
		case required.want != "" && required.value != required.want && check.accepts(required.field):
			v.wrong(check.object, "nodeTemplate."+required.name, "is "+report.Quoted(required.value), fmt.Sprintf(
				"must be %s, the %s of the servers: cluster-autoscaler scales up from zero by the nodeTemplate", report.Quoted(required.want), required.field))
		}
	}
}

// checkTemplateZone looks for the nodeTemplate's zone in the region. Where the providerSpec
// has a zone, the two are compared already.
func (k *onlineCheck) checkTemplateZone(zones []string) {
	template := k.class.NodeTemplate
	if template == nil || template.Zone == "" || k.spec.AvailabilityZone != "" {
		return
	}
	if slices.Contains(zones, template.Zone) {
		k.fine(k.object, "nodeTemplate.zone", "zone "+template.Zone+" is there; the providerSpec leaves the zone to the cloud")
		return
	}
	k.wrong(k.object, "nodeTemplate.zone", fmt.Sprintf("zone %s is not there", report.Quoted(template.Zone)),
		fmt.Sprintf("region %s has %s", k.catalogue.account.Region, strings.Join(zones, ", ")))
}

// checkCapacity compares the nodeTemplate with the machine type. Less than that is fine: a
// Node has less memory than its server. With more, the autoscaler makes machines on which the
// Pods that it makes them for do not fit.
func (k *onlineCheck) checkCapacity() {
	template := k.class.NodeTemplate
	if template == nil {
		return
	}
	fits := true
	for _, row := range []struct {
		name      corev1.ResourceName
		has       *resource.Quantity
		inDetails string
	}{
		{corev1.ResourceCPU, resource.NewQuantity(k.machineType.Vcpus, resource.DecimalSI), report.Count(int(k.machineType.Vcpus), "vCPU")},
		// The API says MB and means MiB: its c2i.2 has 4096.
		{corev1.ResourceMemory, resource.NewQuantity(k.machineType.Ram<<20, resource.BinarySI), fmt.Sprintf("%d MB of memory", k.machineType.Ram)},
	} {
		if wanted := template.Capacity[row.name]; wanted.Cmp(*row.has) > 0 {
			fits = false
			k.wrong(k.object, fmt.Sprintf("nodeTemplate.capacity.%s", row.name), "is "+wanted.String(),
				fmt.Sprintf("must be at most %s: machine type %s has %s", row.has, k.machineType.Name, row.inDetails))
		}
	}
	if fits {
		k.fine(k.object, "nodeTemplate.capacity", "cpu and memory are no more than those of the machine type; of GPUs, the API does not tell")
	}
}

// kubernetesNames has Kubernetes' names of the API's architectures, where they differ.
var kubernetesNames = map[string]string{"x86": autoscalersArchitecture}

// autoscalersArchitecture is what cluster-autoscaler takes where the nodeTemplate has none.
const autoscalersArchitecture = "amd64"

// checkArchitecture compares the image with the nodeTemplate. Of what architecture a
// machine type is, the API does not tell.
func (k *onlineCheck) checkArchitecture(image *iaas.Image) {
	template := k.class.NodeTemplate
	config := image.GetConfig()
	want := config.GetArchitecture()
	if template == nil || want == "" {
		return
	}
	if name, ok := kubernetesNames[want]; ok {
		want = name
	}
	const path = "nodeTemplate.architecture"
	given := template.Architecture != nil && *template.Architecture != ""
	switch {
	case !given && want == autoscalersArchitecture:
	case !given:
		k.wrong(k.object, path, "is missing", fmt.Sprintf("must be %s, that of the image: cluster-autoscaler takes %s", report.Quoted(want), autoscalersArchitecture))
	case *template.Architecture != want:
		k.wrong(k.object, path, "is "+report.Quoted(*template.Architecture), "must be "+report.Quoted(want)+", that of the image")
	default:
		k.fine(k.object, path, "is that of the image")
	}
}
