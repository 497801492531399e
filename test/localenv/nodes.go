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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// nodePoll is the interval at which the simulator polls the cloud.
const nodePoll = 200 * time.Millisecond

// nodeSimulator stands in for the kubelets and for STACKIT's cloud controller manager: it registers one Node for each
// server that boots, and keeps the Node's Ready condition in line with the server.
//
// It never deletes a Node, not even after its server is gone. The machine controller deletes the Node of a Machine it
// has deleted; cleaning up here would hide a failure to do so. And it never registers a server twice: a kubelet
// registers when it starts, so a Node that was deleted while its server still runs stays deleted.
type nodeSimulator struct {
	cloud  *iaasmock.Cloud
	client client.Client
	clock  clock.PassiveClock
	// join is the delay from a server's becoming ACTIVE to its Node.
	join time.Duration
	// kubelets maps server IDs to servers that have been ACTIVE.
	kubelets map[string]*kubelet
}

// kubelet is the simulator's state for one server.
type kubelet struct {
	node        string
	activeSince time.Time
	registered  bool
	// ready is the readiness last reported; nil before the first report.
	ready *bool
	// finished means that the simulator ignores the server from now on.
	finished bool
}

// startNodes runs the simulator until the returned function is called.
func startNodes(cloud *iaasmock.Cloud, target client.Client, join time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	simulator := newNodeSimulator(cloud, target, clock.RealClock{}, join)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		wait.UntilWithContext(ctx, simulator.step, nodePoll)
	}()
	return func() {
		cancel()
		<-finished
	}
}

func newNodeSimulator(
	cloud *iaasmock.Cloud, c client.Client, clk clock.PassiveClock, join time.Duration,
) *nodeSimulator {
	return &nodeSimulator{cloud: cloud, client: c, clock: clk, join: join, kubelets: map[string]*kubelet{}}
}

// step polls the cloud once. The next step retries failed updates.
func (s *nodeSimulator) step(ctx context.Context) {
	present := map[string]bool{}
	for _, server := range s.cloud.Servers() {
		present[server.ID] = true
		if err := s.follow(ctx, server); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to update a server's Node; retrying",
				"server", server.ID, "node", server.Name)
		}
	}
	for id, k := range s.kubelets {
		if present[id] {
			continue
		}
		if err := s.lost(ctx, id, k); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to update the Node of a deleted server; retrying", "server", id, "node", k.node)
		}
	}
}

// follow brings a server's Node in line with the server.
func (s *nodeSimulator) follow(ctx context.Context, server iaasmock.Server) error {
	active := server.Status == iaasmock.StatusActive
	k := s.kubelets[server.ID]
	if k == nil {
		if !active {
			return nil // Still booting: its kubelet has not started.
		}
		k = &kubelet{node: server.Name, activeSince: s.clock.Now()}
		s.kubelets[server.ID] = k
	}
	if k.finished {
		return nil
	}
	if !k.registered {
		if !active || s.clock.Since(k.activeSince) < s.join {
			return nil
		}
		if err := s.register(ctx, server, k); err != nil || k.finished {
			return err
		}
	}
	return s.report(ctx, server, k, active)
}

// register creates the Node.
func (s *nodeSimulator) register(ctx context.Context, server iaasmock.Server, k *kubelet) error {
	node := newNode(server)
	err := s.client.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		return s.adopt(ctx, server, k, node.Spec.ProviderID)
	}
	k.registered = err == nil
	return err
}

// adopt takes over an existing Node if it is the server's, because the answer to an earlier request was lost. Otherwise
// another server has the name, and two kubelets would fight over one Node.
func (s *nodeSimulator) adopt(ctx context.Context, server iaasmock.Server, k *kubelet, providerID string) error {
	node := nodeNamed(k.node)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	if node.Spec.ProviderID == providerID {
		k.registered = true
		return nil
	}
	klog.InfoS("Not registering a Node: another server's Node has this name",
		"server", server.ID, "node", server.Name)
	k.finished = true
	return nil
}

// report writes the Node's status when its readiness changes.
func (s *nodeSimulator) report(ctx context.Context, server iaasmock.Server, k *kubelet, ready bool) error {
	if k.ready != nil && *k.ready == ready {
		return nil
	}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: server.Name}}
	for _, nic := range s.cloud.NICs() {
		for _, address := range []string{nic.IPv4, nic.IPv6} {
			if nic.ServerID == server.ID && address != "" {
				addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
			}
		}
	}
	return s.patch(ctx, k, ready, addresses)
}

// lost sets the Node of a deleted server to not ready, and drops the server.
func (s *nodeSimulator) lost(ctx context.Context, id string, k *kubelet) error {
	if k.registered && !k.finished && k.ready != nil && *k.ready {
		if err := s.patch(ctx, k, false, nil); err != nil {
			return err
		}
	}
	delete(s.kubelets, id)
	return nil
}

// patch writes the Node's readiness, and its addresses if there are any. Finalizers, annotations and conditions of
// other types, written by other components, stay.
func (s *nodeSimulator) patch(ctx context.Context, k *kubelet, ready bool, addresses []corev1.NodeAddress) error {
	now := metav1.NewTime(s.clock.Now())
	condition := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the server is ACTIVE",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	if !ready {
		condition.Status, condition.Reason = corev1.ConditionFalse, "KubeletNotReady"
		condition.Message = "the server is not ACTIVE"
	}
	content, err := json.Marshal(map[string]any{
		"status": corev1.NodeStatus{Conditions: []corev1.NodeCondition{condition}, Addresses: addresses},
	})
	if err != nil {
		return err
	}
	err = s.client.Status().Patch(ctx, nodeNamed(k.node), client.RawPatch(types.StrategicMergePatchType, content))
	if apierrors.IsNotFound(err) {
		k.finished = true
		return nil
	}
	if err == nil {
		k.ready = &ready
	}
	return err
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

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
