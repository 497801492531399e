// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// newNode is the Node as kubelet and cloud controller manager make it. The
// latter writes the server's ID alone into the providerID, without the project.
func newNode(server iaasmock.Server) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: server.Name,
			Labels: map[string]string{
				corev1.LabelHostname:           server.Name,
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         "amd64",
				corev1.LabelInstanceTypeStable: server.MachineType,
				corev1.LabelTopologyRegion:     server.Region,
				corev1.LabelTopologyZone:       server.AvailabilityZone,
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "stackit://" + server.ID},
	}
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// patchBody is the part of a NodeStatus that is written.
type patchBody struct {
	Conditions []corev1.NodeCondition `json:"conditions"`
	Addresses  []corev1.NodeAddress   `json:"addresses,omitempty"`
	Capacity   corev1.ResourceList    `json:"capacity,omitempty"`
	// Allocatable is what of the capacity Pods may use.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// patch merges by condition type: conditions of others stay.
func (b patchBody) patch() (client.Patch, error) {
	content, err := json.Marshal(map[string]any{"status": b})
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.StrategicMergePatchType, content), nil
}

func nodeStatus(server iaasmock.Server, nics []iaasmock.NIC, ready bool, now time.Time) patchBody {
	body := readinessOnly(ready, now)
	body.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: server.Name}}
	for _, nic := range nics {
		for _, address := range []string{nic.IPv4, nic.IPv6} {
			if address != "" {
				body.Addresses = append(body.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
			}
		}
	}
	// Any size will do: nothing is scheduled here.
	body.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	body.Allocatable = body.Capacity
	return body
}

// readinessOnly is a status that says no more than whether the Node is ready.
func readinessOnly(ready bool, now time.Time) patchBody {
	condition := corev1.NodeCondition{
		Type:               corev1.NodeReady,
		Status:             corev1.ConditionTrue,
		Reason:             "KubeletReady",
		Message:            "the server is ACTIVE",
		LastHeartbeatTime:  metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now),
	}
	if !ready {
		condition.Status = corev1.ConditionFalse
		condition.Reason = "KubeletNotReady"
		condition.Message = "the server is not ACTIVE"
	}
	return patchBody{Conditions: []corev1.NodeCondition{condition}}
}
