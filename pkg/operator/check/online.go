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

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// Online checks with the API that regions, zones, machine types, images, networks and key pairs of the account's
// classes exist and fit. It changes nothing.
func Online(ctx context.Context, in *account.Account) report.Findings {
	c := &online{Account: in, answers: map[string]answer{}}
	var unchecked []string
	for _, class := range in.Classes {
		c.class = class
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
	// class is nil for findings about the account.
	class *account.Class
	found report.Findings
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
		c.unread = append(c.unread, what+" (no permission for "+cmp.Or(permission, "this read")+")")
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
	zone := c.class.Inputs.Spec.AvailabilityZone
	if all := zones.GetItems(); zone != "" && !slices.Contains(all, zone) {
		c.add(report.Wrong, "providerSpec.availabilityZone",
			fmt.Sprintf("zone %s does not exist in region %s, only %s", zone, c.Region, strings.Join(all, ", ")))
	}
	return true
}

func (c *online) checkMachineType(ctx context.Context) {
	const path = "providerSpec.machineType"
	types, err := list(ctx, c, "machine types", "iaas.machine-type.list", iaas.DefaultAPI.ListMachineTypes)
	if err != nil || refuses(c.class.Inputs, path) {
		return
	}
	name := c.class.Inputs.Spec.MachineType
	if !slices.ContainsFunc(types.GetItems(), func(known iaas.MachineType) bool { return known.Name == name }) {
		c.missing(path, "machine type "+name)
	}
}

// checkBoot checks the image that the server boots from.
func (c *online) checkBoot(ctx context.Context) {
	spec := c.class.Inputs.Spec
	boot := spec.BootVolume
	if boot == nil {
		boot = &apis.BootVolume{Source: &apis.BootVolumeSource{Type: apis.SourceImage, ID: spec.ImageID}}
	}
	if boot.Source == nil || boot.Source.Type != apis.SourceImage || !validation.IsUUID(boot.Source.ID) {
		return
	}
	path := "bootVolume.source.id"
	if spec.ImageID != "" {
		path = "imageId"
	}
	if image := named(ctx, c, path, "image", "iaas.image.get", boot.Source.ID, iaas.DefaultAPI.GetImage); image != nil {
		c.checkImage("providerSpec."+path, image, boot)
	}
}

// checkImage checks an image's state, and that it fits on the disk.
func (c *online) checkImage(path string, image *iaas.Image, boot *apis.BootVolume) {
	if status := image.GetStatus(); status != "AVAILABLE" {
		c.add(report.Wrong, path, fmt.Sprintf("image %s is in state %q; must be AVAILABLE", image.GetId(), status))
	}
	if least := image.GetMinDiskSize(); boot.Size != nil && *boot.Size < least &&
		!refuses(c.class.Inputs, "providerSpec.bootVolume.size") {
		c.add(report.Wrong, "providerSpec.bootVolume.size",
			fmt.Sprintf("is %d GB: must be at least %d, which the image requires", *boot.Size, least))
	}
}

// checkRest checks network and key pair.
func (c *online) checkRest(ctx context.Context) {
	spec := c.class.Inputs.Spec
	if spec.Networking != nil && !refuses(c.class.Inputs, "providerSpec.networking") {
		named(ctx, c, "networking.networkId", "network", "iaas.network.get", spec.Networking.NetworkID,
			iaas.DefaultAPI.GetNetwork)
	}
	if name := spec.KeypairName; name != "" && !refuses(c.class.Inputs, "providerSpec.keypairName") {
		if _, err := ask(ctx, c, "key pair "+name, "", func(ctx context.Context) (*iaas.Keypair, error) {
			return c.Session.API.GetKeyPair(ctx, name).Execute()
		}); provider.IsNotFound(err) {
			c.add(report.Wrong, "providerSpec.keypairName",
				"key pair "+name+" does not exist for these credentials: key pairs belong to a user, not to a project")
		}
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
			"), which the driver needs; "+report.RowOf(string(provider.ReasonNoPermission)).Remedy)
	}
}
