// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	boot = 10 * time.Second
	join = 3 * time.Second
)

// simulation is a cloud and a cluster with the simulator between them, and a
// clock that stands still.
type simulation struct {
	*WithT
	t     *testing.T
	clock *clocktesting.FakeClock
	cloud *iaasmock.Cloud
	nodes *nodeSimulator
}

func newSimulation(t *testing.T) *simulation {
	clock := clocktesting.NewFakeClock(time.Now())
	cloud := iaasmock.New(iaasmock.WithClock(clock), iaasmock.WithBootDuration(boot),
		iaasmock.WithDeleteDuration(boot), iaasmock.WithoutAuthentication())
	cluster := fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).Build()
	return &simulation{NewWithT(t), t, clock, cloud, newNodeSimulator(cloud, cluster, clock, join)}
}

// pass lets time pass and the simulator look.
func (s *simulation) pass(d time.Duration) {
	s.clock.Step(d)
	s.nodes.step(s.t.Context())
}

func (s *simulation) request(method, path, body string) {
	s.t.Helper()
	const base = "/v2/projects/" + iaasmock.DefaultProjectID + "/regions/" + iaasmock.DefaultRegion
	req := httptest.NewRequestWithContext(s.t.Context(), method, base+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	conformance.Watch(s.t, s.cloud).ServeHTTP(answer, req)
	s.Expect(answer.Code).To(BeNumerically("<", 300), answer.Body.String())
}

// addServer creates a server and returns its ID.
func (s *simulation) addServer(name string) string {
	s.t.Helper()
	s.request(http.MethodPost, "/servers", `{"name":"`+name+`","machineType":"`+iaasmock.DefaultMachineType+`",
		"networking":{"networkId":"`+iaasmock.DefaultNetworkID+`"},
		"bootVolume":{"size":20,"source":{"type":"image","id":"`+iaasmock.DefaultImageID+`"}}}`)
	servers := s.cloud.Servers()
	return servers[len(servers)-1].ID
}

// addJoined creates a server, lets time pass until it has joined, and returns its ID.
func (s *simulation) addJoined(name string) string {
	s.t.Helper()
	id := s.addServer(name)
	s.pass(boot)
	s.pass(join)
	return id
}

func (s *simulation) node(name string) *corev1.Node {
	s.t.Helper()
	node := &corev1.Node{}
	s.Expect(s.nodes.client.Get(s.t.Context(), client.ObjectKey{Name: name}, node)).To(Succeed())
	return node
}

func (s *simulation) nodeNames() []string {
	s.t.Helper()
	var nodes corev1.NodeList
	s.Expect(s.nodes.client.List(s.t.Context(), &nodes)).To(Succeed())
	names := []string{}
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	return names
}

func readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}

func TestServerJoinsSomeTimeAfterItIsActive(t *testing.T) {
	s := newSimulation(t)
	id := s.addServer("worker-1")
	s.pass(boot - time.Second)
	s.pass(time.Second) // ACTIVE
	s.pass(join - time.Second)
	s.Expect(s.nodeNames()).To(BeEmpty())
	s.pass(time.Second)

	node := s.node("worker-1")
	s.Expect(node.Spec.ProviderID).To(Equal("stackit://" + id))
	s.Expect(readiness(node)).To(Equal(corev1.ConditionTrue))
	s.Expect(node.Labels).To(HaveKeyWithValue(corev1.LabelInstanceTypeStable, iaasmock.DefaultMachineType))
	var nic iaasmock.NIC
	for _, n := range s.cloud.NICs() {
		if n.ServerID == id {
			nic = n
		}
	}
	s.Expect(node.Status.Addresses).To(ConsistOf(
		corev1.NodeAddress{Type: corev1.NodeHostName, Address: "worker-1"},
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nic.IPv4},
	))
}

func TestNodeIsReadyWhileItsServerIsActive(t *testing.T) {
	s := newSimulation(t)
	id := s.addJoined("worker-1")
	// What others write stays.
	node := s.node("worker-1")
	terminating := corev1.NodeCondition{Type: "Terminating", Status: corev1.ConditionTrue}
	node.Status.Conditions = append(node.Status.Conditions, terminating)
	s.Expect(s.nodes.client.Status().Update(t.Context(), node)).To(Succeed())
	for _, row := range []struct {
		status string
		want   corev1.ConditionStatus
	}{
		{"INACTIVE", corev1.ConditionFalse},
		{iaasmock.StatusActive, corev1.ConditionTrue},
		{iaasmock.StatusError, corev1.ConditionFalse},
	} {
		s.Expect(s.cloud.SetServerStatus(id, row.status, "")).To(Succeed())
		s.pass(time.Second)
		s.Expect(readiness(s.node("worker-1"))).To(Equal(row.want), row.status)
		s.Expect(s.node("worker-1").Status.Conditions).To(ContainElement(terminating))
	}
}

func TestNodeThatWasDeletedStaysAway(t *testing.T) {
	s := newSimulation(t)
	id := s.addJoined("worker-1")
	s.Expect(s.nodes.client.Delete(t.Context(), s.node("worker-1"))).To(Succeed())
	for _, status := range []string{iaasmock.StatusActive, "INACTIVE", iaasmock.StatusActive} {
		s.Expect(s.cloud.SetServerStatus(id, status, "")).To(Succeed())
		s.pass(join)
		s.Expect(s.nodeNames()).To(BeEmpty())
	}
}

func TestNodeOfAServerThatIsGoneIsNotReadyAndStays(t *testing.T) {
	s := newSimulation(t)
	id := s.addJoined("worker-1")
	s.Expect(s.cloud.RemoveServer(id)).To(Succeed())
	s.pass(time.Second)
	s.pass(time.Hour)
	s.Expect(readiness(s.node("worker-1"))).To(Equal(corev1.ConditionFalse))
}

func TestSecondServerOfANameDoesNotTakeTheNode(t *testing.T) {
	s := newSimulation(t)
	first := s.addJoined("worker-1")
	second := s.addJoined("worker-1")
	s.Expect(s.cloud.SetServerStatus(second, "INACTIVE", "")).To(Succeed())
	s.pass(time.Second)
	s.Expect(s.node("worker-1").Spec.ProviderID).To(Equal("stackit://" + first))
	s.Expect(readiness(s.node("worker-1"))).To(Equal(corev1.ConditionTrue))
}
