// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

func (v *validator) gather(ctx context.Context) error {
	if v.SecretName != "" && !v.SecretGiven() {
		key := v.NamedKey(v.SecretName)
		secret, err := v.Secret(ctx, key)
		if err != nil {
			return err
		}
		v.named = &object{kind: kindSecret, namespace: key.Namespace, name: key.Name, value: secret}
	}
	if v.options.Cluster {
		return v.gatherCluster(ctx)
	}
	for _, manifest := range v.Manifests {
		v.gatherManifest(manifest)
	}
	return nil
}

func (v *validator) gatherManifest(given *manifest.Manifest) {
	found := &object{namespace: given.Namespace, name: given.Name, manifest: given}
	switch {
	case given.Kind == corev1.SchemeGroupVersion.WithKind(kindSecret):
		secret := &corev1.Secret{}
		found.kind, found.value, found.problems = kindSecret, secret, manifest.DecodeStrictly(given.JSON, secret)
		manifest.MergeStringData(secret)
		if v.secrets[found.key()] == nil {
			v.secrets[found.key()] = found
		}
	case given.Kind == v1alpha1.SchemeGroupVersion.WithKind(kindClass):
		class := &v1alpha1.MachineClass{}
		found.kind, found.value, found.problems = kindClass, class, manifest.DecodeStrictly(given.JSON, class)
	case given.Kind == v1alpha1.SchemeGroupVersion.WithKind(kindMachine):
		machine := &v1alpha1.Machine{}
		found.kind, found.value, found.problems = kindMachine, machine, manifest.DecodeStrictly(given.JSON, machine)
	case given.Kind == v1alpha1.SchemeGroupVersion.WithKind(kindDeployment):
		deployment := &v1alpha1.MachineDeployment{}
		found.kind, found.value, found.problems = kindDeployment, deployment, manifest.DecodeStrictly(given.JSON, deployment)
	default:
		found.kind = given.Kind.Kind
		problems := mistakenKind(given.Kind)
		for _, problem := range problems {
			v.report(found, report.Wrong, problem)
		}
		if len(problems) == 0 {
			v.result.NotChecked[report.OneLine(found.kind)]++
		}
		return
	}
	found.value.SetNamespace(given.Namespace)
	if earlier := v.find(found.kind, found.key()); earlier != nil {
		found.problems = append(found.problems, manifest.Problem{
			Path: "metadata.name", Found: fmt.Sprintf("is given twice, first at %v", earlier.manifest.Position("metadata.name")), Remedy: "leave one out",
		})
	}
	if v.SecretName != "" && given == v.ManifestOf(v.NamedKey(v.SecretName)) {
		v.named = found
	}
	v.objects = append(v.objects, found)
}

// machineKinds are those of the manager's API group.
var machineKinds = []string{kindClass, kindMachine, kindDeployment, "MachineSet"}

// mistakenKind returns what is wrong with a kind that was probably meant to be one that is
// checked; nothing if it is another one.
func mistakenKind(given schema.GroupVersionKind) []manifest.Problem {
	var meant schema.GroupVersionKind
	group := v1alpha1.SchemeGroupVersion.Group
	switch kind := manifest.Nearest(given.Kind, machineKinds); {
	case manifest.Nearest(given.Group, []string{group}) != "", given.Group == "" && kind != "":
		meant = v1alpha1.SchemeGroupVersion.WithKind(kind)
	case given.Group == "" && manifest.Nearest(given.Kind, []string{kindSecret}) != "":
		meant = corev1.SchemeGroupVersion.WithKind(kindSecret)
	default:
		return nil
	}
	var problems []manifest.Problem
	if version := given.GroupVersion().String(); version != meant.GroupVersion().String() {
		problems = append(problems, manifest.Problem{Path: "apiVersion", Found: "is " + report.Quoted(version), Remedy: "must be " + meant.GroupVersion().String()})
	}
	switch meant.Kind {
	case given.Kind:
	case "":
		problems = append(problems, manifest.Problem{Path: "kind", Found: fmt.Sprintf("is %s, which %s does not have", report.Quoted(given.Kind), group), Remedy: "must be one of: " + strings.Join(machineKinds, ", ")})
	default:
		problems = append(problems, manifest.Problem{Path: "kind", Found: "is " + report.Quoted(given.Kind), Remedy: "must be " + meant.Kind})
	}
	return problems
}

// find returns the object; nil if it is not among those that are looked at.
func (v *validator) find(kind string, key client.ObjectKey) *object {
	for _, object := range v.objects {
		if object.kind == kind && object.key() == key {
			return object
		}
	}
	return nil
}

// gatherCluster reads the objects of the namespace. Secrets are read where classes name
// them.
func (v *validator) gatherCluster(ctx context.Context) error {
	classes, err := v.Classes(ctx, v.Namespace)
	if err != nil {
		return err
	}
	deployments, err := v.MachineDeployments(ctx, v.Namespace)
	if err != nil {
		return err
	}
	machines, err := v.Machines(ctx, v.Namespace)
	if err != nil {
		return err
	}
	add := func(kind string, value client.Object) {
		v.objects = append(v.objects, &object{kind: kind, namespace: value.GetNamespace(), name: value.GetName(), value: value})
	}
	for _, class := range classes {
		add(kindClass, class)
	}
	for i := range deployments {
		add(kindDeployment, &deployments[i])
	}
	for i := range machines {
		add(kindMachine, &machines[i])
	}
	return nil
}

// checkName checks the name by the rule of the API server for these kinds.
func (v *validator) checkName(on *object) {
	switch {
	case on.name == "" && on.value.GetGenerateName() != "":
	case on.name == "":
		v.wrong(on, "metadata.name", "is missing", "give the object a name")
	default:
		if problems := validation.IsDNS1123Subdomain(on.name); len(problems) > 0 {
			v.wrong(on, "metadata.name", "is "+report.Quoted(on.name), "must be at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at the beginning, at the end, and beside each '.'")
		}
	}
}
