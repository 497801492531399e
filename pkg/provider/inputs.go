// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

var labelsPath = apis.SpecPath.Child("labels")

// Inputs holds a MachineClass and its Secret, decoded and checked as in every call of the driver.
type Inputs struct {
	// Secret is the decoded Secret, never nil. It holds credentials and must not be logged.
	Secret *apis.Secret
	// Spec is the providerSpec with its defaults set. A field that could not be decoded is empty.
	Spec *apis.ProviderSpec
	// ClusterLabels are the labels of Spec that distinguish a cluster's servers from others:
	// usually one or none. ClusterLabels is nil if region or labels cannot be decoded, or one of the
	// cluster labels is invalid.
	ClusterLabels map[string]string
	// Unknown lists the unknown and duplicate fields of the providerSpec, as
	// apis.DecodeProviderSpec reports them. The driver ignores them, or refuses the spec with
	// --strict-provider-spec.
	Unknown []error
	// Errors lists every invalid field for which CreateMachine and InitializeMachine are refused; the
	// other methods need fewer valid fields. Each path begins with providerSpec, secret or machineClass.
	Errors field.ErrorList
}

// Inspect decodes and checks a class and its Secret as the driver does, for package operator. It
// opens no session, and does not check the service-account key itself: package spi does. A nil
// Secret counts as empty.
func Inspect(class *v1alpha1.MachineClass, secret *corev1.Secret) *Inputs {
	if secret == nil {
		secret = &corev1.Secret{}
	}
	in, needed := decodeInputs(nil, class, secret, strict), decodeInputs(nil, class, secret, lenient)
	if len(needed.scope) == 0 {
		in.ClusterLabels = needed.identity.cluster
	}
	return &in.Inputs
}

// inputs is a request's decoded input. In a lenient call its errors are limited to fields that
// every call needs.
type inputs struct {
	Inputs
	identity identity
	// specHash is zero in a lenient call.
	specHash specHash
	// scope holds the errors of a lenient call that make the class's servers indistinguishable from
	// others: about the types of region and labels, and cluster labels.
	scope field.ErrorList
	// network holds the errors of a lenient call because of which the spec's networking cannot be read.
	network field.ErrorList
}

// specHash is the SHA-256 of the raw providerSpec.
type specHash [sha256.Size]byte

// inputs decodes and checks a request's inputs.
func (p *Provider) inputs(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) *inputs {
	in := decodeInputs(machine, class, secret, mode)
	if mode == lenient {
		return in
	}
	in.specHash = sha256.Sum256(class.ProviderSpec.Raw)
	if p.strictSpec {
		for _, problem := range in.Unknown {
			in.Errors = append(in.Errors, field.Invalid(apis.SpecPath, field.OmitValueType{}, problem.Error()))
		}
	}
	return in
}

// decodeInputs decodes and checks a request's inputs. machine is nil for a call about a class. Of a
// providerSpec that cannot be decoded no value is checked.
func decodeInputs(
	machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness,
) *inputs {
	in := &inputs{}
	var wrong field.ErrorList
	if raw := class.ProviderSpec.Raw; mode == strict {
		in.Spec, in.Unknown, wrong = apis.DecodeProviderSpec(raw)
	} else {
		in.Spec, wrong, in.network = apis.DecodeNeeded(raw)
	}
	in.Secret, in.Errors = apis.DecodeSecret(secret.Data)
	in.Errors = append(in.Errors, validation.ValidateSecret(in.Secret, apis.SecretPath)...)
	in.Errors = slices.Concat(in.Errors, checkProvider(class), wrong)
	apis.SetDefaults(in.Spec, in.Secret)
	names := in.identify(machine, class.Name)
	switch spec := in.Spec; {
	case len(wrong) > 0:
		in.scope = wrong
	case mode == strict:
		in.Errors = slices.Concat(in.Errors, validation.ValidateProviderSpec(spec, apis.SpecPath), names)
	default:
		in.scope = validation.ValidateLabels(in.identity.cluster, labelsPath)
		in.network = append(in.network, validation.ValidateNetworking(spec.Networking, apis.SpecPath.Child("networking"))...)
		in.Errors = slices.Concat(in.Errors, in.scope, validation.ValidateRegion(spec.Region, apis.SpecPath.Child("region")),
			apis.CheckLength(len(spec.UserData), apis.MaxUserData, apis.SpecPath.Child("userData")))
	}
	return in
}

// checkProvider returns an error if the class is another provider's.
func checkProvider(class *v1alpha1.MachineClass) field.ErrorList {
	if class.Provider == "" || class.Provider == StackitProviderName {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath("machineClass", "provider"), class.Provider,
		[]string{StackitProviderName})}
}

// unlistable returns why the servers of a class cannot be listed with any Secret; nil if they can.
func unlistable(class *v1alpha1.MachineClass) error {
	if class == nil {
		return nil // newCall returns the error
	}
	if errs := append(checkProvider(class), decodeInputs(nil, class, &corev1.Secret{}, lenient).scope...); len(errs) > 0 {
		return invalidError(errs)
	}
	return nil
}

func (in *inputs) unknownText() string {
	var texts []string
	for _, problem := range in.Unknown {
		texts = append(texts, problem.Error())
	}
	return strings.Join(texts, ", ")
}

// identify sets the identity, and returns an error for each of its names that cannot be a label.
func (in *inputs) identify(machine *v1alpha1.Machine, class string) field.ErrorList {
	errs := validation.ValidateMachineName(class, field.NewPath("machineClass", "metadata", "name"))
	name := ""
	if machine != nil {
		name = machine.Name
		errs = append(errs, validation.ValidateMachineName(name, field.NewPath("machine", "metadata", "name"))...)
	}
	in.identity = newIdentity(name, class, in.Spec.Labels)
	if machine != nil && CameFromOpenStack(machine) {
		in.identity.fromOpenStack, in.identity.byName = true, machine.Spec.ProviderID == ""
	}
	in.identity.unlabelable = len(errs) > 0
	return errs
}

// problems returns why a call cannot be made with these inputs; nil if it can. sessionErr is the
// error of opening the session, which checks the credentials.
func (in *inputs) problems(sessionErr error) error {
	all := slices.Clone(in.Errors)
	problem := CredentialsProblem(in.Secret, sessionErr, all)
	if problem != nil && (problem.Type == field.ErrorTypeRequired || len(all) > 0) {
		all = append(all, problem)
	}
	if len(all) > 0 {
		return invalidError(all)
	}
	return sessionErr
}

// Credentials returns the Secret's credentials in the form in which the driver opens a session.
func Credentials(secret *apis.Secret) spi.Credentials {
	return spi.Credentials{
		ProjectID: secret.ProjectID, ServiceAccountKey: secret.ServiceAccountKey,
		ServiceAccountEmail: secret.ServiceAccountEmail, Token: secret.Token,
	}
}

// CredentialsProblem converts the error of opening a session into an error about a field of the
// Secret. It returns nil if sessionErr is not an *spi.CredentialsError, or if reported already has an
// error about the credentials. The type is field.ErrorTypeRequired if the Secret has no credentials.
func CredentialsProblem(secret *apis.Secret, sessionErr error, reported field.ErrorList) *field.Error {
	var unusable *spi.CredentialsError
	isReported := slices.ContainsFunc(reported, func(err *field.Error) bool {
		key, isSecrets := strings.CutPrefix(err.Field, apis.SecretPath.String()+".")
		return isSecrets && slices.Contains(apis.SecretCredentials, key)
	})
	if isReported || !errors.As(sessionErr, &unusable) {
		return nil
	}
	path := apis.SecretPath.Child(secret.CredentialsKey())
	if errors.Is(sessionErr, spi.ErrNoCredentials) {
		return field.Required(path, fmt.Sprintf("must be a service account key in JSON; or set %s and %s",
			apis.SecretServiceAccountEmail, apis.SecretToken))
	}
	return field.Invalid(path, field.OmitValueType{}, unusable.Reason)
}
