// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validate checks the MachineClasses, Secrets, Machines and MachineDeployments in manifests. kubectl's own
// library reads them, so that it checks what kubectl would apply.
package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/check"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Options configures Run.
type Options struct {
	// Files lists the manifests to read: files, folders and URLs.
	Files resource.FilenameOptions
	// Stdin is the content of the file name "-".
	Stdin io.Reader
	// Online also checks with the API that what the classes name exists and fits. It changes nothing there.
	Online bool
	// AllowMissingSecret is for CI, where no file has the Secrets: a missing one is only a hint, and one with the text
	// replace-me, or encrypted by SOPS, is missing.
	AllowMissingSecret bool
}

// Result holds the findings of Run.
type Result struct {
	Findings report.Findings `json:"findings"`
	// Checked and NotChecked count objects, by kind and by kind and apiVersion.
	Checked    map[string]int `json:"checked"`
	NotChecked map[string]int `json:"notChecked"`
}

// Kinds that are checked.
const (
	kindSecret     = "Secret"
	kindClass      = "MachineClass"
	kindMachine    = "Machine"
	kindDeployment = "MachineDeployment"
)

// validator is one call of Run.
type validator struct {
	*account.Access
	options Options
	result  *Result
	secrets map[client.ObjectKey]*corev1.Secret
	classes []*account.Class
	// missing is the verdict about a Secret that is not in the files.
	missing report.Verdict
	// sources maps the subjects of findings to the sources of their objects.
	sources map[string]*source
	// references are the classes that Machines and MachineDeployments name.
	references []reference
}

// reference is a class that an object names in a field.
type reference struct {
	subject, field string
	class          client.ObjectKey
}

// Run checks the objects in the manifests. It returns an error only if it cannot get the Secret of SecretName.
func Run(ctx context.Context, o *account.Access, options Options) (*Result, error) {
	v := &validator{Access: o, options: options, missing: report.Unknown, secrets: map[client.ObjectKey]*corev1.Secret{},
		sources: map[string]*source{}, result: &Result{Checked: map[string]int{}, NotChecked: map[string]int{}}}
	if options.AllowMissingSecret {
		v.missing = report.Hint
	}
	for _, path := range v.paths() {
		v.read(ctx, path)
	}
	for _, class := range v.classes {
		if err := v.findSecrets(ctx, class); err != nil {
			return nil, err
		}
		v.add(check.Class(class, o.Sessions, o.Clock)...)
	}
	for _, to := range v.references {
		isGiven := func(class *account.Class) bool { return client.ObjectKeyFromObject(class) == to.class }
		if to.class.Name != "" && !slices.ContainsFunc(v.classes, isGiven) {
			v.add(report.Finding{Verdict: report.Unknown, Subject: to.subject, Field: to.field,
				Found: fmt.Sprintf("%s %s is not in the files: whether it exists cannot be checked", kindClass, to.class)})
		}
	}
	if nothing := len(v.result.Checked) == v.result.Checked[kindSecret]; nothing &&
		v.result.Findings.ExitCode() == report.ExitFine {
		v.add(report.Finding{Verdict: report.Unknown, Subject: "manifests",
			Found: "there is no MachineClass, Machine or MachineDeployment to check"})
	}
	if options.Online {
		v.checkOnline(ctx)
	}
	slices.SortStableFunc(v.result.Findings, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(a.Position.File, b.Position.File), cmp.Compare(a.Position.Line, b.Position.Line))
	})
	return v.result, nil
}

func (v *validator) add(found ...report.Finding) {
	for _, each := range found {
		if source := v.sources[each.Subject]; source != nil {
			each.Position = source.position(each.Subject, each.Field)
		}
		if !slices.Contains(v.result.Findings, each) { // a Secret of several classes
			v.result.Findings = append(v.result.Findings, each)
		}
	}
}

// read takes the objects of a source, and reports what is wrong with it. Nothing is passed over in silence: both
// libraries must see as many objects, because kubectl's loses documents behind odd line ends.
func (v *validator) read(ctx context.Context, path string) {
	text, err := v.text(ctx, path)
	if err != nil {
		v.unread(path, err)
		return
	}
	from, taken := newSource(path, text, slices.Contains(v.options.Files.Filenames, path)), 0
	err = resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().Stream(bytes.NewReader(text), path).
		Do().Visit(func(info *resource.Info, err error) error {
		taken++
		if err == nil {
			err = v.take(from, info)
		}
		return err
	})
	failed, all := []error{err}, utilerrors.Aggregate(nil)
	if errors.As(err, &all) {
		failed = utilerrors.Flatten(all).Errors()
	}
	if from.problem != nil {
		failed = append(failed, from.problem)
	} else if err == nil && taken != len(from.objects) {
		failed = append(failed, fmt.Errorf("kubectl reads %d of its %d objects: check line ends, and begin each with ---",
			taken, len(from.objects)))
	}
	for _, err := range failed {
		if err != nil {
			v.add(from.finding(err))
		}
	}
}

// quoted matches what errors of the YAML libraries repeat of a text, such as the name of an anchor: it may be a value
// of a Secret that lost its quotes.
var quoted = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")

// finding returns the finding about an error of a source.
func (s *source) finding(err error) report.Finding {
	made := report.Finding{Verdict: report.Wrong, Position: report.Position{File: s.name}, Subject: "manifest"}
	text, _, _ := strings.Cut(err.Error(), " separator:") // kubectl repeats what stands behind ---
	isNone := regexp.MustCompile(`Object '(Kind|apiVersion)' is missing`).MatchString(text)
	switch {
	case isNone && (!s.isNamed || len(s.objects) == 0): // such as values.yaml in the folder, or an item null
		made.Verdict, made.Found = report.Hint, "lacks apiVersion or kind: skipped"
	case isNone:
		made.Found = "lacks apiVersion or kind: must be a Kubernetes object"
	default:
		made.Found = report.OneLine(quoted.ReplaceAllString(text, "…"))
	}
	return made
}

// kinds are the kinds that are decoded; decoder reports unknown fields, too.
var (
	kinds = func() *runtime.Scheme {
		scheme := runtime.NewScheme()
		scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{})
		scheme.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.MachineClass{}, &v1alpha1.Machine{},
			&v1alpha1.MachineDeployment{})
		return scheme
	}()
	decoder = serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer()
)

// isManagers reports whether a kind is meant to be one of the manager's that is checked.
func isManagers(kind schema.GroupVersionKind) bool {
	isOne := slices.Contains([]string{kindClass, kindMachine, kindDeployment}, kind.Kind)
	return kind.Group == v1alpha1.GroupName && kind.Kind != "MachineSet" || kind.Group == "" && isOne
}

// take decodes an object, and checks it as far as it needs no others.
func (v *validator) take(from *source, info *resource.Info) error {
	raw, err := json.Marshal(info.Object)
	if err != nil {
		return err
	}
	kind, namespace := info.Object.GetObjectKind().GroupVersionKind(), cmp.Or(info.Namespace, v.Namespace)
	decoded, _, err := decoder.Decode(raw, nil, nil)
	if runtime.IsNotRegisteredError(err) && !isManagers(kind) {
		v.result.NotChecked[report.OneLine(fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))]++
		return nil
	}
	if kind.Kind == kindSecret && v.isHidden(raw) {
		v.result.NotChecked["Secret without its values (v1)"]++
		return nil
	}
	subject := report.OneLine(fmt.Sprintf("%s %s/%s", kind.Kind, namespace, info.Name))
	if v.sources[subject] != nil && info.Name != "" {
		v.add(report.Finding{Verdict: report.Wrong, Subject: subject, Found: "is defined twice; remove one"})
	}
	v.sources[subject] = from
	v.result.Checked[kind.Kind]++
	v.addDecoding(subject, err)
	object, ok := decoded.(client.Object)
	if !ok {
		return nil
	}
	if info.Name == "" && object.GetGenerateName() == "" && kind.Kind != kindClass { // the driver wants a class's
		v.add(report.Finding{Verdict: report.Wrong, Subject: subject, Field: "metadata.name",
			Found: "Required value: set it, or generateName"})
	}
	object.SetNamespace(namespace)
	v.keep(subject, object)
	return nil
}

// keep keeps an object for the checks of others, and checks it if it needs none.
func (v *validator) keep(subject string, object client.Object) {
	refer := func(field, class string) {
		key := client.ObjectKey{Namespace: object.GetNamespace(), Name: class}
		v.references = append(v.references, reference{subject, field, key})
	}
	switch object := object.(type) {
	case *corev1.Secret:
		v.secrets[client.ObjectKeyFromObject(object)] = object
	case *v1alpha1.MachineClass:
		v.classes = append(v.classes, account.NewClass(object))
	case *v1alpha1.Machine:
		v.add(check.Machine(object)...)
		refer("spec.class.name", object.Spec.Class.Name)
	case *v1alpha1.MachineDeployment:
		v.add(check.Deployment(object)...)
		refer("spec.template.spec.class.name", object.Spec.Template.Spec.Class.Name)
	}
}

// isHidden reports whether a Secret's values are not in the file: SOPS has encrypted them or, in CI, they are the
// samples' placeholders.
func (v *validator) isHidden(raw []byte) bool {
	return bytes.Contains(raw, []byte(`"ENC[AES256_GCM,`)) || bytes.Contains(raw, []byte(`"sops":`)) ||
		v.options.AllowMissingSecret && bytes.Contains(raw, []byte("replace-me"))
}

// addDecoding reports the errors of the strict decoder, which name a field at their end. A newer manager may have more
// fields in its status.
func (v *validator) addDecoding(subject string, err error) {
	wrong := []error{err}
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		wrong = strict.Errors()
	}
	for _, err := range wrong {
		if err == nil || strings.HasPrefix(err.Error(), `unknown field "status.`) {
			continue
		}
		text := report.OneLine(err.Error())
		_, path, _ := strings.Cut(strings.TrimSuffix(text, `"`), `field "`)
		if strings.HasPrefix(subject, kindSecret) { // a value that lost its quotes may be a field
			text, path = quoted.ReplaceAllString(text, "…"), ""
		}
		v.add(report.Finding{Verdict: report.Wrong, Subject: subject, Field: path, Found: text})
	}
}

// findSecrets sets the Secrets of a class: that of --secret, or its own in the files.
func (v *validator) findSecrets(ctx context.Context, class *account.Class) error {
	var keys []client.ObjectKey
	for _, ref := range account.SecretRefs(class.MachineClass) {
		if ref.Name != "" && ref.Namespace != "" {
			keys = append(keys, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	if v.SecretName != "" {
		keys = []client.ObjectKey{v.NamedKey(v.SecretName)}
	}
	var secrets []*corev1.Secret
	for _, key := range keys {
		secret := v.secrets[key]
		if secret == nil && v.SecretName != "" {
			var err error
			if secret, err = v.Secret(ctx, key); err != nil {
				return cmp.Or(v.ControlError, err)
			}
		}
		if secret == nil {
			v.add(report.Finding{Verdict: v.missing, Subject: class.Subject(), Field: "secretRef",
				Found: fmt.Sprintf("Secret %s is not in the files: add it with -f, or name one with --secret", key)})
			return nil
		}
		secrets = append(secrets, secret)
	}
	*class = *account.NewClass(class.MachineClass, secrets...)
	return nil
}

// checkOnline checks the classes with the API, those of one account together.
func (v *validator) checkOnline(ctx context.Context) {
	var accounts []*account.Account
	for _, class := range v.classes {
		var in *account.Account
		var err error
		switch region := class.Inputs.Spec.Region; {
		case v.Direct != nil:
			in, err = v.OpenDirect(region)
		case len(class.Secrets) == 0:
			v.add(report.Finding{Verdict: v.missing, Subject: class.Subject(),
				Found: "could not be checked online: its Secret is not in the files"})
			continue
		default:
			in, err = v.Open(class.Secret(), region, "the Secret of "+class.Subject())
		}
		if err != nil {
			v.add(report.Finding{Verdict: report.Unknown, Subject: class.Subject(),
				Found: "could not be checked online: " + report.OneLine(err.Error())})
			continue
		}
		in.Classes = []*account.Class{class}
		accounts = account.Add(accounts, in)
	}
	if len(v.classes) == 0 {
		v.add(report.Finding{Verdict: report.Unknown, Subject: "online",
			Found: "the API was not called: there is no MachineClass"})
	}
	for _, in := range accounts {
		v.add(check.Online(ctx, in)...)
	}
}
