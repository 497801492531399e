// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validate checks MachineClasses, their Secrets, Machines and MachineDeployments by the rules of the driver, of
// machine-controller-manager and, on request, of the API.
package validate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Options configures Run.
type Options struct {
	// Files lists the manifests to read: files, folders, patterns and URLs.
	Files resource.FilenameOptions
	// Stdin is the content of the file name "-".
	Stdin io.Reader
	// Online also checks with the API that the resources that the classes name exist and fit, and that
	// the quota suffices. It changes nothing there.
	Online bool
	// AllowMissingSecret turns two kinds of findings into Hints: Unknown ones about a missing Secret,
	// and all about a Secret's value that has the placeholder replace-me.
	AllowMissingSecret bool
}

// Result holds the findings of Run.
type Result struct {
	Findings report.Findings
	// Checked counts the checked objects by kind, with only the Secrets that a class uses.
	// NotChecked counts objects of other kinds and encrypted Secrets, by kind and apiVersion.
	Checked, NotChecked map[string]int
}

// validator is one call of Run.
type validator struct {
	*account.Access
	options Options
	result  *Result
	// files maps file names to their order. reported has the text of each finding made, so that a Secret of several
	// classes is reported once.
	files    map[string]int
	reported map[string]bool
	objects  []*object
	// named is the Secret named by SecretName, which replaces the classes' own; nil if SecretName is empty.
	named *object
	// classes are in the order in which they were checked.
	classes []*classCheck
}

// Run checks the objects in the manifests. The Access gives the credentials, the Secret that replaces the classes' own
// (SecretName), and the clock. Run returns an error only if it cannot get that Secret: an unreadable manifest is a
// Finding.
func Run(ctx context.Context, o *account.Access, options Options) (*Result, error) {
	v := &validator{
		Access: o, options: options, files: map[string]int{}, reported: map[string]bool{},
		result: &Result{Checked: map[string]int{}, NotChecked: map[string]int{}},
	}
	if err := v.gather(ctx); err != nil {
		return nil, err
	}
	for _, isClass := range []bool{true, false} { // Machines are compared with their classes
		for _, object := range v.objects {
			if isClass == (object.kind == kindClass) {
				v.check(object)
			}
		}
	}
	for _, object := range v.objects {
		if object.kind != kindSecret || object.used {
			v.result.Checked[object.kind]++
		}
	}
	if len(v.result.Checked) == 0 && v.result.Findings.ExitCode() == report.ExitFine {
		v.add(report.Finding{Verdict: report.Unknown, Subject: "manifests",
			Found: "there is no MachineClass, Machine or MachineDeployment to check"})
	}
	if options.Online {
		v.checkOnline(ctx)
	}
	v.sortFindings()
	return v.result, nil
}

// byteOrderMark matches one at the start of a text and of a document in it, where an editor or cat leaves it.
var byteOrderMark = regexp.MustCompile(`(?m)(\A|^---.*\n)\x{feff}`)

// gather reads the objects, and the Secret of --secret if it is not among them.
func (v *validator) gather(ctx context.Context) error {
	sources := v.sources()
	v.files[""] = len(sources)
	for i := range sources {
		source := &sources[i]
		v.files[source.name] = i
		text, err := source.read(ctx)
		if err != nil {
			v.unread(source.name, err)
			continue
		}
		for _, document := range v.split(source, byteOrderMark.ReplaceAll(text, []byte("$1"))) {
			document.read()
		}
	}
	if v.SecretName == "" {
		return nil
	}
	key := v.NamedKey(v.SecretName)
	if v.named = v.find(kindSecret, key); v.named != nil {
		return nil
	}
	if v.Control == nil {
		return cmp.Or(v.ControlError,
			fmt.Errorf("the Secret %s of --secret is not in the files, and no cluster is read", key))
	}
	secret, err := v.Secret(ctx, key)
	if err != nil {
		return err
	}
	v.named = &object{kind: kindSecret, namespace: key.Namespace, name: key.Name, value: secret}
	return nil
}

// find returns an object by kind and key; nil if it is not among the objects to check.
func (v *validator) find(kind string, key client.ObjectKey) *object {
	for _, object := range v.objects {
		if object.kind == kind && object.key() == key {
			return object
		}
	}
	return nil
}

// check checks an object without the API.
func (v *validator) check(on *object) {
	for _, problem := range on.problems {
		v.report(on, report.Wrong, problem.path, problem.text)
	}
	if on.partial {
		return
	}
	switch value := on.value.(type) {
	case *v1alpha1.MachineClass:
		v.checkClass(on, value)
	case *v1alpha1.Machine:
		v.checkMachine(on, value)
	case *v1alpha1.MachineDeployment:
		v.checkDeployment(on, value)
	}
}

// sortFindings sorts findings in files by file and position, followed by the others.
func (v *validator) sortFindings() {
	slices.SortStableFunc(v.result.Findings, func(a, b report.Finding) int {
		return cmp.Or(
			cmp.Compare(v.files[a.Position.File], v.files[b.Position.File]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

// report adds a finding about an object, unless it was added before.
func (v *validator) report(on *object, verdict report.Verdict, path, text string) {
	made := report.Finding{
		Verdict: verdict, Position: on.position(path),
		Subject: on.subject(), Field: report.OneLine(path), Found: report.OneLine(text),
	}
	if on.kind == kindSecret { // a value that lost its quotes may be a field
		made.Field = shortened(made.Field)
	}
	if text := made.String(); !v.reported[text] {
		v.reported[text] = true
		v.add(made)
	}
}

func (v *validator) add(found report.Finding) {
	v.result.Findings = append(v.result.Findings, found)
}

func (v *validator) wrong(on *object, path, format string, args ...any) {
	v.report(on, report.Wrong, path, fmt.Sprintf(format, args...))
}

// invalid reports a field with a wrong value, and the right one.
func (v *validator) invalid(on *object, path string, value any, format string, args ...any) {
	v.report(on, report.Wrong, path, body(field.Invalid(nil, value, fmt.Sprintf(format, args...))))
}

// withoutSecret reports a check that is impossible without a Secret.
func (v *validator) withoutSecret(on *object, path, text string) {
	verdict := report.Unknown
	if v.options.AllowMissingSecret {
		verdict = report.Hint
	}
	v.report(on, verdict, path, text)
}

// body returns an error's text about its field, in the API server's words, with a long value shortened.
func body(err *field.Error) string {
	short := *err
	if text := fmt.Sprint(err.BadValue); shortened(text) != text {
		short.BadValue = shortened(text)
	}
	return short.ErrorBody()
}

// shortened returns at most the first 80 characters of a text.
func shortened(text string) string {
	const maxLength = 80
	if runes := []rune(text); len(runes) > maxLength {
		return string(runes[:maxLength]) + "..."
	}
	return text
}
