// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

func (k *onlineCheck) checkMachineType(ctx context.Context) {
	if !k.accepts("machineType") {
		return
	}
	list, err := ask(ctx, k.catalogue, machineTypes, "")
	if err != nil {
		return
	}
	for _, known := range list.GetItems() {
		if known.Name == k.spec.MachineType {
			k.machineType = &known
			k.checkCapacity()
			return
		}
	}
	k.missing("machineType", "machine type "+k.spec.MachineType)
}

// checkCapacity compares the nodeTemplate with the machine type. Less than that is fine: a
// Node has less memory than its server. With more, the autoscaler makes machines on which the
// Pods that it makes them for do not fit. Of GPUs, the API does not tell.
func (k *onlineCheck) checkCapacity() {
	template := k.class.NodeTemplate
	if template == nil {
		return
	}
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
			k.wrong(k.object, fmt.Sprintf("nodeTemplate.capacity.%s", row.name), "is "+wanted.String(),
				fmt.Sprintf("must be at most %s: machine type %s has %s", row.has, k.machineType.Name, row.inDetails))
		}
	}
}

// checkBoot asks for what the disk is made from, and for its performance class.
func (k *onlineCheck) checkBoot(ctx context.Context) {
	boot := k.spec.BootVolume
	if boot == nil || boot.Source == nil {
		return
	}
	k.checkPerformanceClass(ctx, boot.PerformanceClass)
	path, id := "bootVolume.source.id", boot.Source.ID
	if k.spec.ImageID != "" {
		path = "imageId"
	}
	if !k.accepts(path) || !k.accepts("bootVolume.source") {
		return
	}
	if boot.Size != nil && boot.Source.Type != apis.SourceVolume && k.accepts("bootVolume.size") {
		k.newVolume = *boot.Size
	}
	switch boot.Source.Type {
	case apis.SourceImage:
		if image, found := named(ctx, k, path, image, id); found {
			k.checkImage(path, image)
		}
	case apis.SourceSnapshot:
		named(ctx, k, path, snapshot, id)
	case apis.SourceVolume:
		named(ctx, k, path, volume, id)
	}
}

func (k *onlineCheck) checkPerformanceClass(ctx context.Context, name string) {
	const path = "bootVolume.performanceClass"
	if name == "" || !k.accepts(path) {
		return
	}
	list, err := ask(ctx, k.catalogue, performanceClasses, "")
	if err != nil {
		return
	}
	for _, class := range list.GetItems() {
		if class.Name == name {
			return
		}
	}
	k.missing(path, "performance class "+name)
}

// checkImage compares what an image asks for with the disk, the machine type and the node.
func (k *onlineCheck) checkImage(path string, image *iaas.Image) {
	const size, available = "providerSpec.bootVolume.size", "AVAILABLE"
	if status := image.GetStatus(); status != available {
		k.wrong(k.object, "providerSpec."+path, fmt.Sprintf("image %s is in state %s", image.GetId(), report.Quoted(status)), "must be "+available)
	}
	boot, asked := k.spec.BootVolume, image.GetMinDiskSize()
	switch {
	case !k.accepts("bootVolume.size"):
	case boot.Size == nil:
		k.wrong(k.object, size, "is missing", fmt.Sprintf("a disk that is made from an image needs a size, for this image at least %d", max(asked, 1)))
	case *boot.Size < asked:
		k.wrong(k.object, size, fmt.Sprintf("is %d", *boot.Size), fmt.Sprintf("must be at least %d, which the image asks for", asked))
	}
	if asked := image.GetMinRam(); k.machineType != nil && k.machineType.Ram < asked {
		k.wrong(k.object, "providerSpec.machineType", fmt.Sprintf("machine type %s has %d MB of memory", k.machineType.Name, k.machineType.Ram),
			fmt.Sprintf("the image asks for at least %d MB", asked))
	}
	k.checkArchitecture(image)
}

// kubernetesNames has Kubernetes' names of the API's architectures, where they differ.
var kubernetesNames = map[string]string{"x86": autoscalersArchitecture}

// autoscalersArchitecture is what cluster-autoscaler takes where the nodeTemplate has none.
const autoscalersArchitecture = "amd64"

// checkArchitecture compares the image with the nodeTemplate. Of what architecture a
// machine type is, the API does not tell.
func (k *onlineCheck) checkArchitecture(image *iaas.Image) {
	config := image.GetConfig()
	want, template := config.GetArchitecture(), k.class.NodeTemplate
	if template == nil || want == "" {
		return
	}
	if name, ok := kubernetesNames[want]; ok {
		want = name
	}
	const path = "nodeTemplate.architecture"
	if template.Architecture != nil && *template.Architecture != "" {
		if *template.Architecture != want {
			k.wrong(k.object, path, "is "+report.Quoted(*template.Architecture), "must be "+report.Quoted(want)+", that of the image")
		}
	} else if want != autoscalersArchitecture {
		k.wrong(k.object, path, "is missing", fmt.Sprintf("must be %s, that of the image: cluster-autoscaler takes %s", report.Quoted(want), autoscalersArchitecture))
	}
}

// checkNetwork asks for networks, NICs and security groups.
func (k *onlineCheck) checkNetwork(ctx context.Context) {
	if networking := k.spec.Networking; networking != nil && k.accepts("networking") {
		if id := networking.NetworkID; id != "" && validation.IsUUID(id) {
			named(ctx, k, "networking.networkId", network, id)
		}
		for i, id := range networking.NICIDs {
			named(ctx, k, fmt.Sprintf("networking.nicIds[%d]", i), nic, id)
		}
	}
	for i, group := range k.spec.SecurityGroups {
		path := fmt.Sprintf("securityGroups[%d]", i)
		switch {
		case !k.accepts(path):
		case validation.IsUUID(group):
			named(ctx, k, path, securityGroup, group)
		default:
			k.checkSecurityGroupName(ctx, path, group)
		}
	}
}

// checkRest asks for the rest of what the class names.
func (k *onlineCheck) checkRest(ctx context.Context) {
	for i, id := range k.spec.Volumes {
		if path := fmt.Sprintf("volumes[%d]", i); k.accepts(path) {
			named(ctx, k, path, volume, id)
		}
	}
	if id := k.spec.AffinityGroup; id != "" && k.accepts("affinityGroup") {
		named(ctx, k, "affinityGroup", affinityGroup, id)
	}
	if name := k.spec.KeypairName; name != "" && k.accepts("keypairName") {
		if _, err := ask(ctx, k.catalogue, keyPair, name); provider.IsNotFound(err) {
			k.wrong(k.object, "providerSpec.keypairName", "key pair "+name+" is not there",
				"make it with these credentials, or name one of theirs: key pairs belong to credentials, not to projects")
		}
	}
	for _, mail := range k.spec.ServiceAccountMails {
		k.skip("service account " + mail + " (the IaaS API does not tell of service accounts)")
	}
}

func (k *onlineCheck) checkSecurityGroupName(ctx context.Context, path, name string) {
	list, err := ask(ctx, k.catalogue, securityGroups, "")
	if err != nil {
		return
	}
	count := 0
	for _, group := range list.GetItems() {
		if group.Name == name {
			count++
		}
	}
	switch count {
	case 0:
		k.missing(path, "security group "+name)
	case 1:
	default:
		k.unknown(k.object, "providerSpec."+path, fmt.Sprintf("%d security groups are called %s: which one is used cannot be told", count, name), "name it by its UUID")
	}
}

// demand is how much machines take of the quota.
type demand struct{ vcpus, ram, volumes, gigabytes, nics int64 }

// checkQuota asks whether Replicas more machines of each class of an account fit into what
// is left of its quota.
func (c *catalogue) checkQuota(ctx context.Context) {
	if c.failure != nil {
		return
	}
	var need demand
	for _, check := range c.checks {
		one, known := check.demandOfOne()
		if !known {
			c.skip("quota for " + check.subject() + " (its machine type or the size of its disk is not known)")
			continue
		}
		replicas := max(c.options.Replicas, 1)
		need.vcpus += one.vcpus * replicas
		need.ram += one.ram * replicas
		need.volumes += one.volumes * replicas
		need.gigabytes += one.gigabytes * replicas
		need.nics += one.nics * replicas
	}
	if need == (demand{}) {
		return
	}
	answer, err := ask(ctx, c, quotas, "")
	if err != nil {
		return
	}
	has := answer.GetQuotas()
	for _, row := range []struct {
		name, unit string
		quota      iaas.Quota
		need       int64
	}{
		{"vcpu", "", has.Vcpu, need.vcpus},
		{"ram", " MB", has.Ram, need.ram},
		{"volumes", "", has.Volumes, need.volumes},
		{"gigabytes", " GB", has.Gigabytes, need.gigabytes},
		{"nics", "", has.Nics, need.nics},
	} {
		left := row.quota.Limit - row.quota.Usage
		// OpenStack, which is below the API, writes "no limit" as -1.
		if row.quota.Limit >= 0 && row.need > 0 && row.need > left {
			c.add(report.Wrong, fmt.Sprintf("quota %s: %d%s needed, %d of %d left", row.name, row.need, row.unit, left, row.quota.Limit),
				"raise the quota, or ask for fewer or smaller machines")
		}
	}
}

// demandOfOne returns what one more machine of the class takes, and whether that is known.
func (k *onlineCheck) demandOfOne() (one demand, known bool) {
	boot := k.spec.BootVolume
	if k.machineType == nil || boot == nil || boot.Source == nil {
		return demand{}, false
	}
	one = demand{vcpus: k.machineType.Vcpus, ram: k.machineType.Ram}
	if boot.Source.Type != apis.SourceVolume {
		if k.newVolume == 0 {
			return demand{}, false
		}
		one.volumes, one.gigabytes = 1, k.newVolume
	}
	if k.spec.Networking != nil && len(k.spec.Networking.NICIDs) == 0 {
		one.nics = 1
	}
	return one, true
}
