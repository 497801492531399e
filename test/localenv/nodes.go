// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// nodePoll is the interval at which the simulator polls the cloud.
const nodePoll = 200 * time.Millisecond

// nodeSimulator stands in for the kubelets and for STACKIT's cloud controller manager: it registers one Node for each
// server that boots, and keeps the Node's Ready condition in line with the server. It never deletes a Node and never
// registers a server twice: that would hide a machine controller that fails to delete a Node, or deletes too many.
type nodeSimulator struct {
	cloud  *iaasmock.Cloud
	client client.Client
	// join is the delay from a server's becoming ACTIVE to its Node.
	join time.Duration
	// kubelets are the servers that have been ACTIVE, by ID.
	kubelets map[string]*kubelet
}

type kubelet struct {
	node                    string
	activeSince             time.Time
	registered, ready, lost bool
}

// startNodes runs the simulator until the returned function is called.
func startNodes(cloud *iaasmock.Cloud, target client.Client, join time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &nodeSimulator{cloud: cloud, client: target, join: join, kubelets: map[string]*kubelet{}}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		wait.UntilWithContext(ctx, s.step, nodePoll)
	}()
	return func() {
		cancel()
		<-finished
	}
}

// step polls the cloud once. The next step retries failed updates.
func (s *nodeSimulator) step(ctx context.Context) {
	servers := map[string]iaasmock.Server{}
	for _, server := range s.cloud.Servers() {
		servers[server.ID] = server
		if s.kubelets[server.ID] == nil && server.Status == iaasmock.StatusActive {
			s.kubelets[server.ID] = &kubelet{node: server.Name, activeSince: time.Now()}
		}
	}
	for id, k := range s.kubelets {
		server := servers[id]
		if err := s.follow(ctx, k, server, server.Status == iaasmock.StatusActive); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to update a server's Node; retrying", "server", id, "node", k.node)
		}
	}
}

// follow brings a server's Node in line with the server, which is empty once it is gone.
func (s *nodeSimulator) follow(ctx context.Context, k *kubelet, server iaasmock.Server, active bool) error {
	if !k.registered && !k.lost && active && time.Since(k.activeSince) >= s.join {
		if err := s.client.Create(ctx, newNode(server)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		k.registered = true
	}
	if !k.registered || k.lost || k.ready == active {
		return nil
	}
	now := metav1.Now()
	condition := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now}
	status := corev1.NodeStatus{}
	if active {
		status.Addresses = s.addresses(server)
	} else {
		condition.Status, condition.Reason = corev1.ConditionFalse, "KubeletNotReady"
	}
	status.Conditions = []corev1.NodeCondition{condition}
	content, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}
	err = s.client.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, content))
	if k.lost = apierrors.IsNotFound(err); k.lost {
		return nil
	}
	k.ready = active == (err == nil)
	return err
}

func (s *nodeSimulator) addresses(server iaasmock.Server) []corev1.NodeAddress {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: server.Name}}
	for _, nic := range s.cloud.NICs() {
		for _, address := range []string{nic.IPv4, nic.IPv6} {
			if nic.ServerID == server.ID && address != "" {
				addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
			}
		}
	}
	return addresses
}

// newNode returns a Node like that of kubelet and cloud controller manager. The latter sets the providerID to the
// server's ID, without the project.
func newNode(server iaasmock.Server) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: server.Name,
			Labels: map[string]string{
				corev1.LabelHostname:           server.Name,
				corev1.LabelInstanceTypeStable: server.MachineType,
				corev1.LabelTopologyRegion:     server.Region,
				corev1.LabelTopologyZone:       server.AvailabilityZone,
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "stackit://" + server.ID},
	}
}
