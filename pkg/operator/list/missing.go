// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
)

// mostProofs is how many servers of a place are read one by one: the reads that a session
// begins in a second.
const mostProofs = 8

// lookForMissing looks closer at the Machines of which no server was seen: it finds where
// their servers should be, and reads them there by their IDs. A list alone does not prove that
// a server is gone, and one of a cluster label lacks the servers that have lost theirs.
func lookForMissing(ctx context.Context, o *account.Access, seen *observation, query Query) {
	bySecrets := map[string]*place{}
	found := false
	for _, machine := range seen.withoutServer() {
		class := machine.class
		if class == nil || !query.matchesMachine(machine) {
			continue
		}
		// Most classes share their Secrets and region.
		key := refName(class.SecretRef) + " " + refName(class.CredentialsSecretRef) + " " + class.Inputs.Spec.Region
		where, known := bySecrets[key]
		if !known {
			where = placeOf(ctx, o, seen, class)
			bySecrets[key] = where
		}
		seen.classPlaces[class] = where
		if where != nil && machine.server() == nil && !seen.mayShowLater(machine) {
			found = seen.readByID(ctx, where, machine.Spec.ProviderID, query) || found
		}
	}
	if found {
		seen.join()
	}
}

func refName(ref *corev1.SecretReference) string {
	if ref == nil {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

// placeOf is the place in which the driver works for a class; nil if it was not read, or is not
// known.
func placeOf(ctx context.Context, o *account.Access, seen *observation, class *account.Class) *place {
	secret, err := o.SecretOf(ctx, class.MachineClass)
	if err != nil {
		return nil
	}
	inputs := provider.Inspect(class.MachineClass, secret)
	for _, at := range seen.places {
		if at.used != nil && at.project == inputs.Secret.ProjectID && at.region == inputs.Spec.Region {
			return at
		}
	}
	return nil
}

// readByID reads the server that a ProviderID names and that no list has shown, and says
// whether it is there. If it should have been in the list, or cannot be read, others may have
// been left out, too.
func (s *observation) readByID(ctx context.Context, at *place, providerID string, query Query) (found bool) {
	id, err := providerid.Parse(providerID, at.project)
	if err != nil || at.partial || at.proofs == mostProofs {
		return false
	}
	at.proofs++
	server, err := at.used.Server(ctx, id)
	switch {
	case provider.IsNotFound(err):
		at.gone = append(at.gone, id)
		return false
	case err != nil:
		err = at.used.Failure(err)
	case !query.hasCluster(server.Labels):
		at.servers = append(at.servers, *server)
		return true
	default:
		err = fmt.Errorf("the list lacks server %s, which is there", id)
	}
	at.partial = true
	s.miss(PartServers, at.String(), err)
	return false
}
