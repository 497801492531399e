// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// classCheck is a class with what is known of it.
type classCheck struct {
	*object
	class *v1alpha1.MachineClass
	// secrets are those of the class, in the order in which the manager merges them; nil if
	// one of them cannot be had.
	secrets []*object
	// secret is what they are merged to.
	secret *corev1.Secret
	inputs *provider.Inputs
	// rejected are the errors that were reported.
	rejected field.ErrorList
}

// checkClass checks a class together with its Secrets, as the driver does.
func (v *validator) checkClass(on *object, class *v1alpha1.MachineClass) {
	check := &classCheck{object: on, class: class}
	check.secrets = v.secretsOf(check)
	check.secret = merged(check.secrets)
	check.inputs = provider.Inspect(class, check.secret)
	v.classes = append(v.classes, check)

	// The driver ignores these fields, or refuses them with --strict-provider-spec.
	for _, problem := range unknownFields(apis.SpecPath.String()+".", check.inputs.Unknown) {
		v.wrong(on, problem.path, problem.text)
	}
	for _, err := range check.inputs.Errors {
		v.reportInput(check, err)
	}
	v.checkClusterLabel(check)
	v.checkNodeTemplate(check)
	if check.secrets != nil {
		v.checkUserData(check)
		v.checkCredentials(check, check.inputs.Secret)
	}
}

// reportInput reports an error of Inspect where its field stands. What a Secret that is not
// there could have said is not reported.
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
	v.wrong(check.object, strings.TrimPrefix(err.Field, "machineClass."), body(err))
}

// accepts says whether nothing is wrong with a field of the providerSpec.
func (c *classCheck) accepts(path string) bool {
	path = apis.SpecPath.String() + "." + path
	return !slices.ContainsFunc(c.rejected, func(err *field.Error) bool {
		rest, ok := strings.CutPrefix(err.Field, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// regionOfSecret says whether the class leaves the region to its Secrets, and they have one.
func (c *classCheck) regionOfSecret() bool {
	spec, _, _ := apis.DecodeProviderSpec(c.class.ProviderSpec.Raw)
	return (spec == nil || spec.Region == "") && c.inputs.Secret.Region != ""
}

// checkClusterLabel asks for what tells the cluster's servers from those of others. Labels
// that cannot be decoded are reported already.
func (v *validator) checkClusterLabel(check *classCheck) {
	undecoded := slices.ContainsFunc(check.rejected, func(err *field.Error) bool { return err.Field == apis.SpecPath.String() })
	if len(check.inputs.ClusterLabels) > 0 || !check.accepts("labels") || undecoded {
		return
	}
	v.wrong(check.object, apis.SpecPath.Child("labels").String(),
		"has no cluster label (a key that ends in /cluster): servers of another cluster in the same project are taken for this class's, "+
			"and deleted as orphans, if that cluster has a class of the same name that lacks one, too; "+
			"add one with a value of this cluster's own, such as kubernetes.io/cluster: my-cluster")
}

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
	const missing = "Required value: machine-controller-manager makes no machines of a class whose nodeTemplate lacks it"
	for _, resource := range []corev1.ResourceName{"cpu", "gpu", "memory"} {
		if _, ok := template.Capacity[resource]; !ok {
			v.wrong(check.object, fmt.Sprintf("nodeTemplate.capacity.%s", resource), missing)
		}
	}
	for _, required := range []struct{ name, value, field, want string }{
		{"instanceType", template.InstanceType, "machineType", spec.MachineType},
		{"region", template.Region, "region", spec.Region},
		{"zone", template.Zone, "availabilityZone", spec.AvailabilityZone},
	} {
		switch {
		case required.value == "":
			v.wrong(check.object, "nodeTemplate."+required.name, missing)
		case required.want != "" && required.value != required.want && check.accepts(required.field):
			v.wrong(check.object, "nodeTemplate."+required.name, body(field.Invalid(nil, required.value, fmt.Sprintf(
				"must be %q, the %s of the servers: cluster-autoscaler scales up from zero by the nodeTemplate",
				required.want, required.field))))
		}
	}
}
