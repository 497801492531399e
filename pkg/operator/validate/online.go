// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

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
)

// catalogue is what the API has in an account. Each thing is read once, however many classes
// name it.
type catalogue struct {
	*validator
	account *account.Account
	checks  []*onlineCheck
	answers map[string]answer
	// failure is why a read failed; after it nothing more is asked, and the classes untold are not
	// checked to the end. notChecked is what the account may not read, or the API does not tell.
	failure    error
	untold     []string
	notChecked []string
}

// answer is the API's to a read.
type answer struct {
	value any
	err   error
}

// errUntold says that a thing could not be looked for; why is reported once for all.
var errUntold = errors.New("could not be told")

// checkOnline asks the API for what the classes name. Classes of one account share what is
// read.
func (v *validator) checkOnline(ctx context.Context) {
	var catalogues []*catalogue
	for _, class := range v.classes {
		in, err := v.accountOf(class)
		switch {
		case errors.Is(err, errNoSecretForOnline):
			v.withoutSecret(class.object, "", "could not be checked online: "+err.Error(), "")
			continue
		case err != nil:
			v.unknown(class.object, "", "could not be checked online: "+err.Error(), "")
			continue
		}
		at := slices.IndexFunc(catalogues, func(known *catalogue) bool {
			return known.account.Session == in.Session && known.account.Region == in.Region
		})
		if at < 0 {
			at, catalogues = len(catalogues), append(catalogues, &catalogue{validator: v, account: in, answers: map[string]answer{}})
		}
		catalogues[at].check(ctx, class)
	}
	if len(v.classes) == 0 {
		v.add(report.Finding{Verdict: report.Unknown, Subject: "online", Found: "the API was not asked: there is no MachineClass"})
	}
	for _, c := range catalogues {
		c.checkQuota(ctx)
		if c.failure != nil {
			_, text := provider.Classify(c.failure)
			c.add(report.Unknown, fmt.Sprintf("%s; not checked to the end: %s", text, report.Some(c.untold)), "try again later")
		}
		if len(c.notChecked) > 0 {
			c.add(report.Hint, "not checked: "+strings.Join(c.notChecked, ", "), "")
		}
	}
}

// check asks for all that a class names and that is not wrong already.
func (c *catalogue) check(ctx context.Context, class *classCheck) {
	k := &onlineCheck{classCheck: class, catalogue: c, spec: class.inputs.Spec}
	c.checks = append(c.checks, k)
	if k.checkRegion(ctx) {
		k.checkMachineType(ctx)
		k.checkBoot(ctx)
		k.checkNetwork(ctx)
		k.checkRest(ctx)
	}
	if c.failure != nil {
		c.untold = append(c.untold, class.subject())
	}
}

var errNoSecretForOnline = errors.New("its Secret is not given; add its file with -f, name one with --secret, or set all of " + account.AllThree)

// accountOf returns the account of a class: that of its own Secrets or the one that is named
// in their place, or, where these are not given, of flags and environment.
func (v *validator) accountOf(class *classCheck) (*account.Account, error) {
	secret := class.secret
	var names []string
	for _, secret := range class.secrets {
		names = append(names, secret.subject())
	}
	origin := strings.Join(names, ", ")
	if class.secrets == nil {
		var err error
		if secret, origin, err = v.DirectSecret(); err != nil {
			return nil, err
		}
		if secret == nil {
			return nil, errNoSecretForOnline
		}
	}
	return v.Open(secret, class.inputs.Spec.Region, origin)
}

// add reports something of the account.
func (c *catalogue) add(verdict report.Verdict, found, remedy string) {
	c.validator.add(report.Finding{
		Verdict: verdict, Subject: fmt.Sprintf("project %s in %s", c.account.Session.ProjectID, c.account.Region),
		Found: report.OneLine(found), Remedy: remedy,
	})
}

// skip notes once what is not checked.
func (c *catalogue) skip(what string) {
	if !slices.Contains(c.notChecked, what) {
		c.notChecked = append(c.notChecked, what)
	}
}

// read is one of the API's, with the permission that the API document names; "" if a token is
// enough.
type read[T any] struct {
	what, permission string
	call             func(ctx context.Context, api iaas.DefaultAPI, project, region, id string) (T, error)
}

// request is one of the SDK's.
type request[T any] interface{ Execute() (T, error) }

func listOf[T any, R request[T]](what, permission string, call func(api iaas.DefaultAPI, ctx context.Context, project, region string) R) read[T] {
	return read[T]{what, permission, func(ctx context.Context, api iaas.DefaultAPI, project, region, _ string) (T, error) {
		return call(api, ctx, project, region).Execute()
	}}
}

func oneOf[T any, R request[T]](what, permission string, call func(api iaas.DefaultAPI, ctx context.Context, project, region, id string) R) read[T] {
	return read[T]{what, permission, func(ctx context.Context, api iaas.DefaultAPI, project, region, id string) (T, error) {
		return call(api, ctx, project, region, id).Execute()
	}}
}

var (
	zones = read[*iaas.AvailabilityZoneListResponse]{"availability zones", "", func(ctx context.Context, api iaas.DefaultAPI, _, region, _ string) (*iaas.AvailabilityZoneListResponse, error) {
		return api.ListAvailabilityZones(ctx, region).Execute()
	}}
	keyPair = read[*iaas.Keypair]{"key pair", "", func(ctx context.Context, api iaas.DefaultAPI, _, _, name string) (*iaas.Keypair, error) {
		return api.GetKeyPair(ctx, name).Execute()
	}}
	machineTypes       = listOf("machine types", "iaas.machine-type.list", iaas.DefaultAPI.ListMachineTypes)
	performanceClasses = listOf("performance classes", "iaas.volume-performance-class.list", iaas.DefaultAPI.ListVolumePerformanceClasses)
	quotas             = listOf("quotas", "iaas.quota.get", iaas.DefaultAPI.ListQuotas)
	securityGroups     = listOf("security groups", "iaas.security-group.list", iaas.DefaultAPI.ListSecurityGroups)
	securityGroup      = oneOf("security group", "iaas.security-group.get", iaas.DefaultAPI.GetSecurityGroup)
	affinityGroup      = oneOf("affinity group", "iaas.affinity-group.get", iaas.DefaultAPI.GetAffinityGroup)
	network            = oneOf("network", "iaas.network.get", iaas.DefaultAPI.GetNetwork)
	nic                = oneOf("NIC", "iaas.nic.get", iaas.DefaultAPI.GetProjectNIC)
	image              = oneOf("image", "iaas.image.get", iaas.DefaultAPI.GetImage)
	snapshot           = oneOf("snapshot", "iaas.snapshot.get", iaas.DefaultAPI.GetSnapshot)
	volume             = oneOf("volume", "iaas.volume.get", iaas.DefaultAPI.GetVolume)
)

// ask makes a read, unless it was made before. The error is one by which provider.IsNotFound
// tells that the thing is not there, or errUntold.
func ask[T any](ctx context.Context, c *catalogue, of read[*T], id string) (*T, error) {
	what := strings.TrimSpace(of.what + " " + id)
	if known, ok := c.answers[what]; ok {
		value, _ := known.value.(*T)
		return value, known.err
	}
	if c.failure != nil {
		return nil, errUntold
	}
	value, _, err := account.Ask(ctx, c.account, what, func(ctx context.Context) (*T, error) {
		return of.call(ctx, c.account.Session.API, c.account.Session.ProjectID, c.account.Region, id)
	})
	if err == nil && value == nil {
		err = provider.NewAPIError("reading "+what, nil, errors.New("the answer is empty"))
	}
	switch {
	case err == nil, provider.IsNotFound(err):
	case account.Status(err) == http.StatusForbidden:
		c.skip(what + " (" + cmp.Or(of.permission, "the service account may not read it") + ")")
		err = errUntold
	default:
		c.failure, err = err, errUntold
	}
	c.answers[what] = answer{value, err}
	return value, err
}

// onlineCheck asks the API for what one class names.
type onlineCheck struct {
	*classCheck
	*catalogue
	spec *apis.ProviderSpec
	// machineType is nil if it is not known.
	machineType *iaas.MachineType
	// newVolume is the size of the boot volume that is made for a machine, in GB; 0 if
	// none is made or it is not known.
	newVolume int64
}

// named asks for a thing that the class names by its ID, and reports whether it is there.
func named[T any](ctx context.Context, k *onlineCheck, path string, of read[*T], id string) (*T, bool) {
	value, err := ask(ctx, k.catalogue, of, id)
	if provider.IsNotFound(err) {
		k.missing(path, of.what+" "+id)
	}
	return value, err == nil
}

// missing reports a thing that the class names and the API does not have.
func (k *onlineCheck) missing(path, thing string) {
	k.wrong(k.object, "providerSpec."+path, thing+" is not there",
		fmt.Sprintf("must be one that project %s can use in region %s", k.account.Session.ProjectID, k.account.Region))
}

// checkRegion says whether the region is there, or at least not known to be missing.
func (k *onlineCheck) checkRegion(ctx context.Context) bool {
	region := k.account.Region
	list, err := ask(ctx, k.catalogue, zones, "")
	if provider.IsNotFound(err) {
		found, remedy := "region "+region+" is not there", "must be a region of the API, such as eu01"
		if k.regionOfSecret() && k.Region == "" {
			k.reportKey(k.classCheck, apis.SecretRegion, found, remedy)
		} else {
			k.wrong(k.object, "providerSpec.region", found, remedy)
		}
		return false
	}
	if err != nil {
		return true
	}
	has := fmt.Sprintf("region %s has %s", region, strings.Join(list.GetItems(), ", "))
	zone, path := k.spec.AvailabilityZone, "providerSpec.availabilityZone"
	if zone == "" && k.class.NodeTemplate != nil { // else the two are compared already
		zone, path = k.class.NodeTemplate.Zone, "nodeTemplate.zone"
	}
	if zone != "" && !slices.Contains(list.GetItems(), zone) {
		k.wrong(k.object, path, fmt.Sprintf("zone %s is not there", report.Quoted(zone)), has)
	}
	return true
}
