// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
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
	inventory look
	// soon is how soon the call needs its reads.
	soon when
	// ledger is the process's, key the machine's place in it.
	ledger *ledger
	key    ledgerKey
}

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
	in := decodeInputs(machine, class, secret, p.strictSpec)
	session, err := p.session(spi.Credentials{ProjectID: in.secret.ProjectID, ServiceAccountKey: in.secret.ServiceAccountKey})
	if err := in.problems(mode, err); err != nil {
		return nil, err
	}
	p.warn(in)
	inventory := p.inventoryOf(session, in.spec.Region)
	return &call{
		identity:  in.identity,
		spec:      in.spec,
		projectID: in.secret.ProjectID,
		client:    inventory.client,
		inventory: look{inventory, in.identity.scope()},
		ledger:    p.ledger,
		key:       ledgerKey{session.Endpoint, in.secret.ProjectID, in.spec.Region, in.identity.machine},
	}, nil
}

// warn logs, once in the life of this process, what is odd but not wrong.
func (p *Provider) warn(in *inputs) {
	class := in.identity.class
	if problems := strings.Join(in.unknown, ", "); problems != "" && p.warnOnce("fields "+class+problems) {
		klog.InfoS("The MachineClass's providerSpec has fields that are not understood; they are ignored",
			"machineClass", class, "problems", problems)
	}
	if len(in.identity.cluster) == 0 && !in.identity.clusterUnknown && p.warnOnce("cluster "+class) {
		klog.InfoS("The MachineClass's providerSpec.labels have no cluster label (a key that ends in /cluster): machines are told apart by machine and class name only",
			"machineClass", class)
	}
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
