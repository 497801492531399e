// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	clusterLabel = "kubernetes.io/cluster"
	// clusterField of a server's metadata names its cluster, too.
	clusterField = "cluster"
	// classA allows addresses, so that its servers have to be initialized; classB
	// does not.
	classA, classB = "pool-a", "pool-b"
	allowed        = "100.64.0.0/12"
	userData       = "#cloud-config of nobody but this server"
)

// place is where servers are: what a class and its Secret say together.
type place struct {
	project, region, network string
	// key of the project; nil is the cluster's.
	key []byte
}

// ownPlace is where all servers are. Nothing can be made in other places, whose quota is 0.
var ownPlace = place{project: iaasmock.DefaultProjectID, region: iaasmock.DefaultRegion, network: iaasmock.DefaultNetworkID}

// classAndSecret are the class, and its Secret, by which a cluster's servers are made.
func classAndSecret(cluster, class string, at place, key []byte, diskSize int) (*v1alpha1.MachineClass, *corev1.Secret) {
	spec := map[string]any{
		"machineType": iaasmock.DefaultMachineType,
		"imageId":     iaasmock.DefaultImageID,
		"networking":  map[string]any{"networkId": at.network},
		"bootVolume":  map[string]any{"size": diskSize},
		"labels":      map[string]any{clusterLabel: cluster},
		"metadata":    map[string]any{clusterField: cluster},
	}
	if class == classA {
		spec["allowedAddresses"] = []string{allowed}
	}
	raw, _ := json.Marshal(spec) // maps and texts
	return &v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Name: class, Namespace: "simulated"},
			ProviderSpec: runtime.RawExtension{Raw: raw},
		}, &corev1.Secret{Data: map[string][]byte{
			"projectId": []byte(at.project), "region": []byte(at.region),
			"serviceAccountKey": key, "userData": []byte(userData),
		}}
}
