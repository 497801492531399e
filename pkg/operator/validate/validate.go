// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validate checks MachineClasses, their Secrets, Machines and MachineDeployments by
// the rules of the driver, of machine-controller-manager and, if asked, of the API.
package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/finding"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Options says what Validate looks at.
type Options struct {
	// Cluster says that the objects of Namespace are looked at. Else those of Manifests are,
	// and nothing is read from a cluster but the Secret that SecretName names, and the classes
	// of Machines and MachineDeployments that are in none of the Manifests.
	Cluster bool
	// Online asks the API whether it has what the classes name. Nothing is changed there.
	Online bool
	// Replicas is the number of machines, of each class, for which the quota must have room;
	// 0 leaves the quota alone. It is used with Online only.
	Replicas int64
	// AllowMissingSecret and AllowUnknown let ExitCode take for fine what cannot be told:
	// because a Secret is in none of the Manifests or has a placeholder, or for any reason.
	AllowMissingSecret, AllowUnknown bool
	// Progress is told what is being done; nil if nobody wants to know.
	Progress func(text string)
}

// Result is what Validate found.
type Result struct {
	Findings finding.Findings `json:"findings"`
	// Checked counts the objects that were looked at, by kind; NotChecked the others.
	Checked    map[string]int `json:"checked"`
	NotChecked map[string]int `json:"notChecked,omitempty"`
	// Effective has the providerSpec of each class as the driver uses it.
	Effective []EffectiveSpec `json:"-"`
	// allowed counts the findings that are unknown, and that the options allow.
	allowed int
}

// ExitCode is that of the findings, but for what the options allow not to be told.
func (r *Result) ExitCode() int {
	unknown := 0
	for i := range r.Findings {
		if r.Findings[i].Verdict == finding.Unknown {
			unknown++
		}
	}
	if code := r.Findings.ExitCode(); code != finding.ExitUnknown || r.allowed < unknown {
		return code
	}
	return finding.ExitFine
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

var errInterrupted = errors.New("not everything was checked")

// Run checks MachineClasses, their Secrets, Machines and MachineDeployments by the rules
// of the driver, of machine-controller-manager and, if asked, of the API. The error says why
// it could not begin.
func Run(ctx context.Context, o *account.Access, options Options) (*Result, error) {
	v := &validator{
		Access: o, options: options, reported: map[string]bool{}, secrets: map[client.ObjectKey]*object{}, inCluster: map[client.ObjectKey]error{},
		result: &Result{Findings: finding.Findings{}, Checked: map[string]int{}, NotChecked: map[string]int{}},
	}
	if err := v.gather(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	for _, broken := range o.Broken {
		v.result.Findings = append(v.result.Findings, finding.Finding{Verdict: finding.Wrong, Position: &broken.Position, Subject: "manifest", Found: broken.Text})
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
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	v.sortFindings()
	return v.result, nil
}

// sortFindings puts what is about files into the order of the files and their lines, and
// leaves the rest behind it.
func (v *validator) sortFindings() {
	files := map[string]int{}
	for _, manifest := range v.Manifests {
		if _, ok := files[manifest.File]; !ok {
			files[manifest.File] = len(files)
		}
	}
	slices.SortStableFunc(v.result.Findings, func(a, b finding.Finding) int {
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
	*account.Access
	options Options
	result  *Result
	// reported has the findings that were made, as text: a Secret of several classes is
	// wrong only once.
	reported map[string]bool
	objects  []*object
	// secrets are those among the objects, and those that were read from the cluster.
	secrets map[client.ObjectKey]*object
	// named is the Secret that SecretName names; nil if it names none.
	named *object
	// inCluster has what the cluster said of classes that are in no file; noCluster is the
	// error after which it is not asked again.
	inCluster map[client.ObjectKey]error
	noCluster error
	// classes are the checked classes, in the order in which they were checked.
	classes []*classCheck
}

// object is one that is looked at.
type object struct {
	kind, namespace, name string
	// manifest is nil if the object was read from a cluster.
	manifest *manifest.Manifest
	value    client.Object
	// problems are what decoding the manifest found.
	problems []manifest.Problem
}

func (o *object) subject() string {
	return finding.OneLine(fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name))
}

func (o *object) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: o.name}
}

// report adds a finding about an object, unless it was made before.
func (v *validator) report(on *object, verdict finding.Verdict, is manifest.Problem) {
	v.reportAllowing(false, on, verdict, is)
}

// reportAllowing is report; allowed says that an unknown finding does not count.
func (v *validator) reportAllowing(allowed bool, on *object, verdict finding.Verdict, is manifest.Problem) {
	finding := finding.Finding{
		Verdict: verdict, Subject: on.subject(), Field: finding.OneLine(is.Path), Found: finding.OneLine(is.Found), Remedy: finding.OneLine(is.Remedy),
	}
	if on.manifest != nil {
		finding.Position = on.manifest.Position(is.Path)
	}
	if text := finding.String(); !v.reported[text] {
		v.reported[text] = true
		v.add(allowed, finding)
	}
}

// add adds a finding; allowed says that an unknown one does not count.
func (v *validator) add(allowed bool, found finding.Finding) {
	v.result.Findings = append(v.result.Findings, found)
	if found.Verdict == finding.Unknown && (allowed || v.options.AllowUnknown) {
		v.result.allowed++
	}
}

func (v *validator) wrong(on *object, path, found, remedy string) {
	v.report(on, finding.Wrong, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

func (v *validator) unknown(on *object, path, found, remedy string) {
	v.report(on, finding.Unknown, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

// withoutSecret reports what cannot be told for want of a Secret.
func (v *validator) withoutSecret(on *object, path, found, remedy string) {
	v.reportAllowing(v.options.AllowMissingSecret, on, finding.Unknown, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

func (v *validator) fine(on *object, path, found string) {
	v.report(on, finding.Fine, manifest.Problem{Path: path, Found: found})
}

func (v *validator) progress(text string) {
	if v.options.Progress != nil {
		v.options.Progress(text)
	}
}

// check checks an object without the API.
func (v *validator) check(ctx context.Context, on *object) {
	for _, problem := range on.problems {
		v.report(on, finding.Wrong, problem)
	}
	v.checkName(on)
	switch value := on.value.(type) {
	case *v1alpha1.MachineClass:
		v.checkClass(ctx, on, value)
	case *v1alpha1.Machine:
		v.checkMachine(ctx, on, value)
	case *v1alpha1.MachineDeployment:
		v.checkDeployment(ctx, on, value)
	case *corev1.Secret:
		v.checkLoneSecret(on, value)
	}
}
