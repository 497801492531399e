// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// classCheck is the check of one class.
type classCheck struct {
	*object
	class *v1alpha1.MachineClass
	// secrets are the class's Secrets, in the order in which the manager merges them; nil if any of them is unavailable.
	secrets []*object
	// secret is the merged Secret.
	secret *corev1.Secret
	inputs *provider.Inputs
	// rejected are the errors reported so far.
	rejected field.ErrorList
}

// checkClass checks a class together with its Secrets, as the driver does. Of another provider's class, as there is one
// in a migration, it checks nothing else: another driver reads its spec and its Secrets.
func (v *validator) checkClass(on *object, class *v1alpha1.MachineClass) {
	if (&account.Class{MachineClass: class}).IsForeign() {
		supported := []string{provider.StackitProviderName}
		v.report(on, report.Wrong, "provider", body(field.NotSupported(nil, class.Provider, supported)))
		return
	}
	check := &classCheck{object: on, class: class}
	check.secrets = v.secretsOf(check)
	check.secret = merged(check.secrets)
	check.inputs = provider.Inspect(class, check.secret)
	v.classes = append(v.classes, check)

	// The driver ignores these fields, or refuses them with --strict-provider-spec.
	for _, problem := range unknownFields(apis.SpecPath.String()+".", check.inputs.Unknown) {
		v.report(on, report.Wrong, problem.path, problem.text)
	}
	for _, err := range check.inputs.Errors {
		v.reportInput(check, err)
	}
	if strings.Contains(check.inputs.Spec.Region, placeholder) && check.accepts("region") { // it has the form of one
		v.reportInput(check, field.Invalid(apis.SpecPath.Child("region"), field.OmitValueType{},
			"must be a region such as eu01"))
	}
	v.checkClusterLabel(check)
	v.checkImageAlone(check)
	v.checkRegion(check)
	v.checkNodeTemplate(check)
	v.checkFallbacks(check)
	own, _, _ := apis.DecodeNeeded(class.ProviderSpec.Raw) // without the Secret's defaults
	if hint := userDataHint(own.UserData, false); hint != "" {
		v.report(check.object, report.Hint, apis.SpecPath.Child("userData").String(), hint)
	}
	if check.secrets != nil {
		v.checkUserData(check)
		v.checkCredentials(check, check.inputs.Secret)
	}
}

// reportInput reports an error of Inspect at its field. Errors that a missing Secret may explain are dropped.
func (v *validator) reportInput(check *classCheck, err *field.Error) {
	if key, ok := strings.CutPrefix(err.Field, apis.SecretPath.String()+"."); ok {
		if check.secrets != nil {
			v.reportKey(check, key, body(err))
			check.rejected = append(check.rejected, err)
		}
		return
	}
	isRegion := err.Field == apis.SpecPath.Child("region").String()
	fromSecret := isRegion || err.Field == apis.SpecPath.Child("networking").String()
	if err.Type == field.ErrorTypeRequired && fromSecret && check.secrets == nil {
		return
	}
	check.rejected = append(check.rejected, err)
	if isRegion && check.regionOfSecret() {
		v.reportKey(check, apis.SecretRegion, body(err))
		return
	}
	v.report(check.object, report.Wrong, strings.TrimPrefix(err.Field, "machineClass."), body(err))
}

// accepts reports whether no error was reported for a field of the providerSpec.
func (c *classCheck) accepts(path string) bool {
	path = apis.SpecPath.String() + "." + path
	return !slices.ContainsFunc(c.rejected, func(err *field.Error) bool {
		rest, ok := strings.CutPrefix(err.Field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// regionOfSecret reports whether the class has no region of its own, but its Secrets have one.
func (c *classCheck) regionOfSecret() bool {
	spec, wrong, _ := apis.DecodeNeeded(c.class.ProviderSpec.Raw)
	region := apis.SpecPath.Child("region").String()
	isHidden := slices.ContainsFunc(wrong, func(err *field.Error) bool { return err.Field == region })
	return spec.Region == "" && !isHidden && c.inputs.Secret.Region != ""
}

// checkClusterLabel requires a label that distinguishes the cluster's servers from other clusters'. Labels that cannot
// be decoded were reported before.
func (v *validator) checkClusterLabel(check *classCheck) {
	undecoded := slices.ContainsFunc(check.rejected,
		func(err *field.Error) bool { return err.Field == apis.SpecPath.String() })
	if len(check.inputs.ClusterLabels) > 0 || !check.accepts("labels") || undecoded {
		return
	}
	v.wrong(check.object, apis.SpecPath.Child("labels").String(),
		"has no cluster label (a key that ends in /cluster): "+
			"if another cluster in the same project has a class of this name without a cluster label, "+
			"its servers count as this class's, and are deleted as orphans; "+
			"add a label with a unique value for this cluster, such as kubernetes.io/cluster: my-cluster")
}

// checkImageAlone gives a hint for an image without a bootVolume. STACKIT's own driver sends requests like that; which
// disk the server gets was not measured.
func (v *validator) checkImageAlone(check *classCheck) {
	if spec := check.inputs.Spec; spec.ImageID != "" && spec.BootVolume == nil && check.accepts("bootVolume") {
		v.report(check.object, report.Hint, apis.SpecPath.Child("imageId").String(),
			"is set without a bootVolume: the API does not document which disk such a server gets, or how large it is; "+
				"reportedly only small images work; set bootVolume.size")
	}
}

// checkRegion gives hints about a zone that stands for a region, and about zones of another region. They are no errors:
// the driver takes any name, so that new regions and zones need no new release.
func (v *validator) checkRegion(check *classCheck) {
	spec := check.inputs.Spec
	if zone := account.ZoneAsRegion(spec.Region); zone != "" {
		v.report(check.object, report.Hint, apis.SpecPath.Child("region").String(),
			zone+"; a zone belongs into availabilityZone")
		return
	}
	for i, choice := range append([]apis.Choice{{AvailabilityZone: spec.AvailabilityZone}}, spec.Fallbacks...) {
		path := apis.SpecPath
		if i > 0 {
			path = path.Child("fallbacks").Index(i - 1)
		}
		if zone := choice.AvailabilityZone; check.isElsewhere(zone) {
			v.report(check.object, report.Hint, path.Child("availabilityZone").String(), fmt.Sprintf(
				"%s is a zone of region %s, the servers are in region %s", zone, apis.RegionOfZone(zone), spec.Region))
		}
	}
}

// isElsewhere reports whether a zone belongs to another region than the servers. Of a region that cannot be right,
// nothing is said.
func (c *classCheck) isElsewhere(zone string) bool {
	region, servers := apis.RegionOfZone(zone), c.inputs.Spec.Region
	return region != "" && region != servers && servers != "" && c.accepts("region") && apis.RegionOfZone(servers) == ""
}

// checkFallbacks gives hints about fallbacks that work less well than they look.
func (v *validator) checkFallbacks(check *classCheck) {
	spec, template := check.inputs.Spec, check.class.NodeTemplate
	if !check.accepts("fallbacks") {
		return
	}
	const few = 3
	if count := len(spec.Fallbacks); count > few {
		v.report(check.object, report.Hint, apis.SpecPath.Child("fallbacks").String(), fmt.Sprintf(
			"has %d entries: each may take as long as a boot, and the manager gives up a Machine at its creation timeout, "+
				"20 minutes by default", count))
	}
	for i, fallback := range spec.Fallbacks {
		zone := fallback.AvailabilityZone
		if template == nil || template.Zone == "" || zone == "" || zone == template.Zone || check.isElsewhere(zone) {
			continue
		}
		v.report(check.object, report.Hint, apis.SpecPath.Child("fallbacks").Index(i).Child("availabilityZone").String(),
			fmt.Sprintf("is %s, nodeTemplate.zone is %s: while the first zone is full, Pods with a volume there stay pending, "+
				"and cluster-autoscaler adds machines that do not help them", zone, template.Zone))
	}
}

// checkNodeTemplate applies the rule of the manager's validateNodeTemplate (v0.62.1 machine_util.go:146), which cannot
// be imported. The manager ignores the Machines of a class that breaks it, and only logs that. The template must also
// match the providerSpec: to scale a pool up from zero, Gardener's cluster-autoscaler takes the nodeTemplate for the
// Node, with its capacity, and with instanceType, region, zone and architecture as labels.
func (v *validator) checkNodeTemplate(check *classCheck) {
	template, spec := check.class.NodeTemplate, check.inputs.Spec
	if template == nil {
		v.report(check.object, report.Hint, "nodeTemplate", "is missing: "+
			"cluster-autoscaler cannot scale up from zero without it, "+
			"and machine-controller-manager's next release needs it; "+
			"add capacity, instanceType, region and zone; kubernetes/upgrade.md says why")
		return
	}
	region, zone := spec.Region, spec.AvailabilityZone // unless checkRegion doubts them
	if apis.RegionOfZone(region) != "" {
		region = ""
	}
	if check.isElsewhere(zone) {
		zone = ""
	}
	const missing = "Required value: machine-controller-manager creates no machines of a class whose nodeTemplate lacks it"
	for _, resource := range []corev1.ResourceName{"cpu", "gpu", "memory"} {
		path := fmt.Sprintf("nodeTemplate.capacity.%s", resource)
		if _, ok := template.Capacity[resource]; !ok || check.isNull(path) { // the API server refuses null
			v.wrong(check.object, path, missing)
		}
	}
	for _, required := range []struct{ name, value, field, want string }{
		{"instanceType", template.InstanceType, "machineType", spec.MachineType},
		{"region", template.Region, "region", region},
		{"zone", template.Zone, "availabilityZone", zone},
	} {
		switch {
		case required.value == "":
			v.wrong(check.object, "nodeTemplate."+required.name, missing)
		case required.want != "" && required.value != required.want && check.accepts(required.field):
			v.invalid(check.object, "nodeTemplate."+required.name, required.value,
				"must be %q, the %s of the servers: cluster-autoscaler scales up from zero by the nodeTemplate",
				required.want, required.field)
		}
	}
}

// secretsOf returns the Secrets of a class in the order in which the manager merges them (v0.62.1 machine_util.go:97);
// nil if any of them is unavailable, for which it reports the reason.
func (v *validator) secretsOf(check *classCheck) []*object {
	on, class := check.object, check.class
	if len(account.SecretRefs(class)) == 0 {
		v.wrong(on, "secretRef", "Required value: name the Secret with projectId, serviceAccountKey and userData")
	}
	var secrets []*object
	for _, reference := range []struct {
		path string
		ref  *corev1.SecretReference
	}{{"secretRef", class.SecretRef}, {"credentialsSecretRef", class.CredentialsSecretRef}} {
		if reference.ref != nil {
			secrets = append(secrets, v.secretOfReference(on, reference.path, reference.ref))
		}
	}
	if v.named != nil {
		secrets = []*object{v.named}
	}
	for _, secret := range secrets {
		if secret != nil {
			secret.used = true
		}
	}
	if slices.ContainsFunc(secrets, func(secret *object) bool { return secret == nil || len(secret.problems) > 0 }) {
		return nil
	}
	return secrets
}

// secretOfReference returns the Secret that a class refers to; nil if it is unavailable, or replaced by the Secret that
// the user named.
func (v *validator) secretOfReference(on *object, path string, ref *corev1.SecretReference) *object {
	if ref.Name == "" {
		v.wrong(on, path+".name", "Required value: name the Secret")
		return nil
	}
	if ref.Namespace != on.namespace {
		// The manager's cache has the Secrets of this namespace only (v0.62.1 app.go:270).
		v.invalid(on, path+".namespace", ref.Namespace,
			"must be %q, the namespace of the class: machine-controller-manager reads no other Secrets", on.namespace)
	}
	if v.named != nil || ref.Namespace == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if secret := v.find(kindSecret, key); secret != nil {
		return secret
	}
	v.withoutSecret(on, path, fmt.Sprintf("Secret %s is not in the files: its content cannot be checked; "+
		"add it (-f takes files and, with -, the output of kubectl), or name one with --secret", key))
	return nil
}

// secretData returns the data of a Secret; nil for other objects.
func (o *object) secretData() map[string][]byte {
	if secret, ok := o.value.(*corev1.Secret); ok {
		return secret.Data
	}
	return nil
}

// merged returns one Secret with the data of all; later Secrets win.
func merged(secrets []*object) *corev1.Secret {
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for _, each := range secrets {
		maps.Copy(secret.Data, each.secretData())
	}
	return secret
}

// otherSpelling maps keys to Gardener's names for them.
var otherSpelling = map[string]string{
	apis.SecretProjectID:         apis.SecretProjectIDGardener,
	apis.SecretServiceAccountKey: apis.SecretServiceAccountGardener,
}

// placeholder is the samples' placeholder for values that only the user knows.
const placeholder = "replace-me"

// holderOf returns the Secret that has a key, and the key's name there; nil if no Secret has it.
func (c *classCheck) holderOf(key string) (holder *object, name string) {
	for _, secret := range slices.Backward(c.secrets) {
		for _, name := range []string{key, otherSpelling[key]} {
			if _, ok := secret.secretData()[name]; ok && name != "" {
				return secret, name
			}
		}
	}
	return nil, ""
}

// notText is reported of a value of a Secret that is not UTF-8. A short plain text below data may be valid base64 of
// other bytes; what is wrong with those does not help.
const notText = "is not text: must be base64 of text, or plain text in stringData"

// reportKey reports a problem with a key of the class's Secrets, at the Secret that has it, else at the last one.
func (v *validator) reportKey(check *classCheck, key, text string) {
	if secret, name := check.holderOf(key); secret != nil && !utf8.Valid(secret.secretData()[name]) {
		text = notText
	}
	v.reportKeyAs(report.Wrong, check, key, text)
}

// reportKeyAs is reportKey with a verdict.
func (v *validator) reportKeyAs(verdict report.Verdict, check *classCheck, key, text string) {
	if secret, name := check.holderOf(key); secret != nil {
		if v.options.AllowMissingSecret && bytes.Contains(secret.secretData()[name], []byte(placeholder)) {
			v.withoutSecret(secret, secret.keyPath(name),
				"is a placeholder ("+placeholder+"): whether the value is right cannot be checked")
			return
		}
		v.report(secret, verdict, secret.keyPath(name), text)
		return
	}
	last := check.secrets[len(check.secrets)-1]
	v.report(last, verdict, last.keyPath(key), text)
}

// keyPath returns the path of a key in a Secret, also if the key is missing.
func (o *object) keyPath(key string) string {
	parent := "data"
	if o.has("stringData") && (o.has("stringData", key) || !o.has("data")) {
		parent = "stringData"
	}
	return childPath(field.NewPath(parent), key).String()
}

// isNull reports whether a field in a file has no value; an empty text is one.
func (o *object) isNull(path string) bool {
	if o.node == nil {
		return false
	}
	at, found := find(o.node, pathNames(path), isSame)
	return found && at.ShortTag() == "!!null"
}

// checkUserData requires the key userData. Without it the manager never calls the driver, and the Machine's status
// stays empty (v0.62.1 userdata.go:48).
func (v *validator) checkUserData(check *classCheck) {
	data, ok := check.secret.Data[apis.SecretUserData]
	if hint := userDataHint(string(data), true); hint != "" && !bytes.Contains(data, []byte(placeholder)) {
		v.reportKeyAs(report.Hint, check, apis.SecretUserData, hint)
	}
	if holder, name := check.holderOf(apis.SecretUserData); holder != nil && holder.isNull(holder.keyPath(name)) {
		v.report(holder, report.Hint, holder.keyPath(name), "has no value, so servers get no user data: "+
			"in YAML, a value that begins with # is a comment unless it is quoted")
	}
	if !ok {
		v.reportKey(check, apis.SecretUserData, "Required value: the key must exist, even with an empty value: "+
			"without the key machine-controller-manager creates no machines, and their status stays empty")
	}
}

// checkCredentials checks the service-account key or the workload identity.
func (v *validator) checkCredentials(check *classCheck, secret *apis.Secret) {
	_, err := v.Sessions.Session(provider.Credentials(secret))
	if unusable := provider.CredentialsProblem(secret, err, check.rejected); unusable != nil {
		v.reportKey(check, strings.TrimPrefix(unusable.Field, apis.SecretPath.String()+"."), body(unusable))
	}
	if key, err := v.Sessions.Config.InspectKey(secret.ServiceAccountKey); err == nil && !v.Sessions.Config.NoAuth {
		for _, found := range account.CheckKey(key, secret.ProjectID, v.Clock.Now()) {
			v.reportKeyAs(found.Verdict, check, apis.SecretServiceAccountKey, "the key "+found.Found+"; "+found.Remedy)
		}
	}
}
