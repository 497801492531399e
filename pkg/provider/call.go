// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// call is a driver call with its inputs decoded.
type call struct {
	identity
	// spec has its defaults set. In a lenient call it may be invalid or in part
	// empty.
	spec      *apis.ProviderSpec
	projectID string
	client    StackitClient
	inventory inventory
	// ledger is the process's, key the machine's place in it.
	ledger *ledger
	key    ledgerKey
}

// strictness of decoding a call's inputs.
type strictness bool

const (
	// strict asks for a valid spec: the call is going to use it.
	strict strictness = true
	// lenient needs project, region and identity only: a machine whose class was
	// broken after it was made must still be found and deleted.
	lenient strictness = false
)

// newCall decodes and checks the inputs of a call, and opens the session. machine
// is nil for a call about a class. All that is wrong is told at once, with the
// paths of the fields.
func (p *Provider) newCall(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret, mode strictness) (*call, error) {
	if class == nil {
		return nil, newError(codes.InvalidArgument, "the request has no MachineClass")
	}
	if secret == nil {
		return nil, newError(codes.InvalidArgument, "the request has no Secret")
	}
	decoded, errs := apis.DecodeSecret(secret.Data)
	errs = append(errs, validation.ValidateSecret(decoded, apis.SecretPath)...)
	spec, identity, specErrs := p.decodeSpec(machine, class, decoded, mode)
	errs = append(errs, specErrs...)

	session, err := p.session(spi.Credentials{ProjectID: decoded.ProjectID, ServiceAccountKey: decoded.ServiceAccountKey})
	if len(errs) > 0 {
		return nil, invalidError(withKeyError(errs, err))
	}
	if err != nil {
		return nil, err
	}
	client := newStackitClient(session, spec.Region)
	return &call{
		identity:  identity,
		spec:      spec,
		projectID: decoded.ProjectID,
		client:    client,
		inventory: inventory{client: client, clock: p.clock},
		ledger:    p.ledger,
		key:       ledgerKey{session.Endpoint, decoded.ProjectID, spec.Region, identity.machine},
	}, nil
}

// withKeyError adds what is wrong with the service-account key, unless something
// was said about it already.
func withKeyError(errs field.ErrorList, err error) field.ErrorList {
	path := apis.SecretPath.Child(apis.SecretServiceAccountKey)
	var unusable *spi.CredentialsError
	if !errors.As(err, &unusable) || len(unrelated(field.ErrorList{{Field: path.String()}}, errs)) == 0 {
		return errs
	}
	return append(errs, field.Invalid(path, field.OmitValueType{}, unusable.Reason))
}

// decodeSpec decodes the providerSpec, sets its defaults and checks it, in a
// lenient call only for what every call needs.
func (p *Provider) decodeSpec(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *apis.Secret, mode strictness) (*apis.ProviderSpec, identity, field.ErrorList) {
	spec, unknown, errs := apis.DecodeProviderSpec(class.ProviderSpec.Raw)
	labels := apis.SpecPath.Child("labels")
	unreadable := spec == nil || len(unrelated(field.ErrorList{{Field: labels.String()}}, errs)) == 0
	if spec == nil {
		spec = &apis.ProviderSpec{}
	}
	networkErrs := validation.ValidateSecretNetwork(spec, secret, apis.SecretPath)
	apis.SetDefaults(spec, secret)
	identity, nameErrs := newCheckedIdentity(machine, class, spec.Labels)
	identity.clusterUnknown = unreadable
	if mode == lenient {
		return spec, identity, validation.ValidateRegion(spec.Region, apis.SpecPath.Child("region"))
	}
	errs = append(errs, p.unknownFields(class.Name, unknown)...)
	found := unrelated(validation.ValidateProviderSpec(spec, apis.SpecPath), errs)
	if len(networkErrs) > 0 {
		found = unrelated(found, field.ErrorList{{Field: apis.SpecPath.Child("networking").String()}})
	}
	errs = append(append(append(errs, found...), networkErrs...), nameErrs...)
	if len(identity.cluster) == 0 && len(errs) == 0 && p.warnOnce("cluster "+class.Name) {
		klog.InfoS("The MachineClass's providerSpec.labels have no cluster label (a key that ends in /cluster): machines are told apart by machine and class name only",
			"machineClass", class.Name)
	}
	return spec, identity, errs
}

// newCheckedIdentity also says which names cannot be labels.
func newCheckedIdentity(machine *v1alpha1.Machine, class *v1alpha1.MachineClass, labels map[string]string) (identity, field.ErrorList) {
	name := ""
	var errs field.ErrorList
	if machine != nil {
		name = machine.Name
		errs = validation.ValidateMachineName(name, field.NewPath("machine", "metadata", "name"))
	}
	errs = append(errs, validation.ValidateMachineClassName(class.Name, field.NewPath("machineClass", "metadata", "name"))...)
	identity := newIdentity(name, class.Name, labels)
	identity.nameless = len(errs) > 0 || len(validation.ValidateLabels(identity.cluster, nil)) > 0
	return identity, errs
}

// unknownFields warns about fields the driver does not know, or refuses them.
func (p *Provider) unknownFields(class string, unknown []string) field.ErrorList {
	if len(unknown) == 0 {
		return nil
	}
	if p.strictSpec {
		var errs field.ErrorList
		for _, problem := range unknown {
			errs = append(errs, field.Invalid(apis.SpecPath, field.OmitValueType{}, problem))
		}
		return errs
	}
	if problems := strings.Join(unknown, ", "); p.warnOnce("fields " + class + problems) {
		klog.InfoS("The MachineClass's providerSpec has fields that are not understood; they are ignored",
			"machineClass", class, "problems", problems)
	}
	return nil
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

// checkMachine guards against requests without a Machine.
func checkMachine(machine *v1alpha1.Machine) error {
	if machine == nil {
		return newError(codes.InvalidArgument, "the request has no Machine")
	}
	if machine.Name == "" {
		return newError(codes.InvalidArgument, "the request's Machine has no name")
	}
	return nil
}

// serverIDOf returns the server ID in the Machine's ProviderID, or "" without one.
func (c *call) serverIDOf(machine *v1alpha1.Machine) (string, error) {
	if machine.Spec.ProviderID == "" {
		return "", nil
	}
	serverID, err := parseProviderID(machine.Spec.ProviderID, c.projectID)
	if err != nil {
		return "", newError(codes.InvalidArgument, fmt.Sprintf("machine %s: %v", machine.Name, err))
	}
	return serverID, nil
}
