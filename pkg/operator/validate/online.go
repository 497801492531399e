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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// catalogue caches what the API returns for an account. Each resource is read once, however many classes name it.
type catalogue struct {
	*validator
	account *account.Account
	checks  []*onlineCheck
	answers map[string]answer
	// failure is the error of the first read that failed; after it no more reads are made, and the classes in
	// unchecked are not fully checked. notChecked lists what the account may not read or the API does not show.
	failure    error
	unchecked  []string
	notChecked []string
	// allowed and refused mean that the API allowed, or refused, a read that needs a permission in the project.
	allowed, refused bool
}

// answer is the API's answer to a read.
type answer struct {
	value any
	err   error
}

// errUnchecked means that a resource could not be checked; the reason is reported once for all of them.
var errUnchecked = errors.New("could not be checked")

// checkOnline checks with the API that what the classes name exists. Classes of one account share its reads.
func (v *validator) checkOnline(ctx context.Context) {
	var catalogues []*catalogue
	for _, class := range v.classes {
		in, err := v.accountOf(class)
		switch {
		case errors.Is(err, errNoSecretForOnline):
			v.withoutSecret(class.object, "", "could not be checked online: "+err.Error())
			continue
		case err != nil:
			v.report(class.object, report.Unknown, "", "could not be checked online: "+err.Error())
			continue
		}
		at := slices.IndexFunc(catalogues, func(known *catalogue) bool {
			return known.account.Session == in.Session && known.account.Region == in.Region
		})
		if at < 0 {
			at, catalogues = len(catalogues),
				append(catalogues, &catalogue{validator: v, account: in, answers: map[string]answer{}})
		}
		catalogues[at].check(ctx, class)
	}
	if len(v.classes) == 0 {
		v.add(report.Finding{Verdict: report.Unknown, Subject: "online",
			Found: "the API was not called: there is no MachineClass of STACKIT"})
	}
	for _, c := range catalogues {
		c.checkQuota(ctx)
		c.checkAccess(ctx)
		c.reportFailure()
		if len(c.notChecked) > 0 {
			c.add(report.Hint, "not checked: "+strings.Join(c.notChecked, ", "), "")
		}
	}
}

// reportFailure reports the read that failed. Credentials that are refused are wrong, not unknown.
func (c *catalogue) reportFailure() {
	if c.failure == nil {
		return
	}
	verdict, remedy := report.Unknown, "try again later"
	if fix, isRefused := c.account.RefusedRemedy(c.failure); isRefused {
		verdict, remedy = report.Wrong, fix
	}
	c.add(verdict, fmt.Sprintf("%s; not fully checked: %s", account.FailureText(c.failure), report.Some(c.unchecked)),
		remedy)
}

// check checks everything that a class names, except fields already reported.
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
		c.unchecked = append(c.unchecked, class.subject())
	}
}

var errNoSecretForOnline = errors.New(
	"its Secret is not in the files; add its file with -f, set one with --secret, or set all of " + account.AllThree)

// accountOf returns the account of a class: from flags, or else from its own Secrets or the Secret named instead.
func (v *validator) accountOf(class *classCheck) (*account.Account, error) {
	region := class.inputs.Spec.Region
	switch {
	case v.Direct != nil:
		return v.OpenDirect(region)
	case class.secrets == nil:
		return nil, errNoSecretForOnline
	}
	var names []string
	for _, secret := range class.secrets {
		names = append(names, secret.subject())
	}
	return v.Open(class.secret, region, strings.Join(names, ", "))
}

// add reports a finding about the account.
func (c *catalogue) add(verdict report.Verdict, found, remedy string) {
	c.validator.add(report.Finding{
		Verdict: verdict, Subject: c.account.String(), Found: report.OneLine(found), Remedy: remedy,
	})
}

// skip records once what is not checked.
func (c *catalogue) skip(what string) {
	if !slices.Contains(c.notChecked, what) {
		c.notChecked = append(c.notChecked, what)
	}
}

// read is a read of the API, with its permission in the API document; "" if any token will do.
type read[T any] struct {
	what, permission string
	call             func(ctx context.Context, api iaas.DefaultAPI, project, region, id string) (T, error)
}

// request is a request of the SDK.
type request[T any] interface{ Execute() (T, error) }

func listOf[T any, R request[T]](what, permission string,
	call func(api iaas.DefaultAPI, ctx context.Context, project, region string) R) read[T] {
	return read[T]{what, permission, func(ctx context.Context, api iaas.DefaultAPI, project, region, _ string) (T, error) {
		return call(api, ctx, project, region).Execute()
	}}
}

func oneOf[T any, R request[T]](what, permission string,
	call func(api iaas.DefaultAPI, ctx context.Context, project, region, id string) R) read[T] {
	return read[T]{what, permission,
		func(ctx context.Context, api iaas.DefaultAPI, project, region, id string) (T, error) {
			return call(api, ctx, project, region, id).Execute()
		}}
}

var (
	zones = read[*iaas.AvailabilityZoneListResponse]{"availability zones", "",
		func(ctx context.Context, api iaas.DefaultAPI, _, region, _ string) (*iaas.AvailabilityZoneListResponse, error) {
			return api.ListAvailabilityZones(ctx, region).Execute()
		}}
	keyPair = read[*iaas.Keypair]{"key pair", "",
		func(ctx context.Context, api iaas.DefaultAPI, _, _, name string) (*iaas.Keypair, error) {
			return api.GetKeyPair(ctx, name).Execute()
		}}
	servers            = listOf("servers", "iaas.server.list", iaas.DefaultAPI.ListServers)
	machineTypes       = listOf("machine types", "iaas.machine-type.list", iaas.DefaultAPI.ListMachineTypes)
	performanceClasses = listOf("performance classes", "iaas.volume-performance-class.list",
		iaas.DefaultAPI.ListVolumePerformanceClasses)
	quotas         = listOf("quotas", "iaas.quota.get", iaas.DefaultAPI.ListQuotas)
	securityGroups = listOf("security groups", "iaas.security-group.list", iaas.DefaultAPI.ListSecurityGroups)
	securityGroup  = oneOf("security group", "iaas.security-group.get", iaas.DefaultAPI.GetSecurityGroup)
	affinityGroup  = oneOf("affinity group", "iaas.affinity-group.get", iaas.DefaultAPI.GetAffinityGroup)
	network        = oneOf("network", "iaas.network.get", iaas.DefaultAPI.GetNetwork)
	nic            = oneOf("NIC", "iaas.nic.get", iaas.DefaultAPI.GetProjectNIC)
	image          = oneOf("image", "iaas.image.get", iaas.DefaultAPI.GetImage)
	snapshot       = oneOf("snapshot", "iaas.snapshot.get", iaas.DefaultAPI.GetSnapshot)
	volume         = oneOf("volume", "iaas.volume.get", iaas.DefaultAPI.GetVolume)
)

// ask makes a read, or returns the result of an earlier one. Its error is errUnchecked, or one for which
// provider.IsNotFound is true.
func ask[T any](ctx context.Context, c *catalogue, of read[*T], id string) (*T, error) {
	what := strings.TrimSpace(of.what + " " + id)
	if known, ok := c.answers[what]; ok {
		value, _ := known.value.(*T)
		return value, known.err
	}
	if c.failure != nil {
		return nil, errUnchecked
	}
	value, _, err := account.Ask(ctx, c.account, what, func(ctx context.Context) (*T, error) {
		return of.call(ctx, c.account.Session.API, c.account.Session.ProjectID, c.account.Region, id)
	})
	if err == nil && value == nil {
		err = provider.NewAPIError("reading "+what, nil, errors.New("the answer is empty"))
	}
	switch {
	case err == nil, provider.IsNotFound(err), of.what == zones.what && provider.IsPlaceMissing(err):
		if of.permission != "" {
			c.allowed = true
		}
	case account.Status(err) == http.StatusForbidden:
		if of.permission != "" {
			c.refused = true
		}
		c.skip(what + " (no permission for " + cmp.Or(of.permission, "this read") + ")")
		err = errUnchecked
	default:
		c.failure, err = err, errUnchecked
	}
	c.answers[what] = answer{value, err}
	return value, err
}

// checkAccess reports an account without access to the project, whose reads were all refused: STACKIT answers 403 for
// the project of another account, and for one that does not exist. An account with the driver's permissions alone may
// read none of what a class names, but it may list servers.
func (c *catalogue) checkAccess(ctx context.Context) {
	if c.allowed || !c.refused || c.failure != nil {
		return
	}
	if _, err := ask(ctx, c, servers, ""); err != nil && c.failure == nil {
		c.add(report.Wrong, "the service account may not list its servers either, which the driver needs, "+
			"or the project does not exist",
			"correct projectId or the key, or give the service account the permission "+servers.permission)
	}
}

// onlineCheck checks one class with the API.
type onlineCheck struct {
	*classCheck
	*catalogue
	spec *apis.ProviderSpec
	// machineType is nil if unknown.
	machineType *iaas.MachineType
	// newVolume is the size in GB of the boot volume created for a machine; 0 if none is created or the size is unknown.
	newVolume int64
}

// named checks a resource that the class names by ID, and reports whether it exists.
func named[T any](ctx context.Context, k *onlineCheck, path string, of read[*T], id string) (*T, bool) {
	value, err := ask(ctx, k.catalogue, of, id)
	if provider.IsNotFound(err) {
		k.missing(path, of.what+" "+id)
	}
	return value, err == nil
}

// missing reports a resource that the class names and the API does not have.
func (k *onlineCheck) missing(path, thing string) {
	k.wrong(k.object, "providerSpec."+path, "%s does not exist; must be one that project %s can use in region %s",
		thing, k.account.Session.ProjectID, k.account.Region)
}

// checkRegion reports whether the region exists; true if that is unknown.
func (k *onlineCheck) checkRegion(ctx context.Context) bool {
	region := k.account.Region
	list, err := ask(ctx, k.catalogue, zones, "")
	if provider.IsPlaceMissing(err) {
		text := "region " + region + " does not exist; must be a region of the API, such as eu01"
		if k.regionOfSecret() && k.Region == "" {
			k.reportKey(k.classCheck, apis.SecretRegion, text)
		} else {
			k.report(k.object, report.Wrong, "providerSpec.region", text)
		}
		return false
	}
	if err != nil {
		return true
	}
	zone, path := k.spec.AvailabilityZone, "providerSpec.availabilityZone"
	if zone == "" && k.class.NodeTemplate != nil { // otherwise the two were compared before
		zone, path = k.class.NodeTemplate.Zone, "nodeTemplate.zone"
	}
	if zone != "" && !slices.Contains(list.GetItems(), zone) {
		k.report(k.object, report.Wrong, path, body(field.NotSupported(nil, zone, list.GetItems())))
	}
	k.hintFallbacks("availabilityZone", func(fallback *apis.Choice) (problem string) {
		if zone := fallback.AvailabilityZone; zone != "" && !slices.Contains(list.GetItems(), zone) {
			problem = fmt.Sprintf("zone %s does not exist in region %s", zone, region)
		}
		return problem
	})
	return true
}

func (k *onlineCheck) checkMachineType(ctx context.Context) {
	if !k.accepts("machineType") {
		return
	}
	list, err := ask(ctx, k.catalogue, machineTypes, "")
	if err != nil {
		return
	}
	find := func(name string) *iaas.MachineType {
		at := slices.IndexFunc(list.GetItems(), func(known iaas.MachineType) bool { return known.Name == name })
		if at < 0 {
			return nil
		}
		return &list.GetItems()[at]
	}
	if k.machineType = find(k.spec.MachineType); k.machineType == nil {
		k.missing("machineType", "machine type "+k.spec.MachineType)
	} else {
		k.checkCapacity()
	}
	k.hintFallbacks("machineType", func(fallback *apis.Choice) (problem string) {
		own, other := k.machineType, find(fallback.MachineType)
		switch {
		case fallback.MachineType == "":
		case other == nil:
			problem = fmt.Sprintf("machine type %s does not exist in region %s", fallback.MachineType, k.account.Region)
		case own != nil && (own.Vcpus != other.Vcpus || own.Ram != other.Ram):
			problem = fmt.Sprintf(
				"%s has %d CPUs and %d MB of memory, %s has %d and %d: cluster-autoscaler counts on the class's type",
				other.Name, other.Vcpus, other.Ram, own.Name, own.Vcpus, own.Ram)
		}
		return problem
	})
}

// hintFallbacks gives a hint for each fallback that has a problem with the named field.
func (k *onlineCheck) hintFallbacks(field string, check func(*apis.Choice) (problem string)) {
	if !k.accepts("fallbacks") {
		return
	}
	for i := range k.spec.Fallbacks {
		if problem := check(&k.spec.Fallbacks[i]); problem != "" {
			k.report(k.object, report.Hint, fmt.Sprintf("providerSpec.fallbacks[%d].%s", i, field), problem)
		}
	}
}

// checkCapacity compares the nodeTemplate's capacity with the machine type's. Less is fine: a Node has less memory than
// its server. With more, the autoscaler creates machines on which the pending Pods do not fit. GPUs are not compared:
// the API does not show them.
func (k *onlineCheck) checkCapacity() {
	template := k.class.NodeTemplate
	if template == nil {
		return
	}
	for name, has := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: resource.NewQuantity(k.machineType.Vcpus, resource.DecimalSI),
		// The API's MB are MiB: its c2i.2 has 4096.
		corev1.ResourceMemory: resource.NewQuantity(k.machineType.Ram<<20, resource.BinarySI),
	} {
		if wanted := template.Capacity[name]; wanted.Cmp(*has) > 0 {
			k.invalid(k.object, fmt.Sprintf("nodeTemplate.capacity.%s", name), wanted.String(),
				"must be at most %s, the capacity of machine type %s", has, k.machineType.Name)
		}
	}
}

// checkBoot checks the boot volume's source and its performance class.
func (k *onlineCheck) checkBoot(ctx context.Context) {
	boot := k.spec.BootVolume
	if boot == nil && k.spec.ImageID != "" {
		boot = &apis.BootVolume{Source: &apis.BootVolumeSource{Type: apis.SourceImage, ID: k.spec.ImageID}}
	}
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

// checkImage compares an image's requirements with the disk, the machine type and the node.
func (k *onlineCheck) checkImage(path string, image *iaas.Image) {
	const size, available = "providerSpec.bootVolume.size", "AVAILABLE"
	if status := image.GetStatus(); status != available {
		k.wrong(k.object, "providerSpec."+path, "image %s is in state %q; must be %s", image.GetId(), status, available)
	}
	boot, asked := k.spec.BootVolume, image.GetMinDiskSize()
	switch {
	case boot == nil || boot.Size == nil || !k.accepts("bootVolume.size"):
	case *boot.Size < asked:
		k.invalid(k.object, size, *boot.Size, "must be at least %d GB, which the image requires", asked)
	}
	if asked := image.GetMinRam(); k.machineType != nil && k.machineType.Ram < asked {
		k.wrong(k.object, "providerSpec.machineType",
			"machine type %s has %d MB of memory; the image requires at least %d MB",
			k.machineType.Name, k.machineType.Ram, asked)
	}
	k.checkArchitecture(image)
}

// autoscalersArchitecture is cluster-autoscaler's default if the nodeTemplate has no architecture.
const autoscalersArchitecture = "amd64"

// checkArchitecture compares the image with the nodeTemplate. The API does not show a machine type's architecture.
func (k *onlineCheck) checkArchitecture(image *iaas.Image) {
	config := image.GetConfig()
	want, template := config.GetArchitecture(), k.class.NodeTemplate
	if template == nil || want == "" {
		return
	}
	if want == "x86" { // the API's name
		want = autoscalersArchitecture
	}
	const path = "nodeTemplate.architecture"
	if template.Architecture != nil && *template.Architecture != "" {
		if *template.Architecture != want {
			k.invalid(k.object, path, *template.Architecture, "must be %s, the image's architecture", want)
		}
	} else if want != autoscalersArchitecture {
		k.wrong(k.object, path, "Required value: must be %s, the image's architecture: without one, cluster-autoscaler "+
			"assumes %s", want, autoscalersArchitecture)
	}
}

// checkNetwork checks networks, NICs and security groups.
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

// checkRest checks the remaining resources that the class names.
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
			k.wrong(k.object, "providerSpec.keypairName", "key pair %s does not exist; "+
				"create it with these credentials, or use a key pair that they own: key pairs belong to credentials, "+
				"not to projects", name)
		}
	}
	for _, mail := range k.spec.ServiceAccountMails {
		k.skip("service account " + mail + " (the IaaS API does not show service accounts)")
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
		k.report(k.object, report.Unknown, "providerSpec."+path, fmt.Sprintf(
			"%d security groups have the name %s, so it is unknown which of them is used: use a UUID instead", count, name))
	}
}

// checkQuota checks whether the remaining quota of an account has room for one more machine of each of its classes.
func (c *catalogue) checkQuota(ctx context.Context) {
	if c.failure != nil {
		return
	}
	need := map[string]int64{}
	for _, check := range c.checks {
		one := check.demand()
		if one == nil {
			c.skip("quota for " + check.subject() + " (its machine type or the size of its disk is not known)")
		}
		for name, number := range one {
			need[name] += number
		}
	}
	if len(need) == 0 {
		return
	}
	answer, err := ask(ctx, c, quotas, "")
	if c.failure != nil {
		c.unchecked = append(c.unchecked, "the quota")
	}
	if err != nil {
		return
	}
	has := answer.GetQuotas()
	for _, row := range []struct {
		name, unit string
		quota      iaas.Quota
	}{
		{"vcpu", "", has.Vcpu}, {"ram", " MB", has.Ram},
		{"volumes", "", has.Volumes}, {"gigabytes", " GB", has.Gigabytes}, {"nics", "", has.Nics},
	} {
		left, need := row.quota.Limit-row.quota.Usage, need[row.name]
		// OpenStack, which underlies the API, writes "no limit" as -1.
		if row.quota.Limit >= 0 && need > 0 && need > left {
			found := fmt.Sprintf("quota %s: %d%s needed, %d of %d left", row.name, need, row.unit, left, row.quota.Limit)
			c.add(report.Wrong, found, "raise the quota, or request fewer or smaller machines")
		}
	}
}

// demand returns what one more machine of the class takes from each quota; nil if unknown.
func (k *onlineCheck) demand() map[string]int64 {
	boot := k.spec.BootVolume
	if k.machineType == nil || boot == nil || boot.Source == nil {
		return nil
	}
	one := map[string]int64{"vcpu": k.machineType.Vcpus, "ram": k.machineType.Ram}
	if boot.Source.Type != apis.SourceVolume {
		if k.newVolume == 0 {
			return nil
		}
		one["volumes"], one["gigabytes"] = 1, k.newVolume
	}
	if k.spec.Networking != nil && len(k.spec.Networking.NICIDs) == 0 {
		one["nics"] = 1
	}
	return one
}
