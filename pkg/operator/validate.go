// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Validation says what Validate looks at.
type Validation struct {
	// Cluster says that the objects of Namespace are looked at. Else those of Manifests are,
	// and nothing is read from a cluster but the Secret that SecretName names.
	Cluster bool
	// Online asks the API whether it has what the classes name. Nothing is changed there.
	Online bool
	// Replicas is the number of machines, of each class, for which the quota must have room;
	// 0 leaves the quota alone. It is used with Online only.
	Replicas int64
	// Progress is told what is being done; nil if nobody wants to know.
	Progress func(text string)
}

// ValidationResult is what Validate found.
type ValidationResult struct {
	Findings Findings `json:"findings"`
	// Checked counts the objects that were looked at, by kind; NotChecked the others.
	Checked    map[string]int `json:"checked"`
	NotChecked map[string]int `json:"notChecked,omitempty"`
	// Effective has the providerSpec of each class as the driver uses it.
	Effective []EffectiveSpec `json:"-"`
}

// EffectiveSpec is the providerSpec of a class with what the Secret and the defaults add. Of
// userData it has only the length.
type EffectiveSpec struct {
	// MachineClass is the class's namespace and name.
	MachineClass string             `json:"machineClass"`
	ProviderSpec *apis.ProviderSpec `json:"providerSpec"`
}

// ErrNothingToValidate says that no object is of a kind that Validate knows.
var ErrNothingToValidate = errors.New("there is no MachineClass, Machine, MachineDeployment or Secret to check")

// Validate checks MachineClasses, their Secrets, Machines and MachineDeployments by the rules
// of the driver, of machine-controller-manager and, if asked, of the API. The error says why
// it could not begin.
func (o *Operator) Validate(ctx context.Context, options Validation) (*ValidationResult, error) {
	v := &validator{
		Operator: o, options: options, reported: map[string]bool{}, secrets: map[client.ObjectKey]*object{},
		result: &ValidationResult{Findings: Findings{}, Checked: map[string]int{}, NotChecked: map[string]int{}},
	}
	if err := v.gather(ctx); err != nil {
		return nil, err
	}
	for _, broken := range o.Broken {
		v.result.Findings = append(v.result.Findings, Finding{Verdict: Wrong, Position: &broken.Position, Subject: "manifest", Found: broken.Text})
	}
	if len(v.objects) == 0 && len(v.result.Findings) == 0 {
		return v.result, ErrNothingToValidate
	}
	for _, object := range v.objects {
		v.result.Checked[object.kind]++
		v.check(ctx, object)
	}
	for _, object := range v.objects {
		if deployment, ok := object.value.(*v1alpha1.MachineDeployment); ok {
			v.checkServesOne(object, deployment)
		}
	}
	if options.Online {
		v.checkOnline(ctx)
	}
	v.sortFindings()
	return v.result, nil
}

// sortFindings puts what is about files into the order of the files and their lines, and
// leaves the rest behind it.
func (v *validator) sortFindings() {
	files := map[string]int{}
	for _, manifest := range v.Manifests {
		if _, ok := files[manifest.file]; !ok {
			files[manifest.file] = len(files)
		}
	}
	slices.SortStableFunc(v.result.Findings, func(a, b Finding) int {
		switch {
		case a.Position == nil && b.Position == nil:
			return 0
		case a.Position == nil:
			return 1
		case b.Position == nil:
			return -1
		}
		return cmp.Or(
			cmp.Compare(files[a.Position.File], files[b.Position.File]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

// validator is a run of Validate.
type validator struct {
	*Operator
	options Validation
	result  *ValidationResult
	// reported has the findings that were made, as text: a Secret of several classes is
	// wrong only once.
	reported map[string]bool
	objects  []*object
	// secrets are those among the objects, and those that were read from the cluster.
	secrets map[client.ObjectKey]*object
	// named is the Secret that SecretName names; nil if it names none.
	named *object
	// classes are the checked classes, in the order in which they were checked.
	classes []*classCheck
}

// object is one that is looked at.
type object struct {
	kind, namespace, name string
	// manifest is nil if the object was read from a cluster.
	manifest *Manifest
	value    client.Object
	// problems are what decoding the manifest found.
	problems []problem
}

func (o *object) subject() string {
	return OneLine(fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name))
}

func (o *object) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: o.name}
}

// report adds a finding about an object, unless it was made before.
func (v *validator) report(on *object, verdict Verdict, is problem) {
	finding := Finding{
		Verdict: verdict, Subject: on.subject(), Field: OneLine(is.path), Found: OneLine(is.found), Remedy: OneLine(is.remedy),
	}
	if on.manifest != nil {
		finding.Position = on.manifest.Position(is.path)
	}
	if text := finding.String(); !v.reported[text] {
		v.reported[text] = true
		v.result.Findings = append(v.result.Findings, finding)
	}
}

func (v *validator) wrong(on *object, path, found, remedy string) {
	v.report(on, Wrong, problem{path, found, remedy})
}

func (v *validator) unknown(on *object, path, found, remedy string) {
	v.report(on, Unknown, problem{path, found, remedy})
}

func (v *validator) fine(on *object, path, found string) {
	v.report(on, Fine, problem{path: path, found: found})
}

func (v *validator) progress(text string) {
	if v.options.Progress != nil {
		v.options.Progress(text)
	}
}

// check checks an object without the API.
func (v *validator) check(ctx context.Context, on *object) {
	for _, problem := range on.problems {
		v.report(on, Wrong, problem)
	}
	v.checkName(on)
	switch value := on.value.(type) {
	case *v1alpha1.MachineClass:
		v.checkClass(ctx, on, value)
	case *v1alpha1.Machine:
		v.checkMachine(on, value)
	case *v1alpha1.MachineDeployment:
		v.checkDeployment(on, value)
	case *corev1.Secret:
		v.checkLoneSecret(on, value)
	}
}
