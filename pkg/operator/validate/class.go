// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

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
		v.checkCredentials(check, check.inputs.Secret)
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

// checkUnknown reports the fields that the driver ignores, or refuses with
// --strict-provider-spec.
func (v *validator) checkUnknown(check *classCheck) {
	for _, problem := range manifest.UnknownFields(check.inputs.Spec, check.inputs.Unknown) {
		problem.Path = apis.SpecPath.String() + "." + problem.Path
		v.report(check.object, report.Wrong, problem)
	}
}

// checkClusterLabel asks for what tells the cluster's servers from those of others. Labels
// that cannot be decoded are reported already.
func (v *validator) checkClusterLabel(check *classCheck) {
	if len(check.inputs.ClusterLabels) > 0 || !check.accepts("labels") || hasErrorAt(apis.SpecPath.String(), check.rejected) {
		return
	}
	v.wrong(check.object, apis.SpecPath.Child("labels").String(),
		"has no cluster label (a key that ends in /cluster): servers of another cluster in the same project are taken for this class's, and deleted as orphans, if that cluster has a class of the same name that lacks one, too",
		"add one with a value of this cluster's own, such as kubernetes.io/cluster: my-cluster")
}

// effective returns the providerSpec with its defaults, and without userData.
func effective(check *classCheck) EffectiveSpec {
	spec := *check.inputs.Spec
	if spec.UserData != "" {
		spec.UserData = fmt.Sprintf("<userData, %d bytes>", len(spec.UserData))
	}
	return EffectiveSpec{MachineClass: check.namespace + "/" + check.name, ProviderSpec: &spec}
}
