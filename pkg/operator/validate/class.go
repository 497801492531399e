// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
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
	// missing are its references to Secrets that are not given.
	missing []missingSecret
	// rejected are the errors that were reported.
	rejected field.ErrorList
}

// checkClass checks a class together with its Secrets, as the driver does.
func (v *validator) checkClass(ctx context.Context, on *object, class *v1alpha1.MachineClass) {
	check := &classCheck{object: on, class: class}
	check.secrets = v.secretsOf(ctx, check)
	check.secret = merged(check.secrets)
	check.inputs = provider.Inspect(class, check.secret)
	v.classes = append(v.classes, check)

	v.checkUnknown(check)
	for _, err := range check.inputs.Errors {
		v.reportInput(check, err)
	}
	v.checkClusterLabel(check)
	v.checkNodeTemplate(check)
	v.reportMissing(check)
	v.checkUserDataSize(check)
	if check.secrets != nil {
		v.checkUserData(check)
		v.checkKey(check)
	}
	v.result.Effective = append(v.result.Effective, effective(check))
}

// reportInput reports an error of Inspect where its field stands. What a Secret that is not
// there could have said is not reported.
func (v *validator) reportInput(check *classCheck, err *field.Error) {
	found, remedy := describe(err)
	if key, ok := strings.CutPrefix(err.Field, apis.SecretPath.String()+"."); ok {
		if check.secrets != nil {
			v.reportKey(check, key, found, remedy)
			check.rejected = append(check.rejected, err)
		}
		return
	}
	fromSecret := err.Field == apis.SpecPath.Child("region").String() || err.Field == apis.SpecPath.Child("networking").String()
	if err.Type == field.ErrorTypeRequired && fromSecret && check.secrets == nil {
		return
	}
	check.rejected = append(check.rejected, err)
	if err.Field == apis.SpecPath.Child("region").String() && check.regionOfSecret() {
		v.reportKey(check, apis.SecretRegion, found, remedy)
		return
	}
	v.wrong(check.object, strings.TrimPrefix(err.Field, "machineClass."), found, remedy)
}

// accepts says whether nothing is wrong with a field of the providerSpec.
func (c *classCheck) accepts(path string) bool {
	path = apis.SpecPath.String() + "." + path
	for _, err := range c.rejected {
		if rest, ok := strings.CutPrefix(err.Field, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return false
		}
	}
	return true
}

// describe says in two parts what is wrong and what is right.
func describe(err *field.Error) (found, remedy string) {
	_, hidden := err.BadValue.(field.OmitValueType)
	switch {
	case err.Type == field.ErrorTypeRequired:
		return "is missing", err.Detail
	case err.Type == field.ErrorTypeTypeInvalid:
		wrong := manifest.WrongType(err)
		return wrong.Found, wrong.Remedy
	case hidden && strings.HasPrefix(err.Detail, "must "):
		return "is wrong", err.Detail
	case err.Type == field.ErrorTypeForbidden, hidden:
		return err.Detail, ""
	case err.Type == field.ErrorTypeNotSupported:
		return "is " + finding.Quoted(err.BadValue), "must be " + strings.ReplaceAll(strings.TrimPrefix(err.Detail, "supported values: "), ", ", " or ")
	case err.Type == field.ErrorTypeDuplicate:
		return finding.Quoted(err.BadValue) + " is there twice", "leave one out"
	case err.Type == field.ErrorTypeTooMany:
		return "has too many items", err.Detail
	default:
		return "is " + finding.Quoted(err.BadValue), err.Detail
	}
}

// checkUnknown reports the fields that the driver ignores, or refuses with
// --strict-provider-spec.
func (v *validator) checkUnknown(check *classCheck) {
	for _, problem := range manifest.UnknownFields(check.inputs.Spec, check.inputs.Unknown) {
		problem.Path = apis.SpecPath.String() + "." + problem.Path
		v.report(check.object, finding.Wrong, problem)
	}
}

// regionOfSecret says whether the class leaves the region to its Secrets, and they have one.
func (c *classCheck) regionOfSecret() bool {
	spec, _, _ := apis.DecodeProviderSpec(c.class.ProviderSpec.Raw)
	return (spec == nil || spec.Region == "") && c.inputs.Secret.Region != ""
}

// checkClusterLabel asks for what tells the cluster's servers from those of others. Labels
// that cannot be decoded are reported already.
func (v *validator) checkClusterLabel(check *classCheck) {
	if len(check.inputs.ClusterLabels) > 0 || !check.accepts("labels") || about(apis.SpecPath.String(), check.rejected) {
		return
	}
	v.wrong(check.object, apis.SpecPath.Child("labels").String(),
		"has no cluster label (a key that ends in /cluster): servers of another cluster in the same project are taken for this class's, and deleted as orphans, if that cluster has a class of the same name that lacks one, too",
		"add one with a value of this cluster's own, such as kubernetes.io/cluster: my-cluster")
}

// about says whether an error is about this very field.
func about(path string, errs field.ErrorList) bool {
	for _, err := range errs {
		if err.Field == path {
			return true
		}
	}
	return false
}

// effective returns the providerSpec with its defaults, and without userData.
func effective(check *classCheck) EffectiveSpec {
	spec := *check.inputs.Spec
	if spec.UserData != "" {
		spec.UserData = fmt.Sprintf("<userData, %d bytes>", len(spec.UserData))
	}
	return EffectiveSpec{MachineClass: check.namespace + "/" + check.name, ProviderSpec: &spec}
}
