// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	managervalidation "github.com/gardener/machine-controller-manager/pkg/apis/machine/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// managerClassKind is the only class.kind for which the manager creates machines (v0.62.1 machineclass.go:31).
const managerClassKind = "MachineClass"

// dotsText is the hint about a name with dots.
const dotsText = "has dots: the host's name ends at the first one; set the node's name in the user data"

// Machine returns the findings about a Machine, by the rules of the manager and the driver.
func Machine(given *v1alpha1.Machine) report.Findings {
	converted := &machine.Machine{}
	if err := v1alpha1.Convert_v1alpha1_Machine_To_machine_Machine(given, converted, nil); err != nil {
		return findings("Machine", given.Namespace, given.Name, field.ErrorList{field.Invalid(nil, nil, err.Error())})
	}
	errs := append(managervalidation.ValidateMachine(converted), classKind("spec.class", &given.Spec.Class)...)
	if name := field.NewPath("metadata", "name"); given.Name != "" {
		errs = append(errs, validation.ValidateMachineName(given.Name, name)...)
		// The manager takes the bootstrap token's ID from the last five bytes, and panics (v0.62.1 userdata.go:172).
		if len(given.Name) < 5 {
			errs = append(errs, field.Invalid(name, given.Name, "must have at least 5 characters"))
		}
	}
	return findings("Machine", given.Namespace, given.Name, errs)
}

// Deployment returns the findings about a MachineDeployment, by the rules of the manager.
func Deployment(given *v1alpha1.MachineDeployment) report.Findings {
	const kind = "MachineDeployment"
	if selector := given.Spec.Selector; selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		// Without a selector the manager's validation panics (v0.62.1 machinedeployment.go:106).
		return findings(kind, given.Namespace, given.Name, field.ErrorList{field.Required(
			field.NewPath("spec", "selector"), "set matchLabels to labels of spec.template.metadata")})
	}
	if _, err := metav1.LabelSelectorAsSelector(given.Spec.Selector); err != nil {
		return findings(kind, given.Namespace, given.Name, field.ErrorList{field.Invalid(
			field.NewPath("spec", "selector"), field.OmitValueType{}, err.Error())})
	}
	converted := &machine.MachineDeployment{}
	if err := v1alpha1.Convert_v1alpha1_MachineDeployment_To_machine_MachineDeployment(given, converted, nil); err != nil {
		return findings(kind, given.Namespace, given.Name, field.ErrorList{field.Invalid(nil, nil, err.Error())})
	}
	return findings(kind, given.Namespace, given.Name, append(managervalidation.ValidateMachineDeployment(converted),
		classKind("spec.template.spec.class", &given.Spec.Template.Spec.Class)...))
}

func classKind(path string, class *v1alpha1.ClassSpec) field.ErrorList {
	if class.Kind == "" || class.Kind == managerClassKind { // the manager's own validation wants one
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath(path, "kind"), class.Kind, []string{managerClassKind})}
}

// findings converts errors of the manager's own validation, which it only logs.
func findings(kind, namespace, name string, errs field.ErrorList) (found report.Findings) {
	subject := report.OneLine(fmt.Sprintf("%s %s/%s", kind, namespace, name))
	for _, err := range errs {
		text := body(err)
		if err.Type == field.ErrorTypeRequired { // the manager uses this type for wrong values, too
			text = err.Detail
		}
		found = append(found,
			report.Finding{Verdict: report.Wrong, Subject: subject, Field: err.Field, Found: report.OneLine(text)})
	}
	if strings.Contains(name, ".") {
		found = append(found,
			report.Finding{Verdict: report.Hint, Subject: subject, Field: "metadata.name", Found: dotsText})
	}
	return found
}
