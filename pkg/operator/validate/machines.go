// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	managervalidation "github.com/gardener/machine-controller-manager/pkg/apis/machine/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// managerClassKind is the only class.kind for which the manager creates machines and keeps the class in use (v0.62.1
// machineclass.go:31).
const managerClassKind = "MachineClass"

// minMachineName is the minimum length of a Machine's name in bytes: the manager uses the last five bytes for the
// bootstrap token's ID, and panics on a shorter name (v0.62.1 userdata.go:172).
const minMachineName = 5

// checkMachine checks a Machine by the rules of the manager and the driver.
func (v *validator) checkMachine(on *object, given *v1alpha1.Machine) {
	converted := &machine.Machine{}
	if err := v1alpha1.Convert_v1alpha1_Machine_To_machine_Machine(given, converted, nil); err != nil {
		v.report(on, report.Wrong, "spec", err.Error())
		return
	}
	v.reportManagers(on, managervalidation.ValidateMachine(converted))
	if on.name != "" {
		path := field.NewPath("metadata", "name")
		for _, err := range validation.ValidateMachineName(on.name, path) {
			v.report(on, report.Wrong, err.Field, body(err))
		}
		if len(on.name) < minMachineName {
			v.invalid(on, path.String(), on.name,
				"must have at least %d characters: with a target cluster, machine-controller-manager fails on a shorter name",
				minMachineName)
		}
	}
	v.checkClassReference(on, "spec.class", &given.Spec.Class)
	v.checkProviderID(on, given)
}

// unknownProject is the project of a class whose Secret is unknown. No ProviderID has it.
const unknownProject = "<projectId>"

// checkProviderID checks a Machine's ProviderID as the driver does, which refuses every call with a wrong one. If the
// class's project is unknown, any project may be right; if the class is, so may another provider's ID.
func (v *validator) checkProviderID(on *object, given *v1alpha1.Machine) {
	id, project := given.Spec.ProviderID, unknownProject
	isOurs := strings.HasPrefix(id, providerid.Scheme+"://")
	for _, known := range v.classes {
		if known.key() != (client.ObjectKey{Namespace: on.namespace, Name: given.Spec.Class.Name}) {
			continue
		}
		isOurs = true
		if known.secrets != nil && validation.IsUUID(known.inputs.Secret.ProjectID) {
			project = known.inputs.Secret.ProjectID
		}
	}
	named, _, _ := strings.Cut(strings.TrimPrefix(id, providerid.Scheme+"://"), "/")
	if project == unknownProject && validation.IsUUID(named) {
		project = named
	}
	if _, err := providerid.Parse(id, project); err != nil && id != "" && isOurs {
		v.report(on, report.Wrong, "spec.providerID", err.Error())
	}
}

// checkDeployment checks a MachineDeployment by the rules of the manager. It need not check the length of Machine
// names: the API server shortens names that it generates.
func (v *validator) checkDeployment(on *object, given *v1alpha1.MachineDeployment) {
	given = given.DeepCopy()
	switch selector := given.Spec.Selector; {
	case selector == nil:
		v.wrong(on, "spec.selector", "Required value: set matchLabels to labels of spec.template.metadata: "+
			"without a selector, machine-controller-manager fails")
		// Without a selector the manager's validation panics (v0.62.1 machinedeployment.go:106).
		given.Spec.Selector = &metav1.LabelSelector{}
	case len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0:
		v.wrong(on, "spec.selector", "selects all Machines, so machine-controller-manager creates none for it; "+
			"set matchLabels to labels of spec.template.metadata")
	default:
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			v.report(on, report.Wrong, "spec.selector", err.Error())
		}
	}
	converted := &machine.MachineDeployment{}
	if err := v1alpha1.Convert_v1alpha1_MachineDeployment_To_machine_MachineDeployment(given, converted, nil); err != nil {
		v.report(on, report.Wrong, "spec", err.Error())
		return
	}
	v.reportManagers(on, managervalidation.ValidateMachineDeployment(converted))
	v.checkClassReference(on, "spec.template.spec.class", &given.Spec.Template.Spec.Class)
}

// reportManagers reports the errors of the manager's own validation. The manager only logs them, and ignores the
// object.
func (v *validator) reportManagers(on *object, errs field.ErrorList) {
	for _, err := range errs {
		text := body(err)
		if err.Type == field.ErrorTypeRequired { // the manager uses this type for wrong values, too
			text = err.Detail
		}
		if strings.HasSuffix(err.Field, ".maxSurge") || strings.HasSuffix(err.Field, ".maxUnavailable") {
			text = "must be a whole number, without quotes, or a percentage such as 25%"
		}
		v.wrong(on, err.Field, "%s; until it is corrected, machine-controller-manager ignores the object", text)
	}
}

// checkClassReference checks that the class exists and has the kind that the manager supports. The manager's own
// validation checks the rest of the reference.
func (v *validator) checkClassReference(on *object, path string, class *v1alpha1.ClassSpec) {
	if class.Kind != "" && class.Kind != managerClassKind {
		v.report(on, report.Wrong, path+".kind", body(field.NotSupported(nil, class.Kind, []string{managerClassKind})))
	}
	if class.Name == "" || v.find(kindClass, client.ObjectKey{Namespace: on.namespace, Name: class.Name}) != nil {
		return
	}
	v.report(on, report.Unknown, path+".name", fmt.Sprintf(
		"%s %s/%s is not in the files: whether it exists cannot be checked; "+
			"add it (-f takes files and, with -, the output of kubectl)",
		kindClass, on.namespace, class.Name))
}
