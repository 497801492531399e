// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

var errNoSecretForOnline = errors.New("its Secret is not given; add its file with -f, name one with --secret, or set all of " + account.AllThree)

// checkOnline asks the API for what the classes name. Classes of one account share what is
// read.
func (v *validator) checkOnline(ctx context.Context) {
	var catalogues []*catalogue
	checks := map[*catalogue][]*onlineCheck{}
	for _, class := range v.classes {
		if ctx.Err() != nil {
			return
		}
		account, err := v.accountOf(class)
		if errors.Is(err, errNoSecretForOnline) {
			v.withoutSecret(class.object, "", "could not be checked online: "+err.Error(), "")
			continue
		}
		if err != nil {
			v.unknown(class.object, "", "could not be checked online: "+err.Error(), "")
			continue
		}
		at := slices.IndexFunc(catalogues, func(known *catalogue) bool {
			return known.account.Session == account.Session && known.account.Region == account.Region
		})
		if at < 0 {
			at = len(catalogues)
			catalogues = append(catalogues, &catalogue{account: account, progress: v.progress, answers: map[string]answer{}})
		}
		check := &onlineCheck{validator: v, classCheck: class, catalogue: catalogues[at], spec: class.inputs.Spec}
		check.run(ctx)
		checks[check.catalogue] = append(checks[check.catalogue], check)
	}
	if len(v.classes) == 0 {
		v.add(false, report.Finding{
			Verdict: report.Unknown, Subject: "online", Found: "the API was not asked: there is no MachineClass",
		})
	}
	if v.options.Replicas == 0 {
		return
	}
	for _, catalogue := range catalogues {
		v.checkQuota(ctx, catalogue, checks[catalogue])
	}
}

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
		if secret, origin, err = v.SecretOfEnvironment(); err != nil {
			return nil, err
		}
		if secret == nil {
			return nil, errNoSecretForOnline
		}
	}
	return v.Open(secret, cmp.Or(v.Overrides.Region.Value, class.inputs.Spec.Region), origin)
}

// run asks for all that the class names and that is not wrong already.
func (k *onlineCheck) run(ctx context.Context) {
	if !k.checkRegion(ctx) {
		return
	}
	k.checkMachineType(ctx)
	k.checkBoot(ctx)
	k.checkNetworking(ctx)
	k.checkSecurityGroups(ctx)
	k.checkVolumes(ctx)
	if id := k.spec.AffinityGroup; id != "" && k.accepts("affinityGroup") {
		named(ctx, k, "affinityGroup", account.AffinityGroup, id)
	}
	if name := k.spec.KeypairName; name != "" && k.accepts("keypairName") {
		k.checkKeypair(ctx, name)
	}
	for i, mail := range k.spec.ServiceAccountMails {
		k.unknown(k.object, fmt.Sprintf("providerSpec.serviceAccountMails[%d]", i),
			fmt.Sprintf("whether service account %s is there and may be used cannot be told: the IaaS API does not say", mail), "")
	}
}

// checkKeypair asks for a key pair of the credentials: key pairs belong to no project.
func (k *onlineCheck) checkKeypair(ctx context.Context, name string) {
	const path = "keypairName"
	thing := "key pair " + name + " of these credentials (key pairs belong to credentials, not to projects)"
	if _, err := ask(ctx, k.catalogue, account.KeyPair, name); provider.IsNotFound(err) {
		k.wrong(k.object, "providerSpec."+path, thing+" is not there", "make it with these credentials, or name one of theirs")
	} else {
		k.isThere(path, thing, "", err)
	}
}

// checkRegion says whether the region is there, or at least not known to be missing.
func (k *onlineCheck) checkRegion(ctx context.Context) bool {
	region := k.catalogue.account.Region
	list, err := ask(ctx, k.catalogue, account.Zones, "")
	switch {
	case provider.IsNotFound(err):
		found, remedy := "region "+region+" is not there", "must be a region of the API, such as eu01"
		if k.regionOfSecret() && !k.Overrides.Region.IsSet() {
			k.reportKey(k.classCheck, apis.SecretRegion, found, remedy)
		} else {
			k.wrong(k.object, "providerSpec.region", found, remedy)
		}
		return false
	case err != nil:
		k.failed("providerSpec.availabilityZone", "the zones of region "+region, "", err)
		return true
	}
	k.fine(k.object, "providerSpec.region", "region "+region+" is there")
	zones := list.GetItems()
	k.checkTemplateZone(zones)
	zone := k.spec.AvailabilityZone
	switch {
	case zone == "":
	case slices.Contains(zones, zone):
		k.fine(k.object, "providerSpec.availabilityZone", fmt.Sprintf(
			"zone %s is there; which machine types it has, the API does not tell", zone))
	default:
		k.wrong(k.object, "providerSpec.availabilityZone", fmt.Sprintf("zone %s is not there", report.Quoted(zone)),
			fmt.Sprintf("region %s has %s", region, strings.Join(zones, ", ")))
	}
	return true
}

func (k *onlineCheck) checkMachineType(ctx context.Context) {
	if !k.accepts("machineType") {
		return
	}
	list, err := ask(ctx, k.catalogue, account.MachineTypes, "")
	if err != nil {
		k.failed("providerSpec.machineType", "machine type "+k.spec.MachineType, account.MachineTypes.Permission, err)
		return
	}
	var names []string
	types := list.GetItems()
	for i := range types {
		if types[i].Name == k.spec.MachineType {
			k.machineType = &types[i]
			k.fine(k.object, "providerSpec.machineType", fmt.Sprintf("machine type %s is there: %s, %d MB", types[i].Name, report.Count(int(types[i].Vcpus), "vCPU"), types[i].Ram))
			k.checkCapacity()
			return
		}
		names = append(names, types[i].Name)
	}
	k.wrong(k.object, "providerSpec.machineType", "machine type "+k.spec.MachineType+" is not there", k.didYouMean(k.spec.MachineType, names))
}
