// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// strictness of decoding a call's inputs.
type strictness bool

const (
	// strict asks for a valid spec: the call is going to use it.
	strict strictness = true
	// lenient needs project, region and identity only: a machine whose class was
	// broken after it was made must still be found and deleted.
	lenient strictness = false
)

// inputs are a request's, decoded, with all that is wrong with them.
type inputs struct {
	identity identity
	secret   *apis.Secret
	// spec has its defaults set; what could not be decoded is not set.
	spec *apis.ProviderSpec
	// unknown names fields of the providerSpec that are ignored.
	unknown []string
	// needed are errors in what every call needs, others all the rest.
	needed, others field.ErrorList
}

// decodeInputs decodes and checks a request's inputs. machine is nil for a call
// about a class.
func decodeInputs(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, refuseUnknown bool) *inputs {
	in := &inputs{}
	in.secret, in.needed = apis.DecodeSecret(secret.Data)
	in.needed = append(in.needed, unrelated(validation.ValidateSecret(in.secret, apis.SecretPath), in.needed)...)
	in.decodeSpec(class.ProviderSpec.Raw, refuseUnknown)
	in.identify(machine, class.Name)
	return in
}

func (in *inputs) decodeSpec(raw []byte, refuseUnknown bool) {
	var decoding field.ErrorList
	in.spec, in.unknown, decoding = apis.DecodeProviderSpec(raw)
	if in.spec == nil {
		in.spec = &apis.ProviderSpec{}
	}
	in.identity.clusterUnknown = about(apis.SpecPath.Child("labels"), decoding)
	network := validation.ValidateSecretNetwork(in.spec, in.secret, apis.SecretPath)
	apis.SetDefaults(in.spec, in.secret)

	region := apis.SpecPath.Child("region")
	in.needed = append(in.needed, validation.ValidateRegion(in.spec.Region, region)...)
	reported := append(slices.Clone(decoding), &field.Error{Field: region.String()})
	if len(network) > 0 {
		reported = append(reported, &field.Error{Field: apis.SpecPath.Child("networking").String()})
	}
	in.others = append(decoding, network...)
	in.others = append(in.others, unrelated(validation.ValidateProviderSpec(in.spec, apis.SpecPath), reported)...)
	if refuseUnknown {
		for _, problem := range in.unknown {
			in.others = append(in.others, field.Invalid(apis.SpecPath, field.OmitValueType{}, problem))
		}
	}
}

// identify finds out who the call acts for, and whether the names can be labels.
func (in *inputs) identify(machine *v1alpha1.Machine, class string) {
	errs := validation.ValidateMachineClassName(class, field.NewPath("machineClass", "metadata", "name"))
	name := ""
	if machine != nil {
		name = machine.Name
		errs = append(errs, validation.ValidateMachineName(name, field.NewPath("machine", "metadata", "name"))...)
	}
	unknown := in.identity.clusterUnknown
	in.identity = newIdentity(name, class, in.spec.Labels)
	in.identity.clusterUnknown = unknown
	in.identity.nameless = len(errs) > 0 || len(validation.ValidateLabels(in.identity.cluster, nil)) > 0
	in.others = append(in.others, errs...)
}

// problems is the error of a call that cannot be made with these inputs, nil if
// it can. sessionErr is the session's, which knows what is wrong with the key.
// All that is wrong is told at once, also what a lenient call could live with.
func (in *inputs) problems(mode strictness, sessionErr error) error {
	all := append(slices.Clone(in.needed), in.others...)
	var key *spi.CredentialsError
	unusable := errors.As(sessionErr, &key)
	if path := apis.SecretPath.Child(apis.SecretServiceAccountKey); unusable && !about(path, all) && len(all) > 0 {
		all = append(all, field.Invalid(path, field.OmitValueType{}, key.Reason))
	}
	if len(in.needed) > 0 || len(all) > 0 && (mode == strict || unusable) {
		return invalidError(all)
	}
	return sessionErr
}

// about says whether one of the errors is about the field, a part of it, or what
// it is a part of.
func about(path *field.Path, errs field.ErrorList) bool {
	return len(unrelated(field.ErrorList{{Field: path.String()}}, errs)) == 0
}

// unrelated drops those of found that are about a field, or a part of one, that
// reported is about already.
func unrelated(found, reported field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(found, func(err *field.Error) bool {
		return slices.ContainsFunc(reported, func(earlier *field.Error) bool {
			rest, within := strings.CutPrefix(err.Field, earlier.Field)
			return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}
