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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// Options says what Run looks at.
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

// Result is what Run found.
type Result struct {
	Findings report.Findings `json:"findings"`
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
	if code := r.Findings.ExitCode(); code != report.ExitUnknown || r.allowed < r.Findings.Count()[report.Unknown] {
		return code
	}
	return report.ExitFine
}

// EffectiveSpec is the providerSpec of a class with what the Secret and the defaults add. Of
// userData it has only the length.
type EffectiveSpec struct {
	// MachineClass is the class's namespace and name.
	MachineClass string             `json:"machineClass"`
	ProviderSpec *apis.ProviderSpec `json:"providerSpec"`
}

// validator is one Run.
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

// Kinds of the objects that are checked.
const (
	kindClass      = "MachineClass"
	kindMachine    = "Machine"
	kindDeployment = "MachineDeployment"
	kindSecret     = "Secret"
)

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
	return report.OneLine(fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name))
}

func (o *object) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.namespace, Name: o.name}
}

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

// missingSecret is one that is in none of the files, and the reference to it.
type missingSecret struct {
	path string
	key  client.ObjectKey
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

// regionOfSecret says whether the class leaves the region to its Secrets, and they have one.
func (c *classCheck) regionOfSecret() bool {
	spec, _, _ := apis.DecodeProviderSpec(c.class.ProviderSpec.Raw)
	return (spec == nil || spec.Region == "") && c.inputs.Secret.Region != ""
}

// report adds a finding about an object, unless it was made before.
func (v *validator) report(on *object, verdict report.Verdict, is manifest.Problem) {
	v.reportAllowing(false, on, verdict, is)
}

// reportAllowing is report; allowed says that an unknown finding does not count.
func (v *validator) reportAllowing(allowed bool, on *object, verdict report.Verdict, is manifest.Problem) {
	finding := report.Finding{
		Verdict: verdict, Subject: on.subject(), Field: report.OneLine(is.Path), Found: report.OneLine(is.Found), Remedy: report.OneLine(is.Remedy),
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
func (v *validator) add(allowed bool, found report.Finding) {
	v.result.Findings = append(v.result.Findings, found)
	if found.Verdict == report.Unknown && (allowed || v.options.AllowUnknown) {
		v.result.allowed++
	}
}

func (v *validator) wrong(on *object, path, found, remedy string) {
	v.report(on, report.Wrong, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

func (v *validator) unknown(on *object, path, found, remedy string) {
	v.report(on, report.Unknown, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

// withoutSecret reports what cannot be told for want of a Secret.
func (v *validator) withoutSecret(on *object, path, found, remedy string) {
	v.reportAllowing(v.options.AllowMissingSecret, on, report.Unknown, manifest.Problem{Path: path, Found: found, Remedy: remedy})
}

func (v *validator) fine(on *object, path, found string) {
	v.report(on, report.Fine, manifest.Problem{Path: path, Found: found})
}

func (v *validator) progress(text string) {
	if v.options.Progress != nil {
		v.options.Progress(text)
	}
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
		return "is " + report.Quoted(err.BadValue), "must be " + strings.ReplaceAll(strings.TrimPrefix(err.Detail, "supported values: "), ", ", " or ")
	case err.Type == field.ErrorTypeDuplicate:
		return report.Quoted(err.BadValue) + " is there twice", "leave one out"
	case err.Type == field.ErrorTypeTooMany:
		return "has too many items", err.Detail
	default:
		return "is " + report.Quoted(err.BadValue), err.Detail
	}
}

// hasErrorAt says whether an error is about this very field.
func hasErrorAt(path string, errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field == path })
}
