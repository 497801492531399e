// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// examineControlPlane finds out whether the cluster with the Machines can be asked. If not,
// everything about it is left out.
func (d *Doctor) examineControlPlane(context.Context) {
	const subject = "control cluster"
	if d.Control == nil {
		if d.ControlError != nil {
			d.unconnected(subject, d.ControlError, "name a kubeconfig with --kubeconfig; --cloud-only looks at the cloud alone")
		}
		return
	}
	d.looking(subject)
	if !d.examineVersion(subject, d.ControlVersion) {
		if d.Target == d.Control {
			d.Target = nil
		}
		d.Control = nil
	}
}

// machineTypes are the kinds of machine-controller-manager, by the names of their custom
// resource definitions.
var machineTypes = []struct {
	crd string
	of  reflect.Type
}{
	{"machineclasses.machine.sapcloud.io", reflect.TypeFor[v1alpha1.MachineClass]()},
	{"machinedeployments.machine.sapcloud.io", reflect.TypeFor[v1alpha1.MachineDeployment]()},
	{"machines.machine.sapcloud.io", reflect.TypeFor[v1alpha1.Machine]()},
	{"machinesets.machine.sapcloud.io", reflect.TypeFor[v1alpha1.MachineSet]()},
}

const installCRDs = "apply the custom resource definitions of machine-controller-manager " + managerVersion + " (kubernetes/README.md)"

// examineCRDs says of each definition whether it is served, and has all fields. No
// annotation names the version that a definition came with: its fields are compared with
// those of the version that the sidecar is built with.
func (d *Doctor) examineCRDs(ctx context.Context) {
	if d.Control == nil {
		return
	}
	d.looking("CRDs")
	for _, kind := range machineTypes {
		subject := "CRD " + kind.crd
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := d.Control.Get(ctx, client.ObjectKey{Name: kind.crd}, crd)
		switch {
		case apierrors.IsNotFound(err):
			d.wrong(subject, "is not there", installCRDs)
		case err != nil:
			d.unread(subject, err)
		default:
			d.examineCRD(subject, crd, kind.of)
		}
	}
}

func (d *Doctor) examineCRD(subject string, crd *apiextensionsv1.CustomResourceDefinition, kind reflect.Type) {
	served := v1alpha1.SchemeGroupVersion.Version
	index := slices.IndexFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return version.Name == served && version.Served
	})
	established := slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
	if index < 0 {
		d.wrong(subject, "does not serve "+served, installCRDs)
		return
	}
	if !established {
		d.wrong(subject, "is not established", "look at its status: kubectl describe crd "+crd.Name)
		return
	}
	var missing []string
	if schema := crd.Spec.Versions[index].Schema; schema != nil {
		missing = missingFields(kind, schema.OpenAPIV3Schema, "")
	}
	if len(missing) > 0 {
		d.wrong(subject, fmt.Sprintf("is older than %s: it lacks %s: %s", managerVersion, report.Count(len(missing), "field"), report.Some(missing)),
			"an unknown field is dropped when it is written: "+installCRDs)
		return
	}
	d.fine(subject, fmt.Sprintf("serves %s with all fields of %s", served, managerVersion))
}

// missingFields returns the paths of a Go type's fields that a schema lacks. A schema without
// properties, as that of metadata, is not looked into, nor one that keeps unknown fields.
func missingFields(kind reflect.Type, schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	if schema == nil || ptr.Deref(schema.XPreserveUnknownFields, false) {
		return nil
	}
	switch kind.Kind() {
	case reflect.Pointer:
		return missingFields(kind.Elem(), schema, path)
	case reflect.Slice:
		if schema.Items == nil {
			return nil
		}
		return missingFields(kind.Elem(), schema.Items.Schema, path)
	case reflect.Struct:
		if len(schema.Properties) == 0 {
			return nil
		}
		var missing []string
		for i := range kind.NumField() {
			missing = append(missing, missingField(kind.Field(i), schema, path)...)
		}
		return missing
	default:
		return nil
	}
}

func missingField(field reflect.StructField, schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name == "-", !field.IsExported():
		return nil
	case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
		return missingFields(field.Type, schema, path)
	case name == "":
		name = field.Name
	}
	property, ok := schema.Properties[name]
	if !ok {
		return []string{path + name}
	}
	return missingFields(field.Type, &property, path+name+".")
}
