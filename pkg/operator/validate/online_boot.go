// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

func (k *onlineCheck) checkBoot(ctx context.Context) {
	boot := k.spec.BootVolume
	if boot == nil || boot.Source == nil {
		return
	}
	k.checkPerformanceClass(ctx, boot.PerformanceClass)
	path := "bootVolume.source.id"
	if k.spec.ImageID != "" {
		path = "imageId"
	}
	if !k.accepts(path) || !k.accepts("bootVolume.source") {
		return
	}
	k.checkSource(ctx, path, boot)
}

// checkSource asks for what the disk is made from; the path is that of its ID.
func (k *onlineCheck) checkSource(ctx context.Context, path string, boot *apis.BootVolume) {
	id := boot.Source.ID
	if boot.Size != nil && boot.Source.Type != apis.SourceVolume && k.accepts("bootVolume.size") {
		k.newVolume = *boot.Size
	}
	switch boot.Source.Type {
	case apis.SourceImage:
		if image, found := named(ctx, k, path, account.Image, id); found && k.isAvailable(path, "image "+id, image.GetStatus()) {
			k.checkImage(image)
		}
	case apis.SourceSnapshot:
		if snapshot, found := named(ctx, k, path, account.Snapshot, id); found && k.isAvailable(path, "snapshot "+id, snapshot.GetStatus()) {
			k.checkSnapshot(snapshot)
		}
	case apis.SourceVolume:
		k.checkVolume(ctx, path, id)
	}
}

func (k *onlineCheck) checkPerformanceClass(ctx context.Context, name string) {
	const path = "bootVolume.performanceClass"
	if name == "" || !k.accepts(path) {
		return
	}
	list, err := ask(ctx, k.catalogue, account.PerformanceClasses, "")
	if err != nil {
		k.failed("providerSpec."+path, "performance class "+name, account.PerformanceClasses.Permission, err)
		return
	}
	var names []string
	for _, class := range list.GetItems() {
		if class.Name == name {
			k.fine(k.object, "providerSpec."+path, "performance class "+name+" is there")
			return
		}
		names = append(names, class.Name)
	}
	k.wrong(k.object, "providerSpec."+path, "performance class "+name+" is not there", k.didYouMean(name, names))
}

// checkImage compares what an image asks for with the disk, the machine type and the node.
func (k *onlineCheck) checkImage(image *iaas.Image) {
	const size = "providerSpec.bootVolume.size"
	boot, asked := k.spec.BootVolume, image.GetMinDiskSize()
	switch {
	case !k.accepts("bootVolume.size"):
	case boot.Size == nil:
		k.wrong(k.object, size, "is missing", fmt.Sprintf("a disk that is made from an image needs a size, for this image at least %d", max(asked, 1)))
	case *boot.Size < asked:
		k.wrong(k.object, size, fmt.Sprintf("is %d", *boot.Size), fmt.Sprintf("must be at least %d, which the image asks for", asked))
	default:
		k.fine(k.object, size, fmt.Sprintf("is %d, the image asks for %d", *boot.Size, asked))
	}
	if asked := image.GetMinRam(); k.machineType != nil {
		has := fmt.Sprintf("machine type %s has %d MB of memory", k.machineType.Name, k.machineType.Ram)
		if k.machineType.Ram < asked {
			k.wrong(k.object, "providerSpec.machineType", has, fmt.Sprintf("the image asks for at least %d MB", asked))
		} else {
			k.fine(k.object, "providerSpec.machineType", fmt.Sprintf("%s, the image asks for %d MB", has, asked))
		}
	}
	k.checkArchitecture(image)
}

func (k *onlineCheck) checkSnapshot(snapshot *iaas.Snapshot) {
	size := k.spec.BootVolume.Size
	if size == nil {
		k.newVolume = snapshot.GetSize()
		return
	}
	if k.accepts("bootVolume.size") && *size < snapshot.GetSize() {
		k.wrong(k.object, "providerSpec.bootVolume.size", fmt.Sprintf("is %d", *size), fmt.Sprintf("must be at least %d, the size of the snapshot", snapshot.GetSize()))
	}
}
