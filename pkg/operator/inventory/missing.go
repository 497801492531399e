// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// mostProofs is how many servers of a site are read one by one: the reads that a session
// begins in a second.
const mostProofs = 8

// lookForMissing looks closer at the Machines of the Namespace of which no server was seen:
// it finds where their servers should be, and asks there once more if the list had only
// servers with a label, which a server may have lost.
func lookForMissing(ctx context.Context, o *account.Access, seen *sight, query Query) {
	missing := map[*site]map[string]bool{}
	bySecrets := map[string]*site{}
	for _, machine := range seen.withoutServer() {
		class := machine.class
		if class == nil || !query.matchesMachine(machine) {
			continue
		}
		// Most classes share their Secrets and region.
		key := refName(class.SecretRef) + " " + refName(class.CredentialsSecretRef) + " " + class.Inputs.Spec.Region
		home, known := bySecrets[key]
		if !known {
			home = homeOf(ctx, o, seen, class)
			bySecrets[key] = home
		}
		seen.homes[class] = home
		if home != nil && query.ClusterKey != "" && machine.Spec.ProviderID != "" {
			if missing[home] == nil {
				missing[home] = map[string]bool{}
			}
			missing[home][lastSegment(machine.Spec.ProviderID)] = true
		}
	}
	for home, ids := range missing {
		seen.addServers(ctx, home, ids)
	}
	if len(missing) > 0 {
		seen.join()
	}
}

func refName(ref *corev1.SecretReference) string {
	if ref == nil {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

// homeOf is the site in which the driver works for a class; nil if it was not read, or is not
// known.
func homeOf(ctx context.Context, o *account.Access, seen *sight, class *account.Class) *site {
	secret, err := o.SecretOf(ctx, class.MachineClass)
	if err != nil {
		return nil
	}
	inputs := provider.Inspect(class.MachineClass, secret)
	for _, at := range seen.sites {
		if at.used != nil && at.project == inputs.Secret.ProjectID && at.region == inputs.Spec.Region {
			return at
		}
	}
	return nil
}

// addServers adds the servers with these IDs, whatever their labels.
func (s *sight) addServers(ctx context.Context, at *site, ids map[string]bool) {
	servers, err := at.used.Servers(ctx, nil)
	if err != nil {
		at.partial = true
		s.miss(PartServers, at.String(), at.used.Failure(err))
	}
	for i := range servers {
		if ids[servers[i].ID] {
			at.servers = append(at.servers, servers[i])
		}
	}
}

// readMissing reads the servers that are still not seen by their IDs: a list alone does not
// prove that a server is gone.
func (s *sight) readMissing(ctx context.Context, query Query) {
	for _, machine := range s.withoutServer() {
		home := s.homes[machine.class]
		if home != nil && query.matchesMachine(machine) && machine.server() == nil && !s.mayShowLater(machine) {
			s.proveGone(ctx, home, machine.Spec.ProviderID)
		}
	}
}

// proveGone reads the server that a ProviderID names and that no list has shown. If it is
// there, or that cannot be told, others may have been left out, too.
func (s *sight) proveGone(ctx context.Context, at *site, providerID string) {
	id, err := providerid.Parse(providerID, at.project)
	if err != nil || at.partial || len(at.gone) == mostProofs {
		return
	}
	_, err = at.used.Server(ctx, id)
	switch {
	case provider.IsNotFound(err):
		at.gone = append(at.gone, id)
		return
	case err == nil:
		err = fmt.Errorf("the list lacks server %s, which is there", id)
	default:
		err = at.used.Failure(err)
	}
	at.partial = true
	s.miss(PartServers, at.String(), err)
}
