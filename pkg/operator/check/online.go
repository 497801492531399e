// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// Online checks with the API that what the classes of one account name exists and fits. It changes nothing.
func Online(ctx context.Context, in *account.Account, classes []*account.Class) report.Findings {
	c := &online{Account: in, answers: map[string]answer{}}
	var unchecked []string
	for _, class := range classes {
		c.class, c.machineType = class, nil
		if c.checkRegion(ctx) {
			c.checkMachineType(ctx)
			c.checkBoot(ctx)
			c.checkRest(ctx)
		}
		if c.failure != nil {
			unchecked = append(unchecked, class.Subject())
		}
	}
	c.class = nil
	c.checkAccess(ctx)
	if c.failure != nil {
		verdict, text := account.Judge(c.failure)
		c.add(verdict, "", "not fully checked: "+report.Some(unchecked)+": "+text)
	}
	if len(c.unread) > 0 {
		c.add(report.Hint, "", "not checked: "+strings.Join(c.unread, ", "))
	}
	return c.found
}

// online is one call of Online.
type online struct {
	*account.Account
	// class is nil for findings about the account; machineType is the class's, nil if unknown.
	class       *account.Class
	machineType *iaas.MachineType
	found       report.Findings
	// answers are those of the reads: each is made once, however many classes name the resource.
	answers map[string]answer
	// failure is the error of the first read that failed; after it no more reads are made. unread lists what the account
	// may not read, or the API does not show.
	failure error
	unread  []string
	// allowed and refused mean that the API allowed, or refused, a read that needs a permission in the project.
	allowed, refused bool
}

type answer struct {
	value any
	err   error
}

func (c *online) add(verdict report.Verdict, path, text string) {
	subject := c.String()
	if c.class != nil {
		subject = c.class.Subject()
	}
	c.found = append(c.found,
		report.Finding{Verdict: verdict, Subject: subject, Field: path, Found: report.OneLine(text)})
}

// skip records once what is not checked.
func (c *online) skip(what string) {
	if !slices.Contains(c.unread, what) {
		c.unread = append(c.unread, what)
	}
}

// errUnchecked means that a resource could not be checked; the reason is reported once for all of them.
var errUnchecked = errors.New("could not be checked")

// ask makes a read, or returns the answer of an earlier one. permission is that in the API document; "" if any token
// will do. The error is errUnchecked, or one for which provider.IsNotFound or provider.IsPlaceMissing is true.
func ask[T any](
	ctx context.Context, c *online, what, permission string, call func(context.Context) (*T, error),
) (*T, error) {
	if known, ok := c.answers[what]; ok {
		value, _ := known.value.(*T)
		return value, known.err
	}
	if c.failure != nil {
		return nil, errUnchecked
	}
	value, _, err := account.Ask(ctx, c.Account, what, call)
	if err == nil && value == nil { // the JSON value null
		err = provider.NewAPIError("reading "+what, nil, errors.New("the answer is empty"))
	}
	switch {
	case err == nil, provider.IsNotFound(err), permission == "" && provider.IsPlaceMissing(err):
		c.allowed = c.allowed || permission != ""
	case account.Status(err) == http.StatusForbidden:
		c.refused = c.refused || permission != ""
		c.skip(what + " (no permission for " + cmp.Or(permission, "this read") + ")")
		err = errUnchecked
	default:
		c.failure, err = err, errUnchecked
	}
	c.answers[what] = answer{value, err}
	return value, err
}

// request is a request of the SDK.
type request[T any] interface{ Execute() (*T, error) }

// list reads a list of the account's region.
func list[T any, R request[T]](ctx context.Context, c *online, what, permission string,
	call func(api iaas.DefaultAPI, ctx context.Context, project, region string) R) (*T, error) {
	return ask(ctx, c, what, permission, func(ctx context.Context) (*T, error) {
		return call(c.Session.API, ctx, c.Session.ProjectID, c.Region).Execute()
	})
}

// named checks a resource that the class names by its ID; nil if it does not exist or is unknown.
func named[T any, R request[T]](ctx context.Context, c *online, path, what, permission, id string,
	call func(api iaas.DefaultAPI, ctx context.Context, project, region, id string) R) *T {
	path = "providerSpec." + path
	if id == "" || refuses(c.class.Inputs, path) {
		return nil
	}
	what += " " + id
	value, err := ask(ctx, c, what, permission, func(ctx context.Context) (*T, error) {
		return call(c.Session.API, ctx, c.Session.ProjectID, c.Region, id).Execute()
	})
	if provider.IsNotFound(err) {
		c.missing(path, what)
	}
	if err != nil {
		return nil
	}
	return value
}

func (c *online) missing(path, thing string) {
	c.add(report.Wrong, path, fmt.Sprintf("%s does not exist; must be one that project %s can use in region %s", thing,
		c.Session.ProjectID, c.Region))
}

// checkRegion checks region and zone. It reports whether the region exists; true if that is unknown.
func (c *online) checkRegion(ctx context.Context) bool {
	read := func(ctx context.Context) (*iaas.AvailabilityZoneListResponse, error) {
		return c.Session.API.ListAvailabilityZones(ctx, c.Region).Execute()
	}
	zones, err := ask(ctx, c, "availability zones", "", read)
	if provider.IsPlaceMissing(err) {
		c.add(report.Wrong, "providerSpec.region", "region "+c.Region+" does not exist; must be one such as eu01")
		return false
	}
	if err != nil {
		return true
	}
	zone, path := c.class.Inputs.Spec.AvailabilityZone, "providerSpec.availabilityZone"
	if template := c.class.NodeTemplate; zone == "" && template != nil { // otherwise the two were compared before
		zone, path = template.Zone, "nodeTemplate.zone"
	}
	if all := zones.GetItems(); zone != "" && !slices.Contains(all, zone) {
		c.add(report.Wrong, path, fmt.Sprintf("zone %s does not exist in region %s, only %s", zone, c.Region,
			strings.Join(all, ", ")))
	}
	return true
}

// checkMachineType sets the machine type, and compares the nodeTemplate's capacity with it. Less is fine: a Node has
// less memory than its server. With more, the autoscaler creates machines on which the pending Pods do not fit.
func (c *online) checkMachineType(ctx context.Context) {
	const path = "providerSpec.machineType"
	types, err := list(ctx, c, "machine types", "iaas.machine-type.list", iaas.DefaultAPI.ListMachineTypes)
	if err != nil || refuses(c.class.Inputs, path) {
		return
	}
	name := c.class.Inputs.Spec.MachineType
	at := slices.IndexFunc(types.GetItems(), func(known iaas.MachineType) bool { return known.Name == name })
	if at < 0 {
		c.missing(path, "machine type "+name)
		return
	}
	c.machineType = &types.GetItems()[at]
	if c.class.NodeTemplate == nil {
		return
	}
	for name, has := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: resource.NewQuantity(c.machineType.Vcpus, resource.DecimalSI),
		// The API's MB are MiB: its c2i.2 has 4096.
		corev1.ResourceMemory: resource.NewQuantity(c.machineType.Ram<<20, resource.BinarySI),
	} {
		if wanted := c.class.NodeTemplate.Capacity[name]; wanted.Cmp(*has) > 0 {
			c.add(report.Wrong, "nodeTemplate.capacity."+string(name), fmt.Sprintf("is %s: must be at most %s, the capacity of "+
				"machine type %s", wanted.String(), has, c.machineType.Name))
		}
	}
}

// checkBoot checks what the server boots from.
func (c *online) checkBoot(ctx context.Context) {
	spec := c.class.Inputs.Spec
	boot := spec.BootVolume
	if boot == nil {
		boot = &apis.BootVolume{Source: &apis.BootVolumeSource{Type: apis.SourceImage, ID: spec.ImageID}}
	}
	c.checkPerformanceClass(ctx, boot.PerformanceClass)
	if boot.Source == nil || !validation.IsUUID(boot.Source.ID) {
		return
	}
	const path = "bootVolume.source.id"
	switch id := boot.Source.ID; boot.Source.Type {
	case apis.SourceImage:
		at := path
		if spec.ImageID != "" {
			at = "imageId"
		}
		if image := named(ctx, c, at, "image", "iaas.image.get", id, iaas.DefaultAPI.GetImage); image != nil {
			c.checkImage("providerSpec."+at, image, boot)
		}
	case apis.SourceSnapshot:
		named(ctx, c, path, "snapshot", "iaas.snapshot.get", id, iaas.DefaultAPI.GetSnapshot)
	case apis.SourceVolume:
		named(ctx, c, path, "volume", "iaas.volume.get", id, iaas.DefaultAPI.GetVolume)
	}
}

func (c *online) checkPerformanceClass(ctx context.Context, name string) {
	const path = "providerSpec.bootVolume.performanceClass"
	if name == "" || refuses(c.class.Inputs, path) {
		return
	}
	all, err := list(ctx, c, "performance classes", "iaas.volume-performance-class.list",
		iaas.DefaultAPI.ListVolumePerformanceClasses)
	if err == nil && !slices.ContainsFunc(all.GetItems(),
		func(known iaas.VolumePerformanceClass) bool { return known.Name == name }) {
		c.missing(path, "performance class "+name)
	}
}

// checkImage compares what an image requires with the disk, the machine type and the nodeTemplate. The API does not
// show a machine type's architecture.
func (c *online) checkImage(path string, image *iaas.Image, boot *apis.BootVolume) {
	if status := image.GetStatus(); status != "AVAILABLE" {
		c.add(report.Wrong, path, fmt.Sprintf("image %s is in state %q; must be AVAILABLE", image.GetId(), status))
	}
	if least := image.GetMinDiskSize(); boot.Size != nil && *boot.Size < least &&
		!refuses(c.class.Inputs, "providerSpec.bootVolume.size") {
		c.add(report.Wrong, "providerSpec.bootVolume.size",
			fmt.Sprintf("is %d GB: must be at least %d, which the image requires", *boot.Size, least))
	}
	if least := image.GetMinRam(); c.machineType != nil && c.machineType.Ram < least {
		c.add(report.Wrong, "providerSpec.machineType", fmt.Sprintf(
			"machine type %s has %d MB of memory, the image requires %d", c.machineType.Name, c.machineType.Ram, least))
	}
	config := image.GetConfig()
	want, template := strings.Replace(config.GetArchitecture(), "x86", "amd64", 1), c.class.NodeTemplate
	if template == nil || want == "" {
		return
	}
	has := "amd64" // cluster-autoscaler's default
	if template.Architecture != nil && *template.Architecture != "" {
		has = *template.Architecture
	}
	if has != want {
		c.add(report.Wrong, "nodeTemplate.architecture",
			fmt.Sprintf("is %s, which is also the default: must be %s, the image's architecture", has, want))
	}
}

// checkRest checks the other resources that the class names.
func (c *online) checkRest(ctx context.Context) {
	spec := c.class.Inputs.Spec
	if spec.Networking != nil && !refuses(c.class.Inputs, "providerSpec.networking") {
		named(ctx, c, "networking.networkId", "network", "iaas.network.get", spec.Networking.NetworkID,
			iaas.DefaultAPI.GetNetwork)
		for i, id := range spec.Networking.NICIDs {
			named(ctx, c, fmt.Sprintf("networking.nicIds[%d]", i), "NIC", "iaas.nic.get", id, iaas.DefaultAPI.GetProjectNIC)
		}
	}
	for i, group := range spec.SecurityGroups {
		c.checkSecurityGroup(ctx, fmt.Sprintf("securityGroups[%d]", i), group)
	}
	for i, id := range spec.Volumes {
		named(ctx, c, fmt.Sprintf("volumes[%d]", i), "volume", "iaas.volume.get", id, iaas.DefaultAPI.GetVolume)
	}
	named(ctx, c, "affinityGroup", "affinity group", "iaas.affinity-group.get", spec.AffinityGroup,
		iaas.DefaultAPI.GetAffinityGroup)
	if name := spec.KeypairName; name != "" && !refuses(c.class.Inputs, "providerSpec.keypairName") {
		if _, err := ask(ctx, c, "key pair "+name, "", func(ctx context.Context) (*iaas.Keypair, error) {
			return c.Session.API.GetKeyPair(ctx, name).Execute()
		}); provider.IsNotFound(err) {
			c.add(report.Wrong, "providerSpec.keypairName",
				"key pair "+name+" does not exist for these credentials: key pairs belong to a user, not to a project")
		}
	}
	for _, mail := range spec.ServiceAccountMails {
		c.skip("service account " + mail + " (the IaaS API does not show service accounts)")
	}
}

// checkSecurityGroup checks a security group, which a class may name by ID or name.
func (c *online) checkSecurityGroup(ctx context.Context, path, group string) {
	if validation.IsUUID(group) {
		named(ctx, c, path, "security group", "iaas.security-group.get", group, iaas.DefaultAPI.GetSecurityGroup)
		return
	}
	path = "providerSpec." + path
	all, err := list(ctx, c, "security groups", "iaas.security-group.list", iaas.DefaultAPI.ListSecurityGroups)
	if err != nil || refuses(c.class.Inputs, path) {
		return
	}
	count := 0
	for i := range all.GetItems() {
		if all.GetItems()[i].Name == group {
			count++
		}
	}
	if count == 0 {
		c.missing(path, "security group "+group)
	} else if count > 1 {
		c.add(report.Unknown, path, fmt.Sprintf("%d security groups have the name %s: name one by its ID", count, group))
	}
}

// checkAccess reports an account without access to the project, whose reads were all refused: STACKIT answers 403 for
// the project of another account, and for one that does not exist. An account with the driver's permissions alone may
// read none of what a class names, but it may list servers.
func (c *online) checkAccess(ctx context.Context) {
	if c.allowed || !c.refused {
		return
	}
	const permission = "iaas.server.list"
	if _, err := list(ctx, c, "servers", permission, iaas.DefaultAPI.ListServers); err != nil && c.failure == nil {
		c.add(report.Wrong, "", string(provider.ReasonNoPermission)+": the service account may not list servers ("+permission+
			") either, which the driver needs; "+report.RowOf(string(provider.ReasonNoPermission)).Remedy)
	}
}
