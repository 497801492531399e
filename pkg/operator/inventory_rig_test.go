// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

const (
	namespace  = "shoot--demo"
	clusterKey = "kubernetes.io/cluster"
	ownCluster = "shoot--demo--laptop"
)

// rig is an operator between the mock of the cloud and fakes of the clusters.
type rig struct {
	t       testing.TB
	url     string
	cloud   *iaasmock.Cloud
	api     *spi.Session
	op      *operator.Operator
	objects []client.Object
	// funcs make reads of the clusters fail.
	funcs interceptor.Funcs
	// clusterless is without clusters.
	clusterless bool
}

// newRig has a Secret and the class worker in its namespace.
func newRig(t testing.TB, options ...iaasmock.Option) *rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{iaasmock.WithBootDuration(0), iaasmock.WithoutAuthentication()}, options...)...)
	handler := http.Handler(cloud)
	if test, ok := t.(*testing.T); ok {
		handler = conformance.Watch(test, cloud)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newRigOver(t, cloud, server.URL, spi.NewTransport())
}

// newRigOver reaches the cloud by the transport.
func newRigOver(t testing.TB, cloud *iaasmock.Cloud, url string, transport http.RoundTripper) *rig {
	t.Helper()
	sessionsOver := func(transport http.RoundTripper) spi.SessionProviderInterface {
		return &spi.PluginSPIImpl{Config: spi.Config{Endpoint: url, NoAuth: true}, Transport: transport}
	}
	sessions := sessionsOver(transport)
	api, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, url: url, cloud: cloud, api: api, op: &operator.Operator{
		Sessions: sessions, Transport: transport, NewSessions: sessionsOver, NoAuth: true, Namespace: namespace,
	}}
	r.add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		Data: map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
			"networkId": []byte(iaasmock.DefaultNetworkID), "userData": []byte("secret user data"),
		},
	}, class("worker", map[string]any{"labels": map[string]any{clusterKey: ownCluster}}))
	return r
}

func (r *rig) add(objects ...client.Object) { r.objects = append(r.objects, objects...) }

// look makes an inventory.
func (r *rig) look(query operator.Query) *operator.Inventory {
	r.t.Helper()
	r.makeClusters()
	return r.op.Inventory(r.t.Context(), query)
}

// makeClusters makes the clusters with the objects, once.
func (r *rig) makeClusters() {
	if r.op.Control == nil && !r.clusterless {
		cluster := fake.NewClientBuilder().WithScheme(operator.Scheme()).WithObjects(r.objects...).WithInterceptorFuncs(r.funcs).Build()
		r.op.Control, r.op.Target = cluster, cluster
	}
}

// server makes a server with these labels, and returns its ID.
func (r *rig) server(name string, labels map[string]string) string {
	r.t.Helper()
	id, err := r.tryServer(r.t.Context(), name, labels)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) tryServer(ctx context.Context, name string, labels map[string]string) (string, error) {
	return r.tryServerAt(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultDualStackNetworkID, name, labels)
}

func (r *rig) tryServerAt(ctx context.Context, project, region, network, name string, labels map[string]string) (string, error) {
	payload := iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: map[string]any{},
		BootVolume: &iaas.BootVolume{Size: new(int64(20)), Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: new(network)}},
		UserData:   new("c2VjcmV0IHVzZXIgZGF0YQ=="),
	}
	for key, value := range labels {
		payload.Labels[key] = value
	}
	server, err := r.api.API.CreateServer(ctx, project, region).CreateServerPayload(payload).Execute()
	if err != nil {
		return "", err
	}
	return server.GetId(), nil
}

// labels of a server that the driver makes.
func labels(machine, class, cluster string) map[string]string {
	all := map[string]string{provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class}
	if cluster != "" {
		all[clusterKey] = cluster
	}
	return all
}

func class(name string, spec map[string]any) *v1alpha1.MachineClass {
	all := map[string]any{"machineType": iaasmock.DefaultMachineType, "imageId": iaasmock.DefaultImageID}
	for key, value := range spec {
		all[key] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Namespace: namespace, Name: name},
		ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef:    &corev1.SecretReference{Namespace: namespace, Name: "credentials"},
	}
}

// machine is a running Machine, an hour old, with this server.
func machine(name, class, serverID string) *v1alpha1.Machine {
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	made := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: hourAgo, Labels: map[string]string{v1alpha1.NodeLabelKey: name}},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
		Status:     v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning, LastUpdateTime: hourAgo}},
	}
	if serverID != "" {
		made.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, serverID)
	}
	return made
}

// inPhase returns the Machine in a phase, without a ProviderID.
func inPhase(made *v1alpha1.Machine, phase v1alpha1.MachinePhase) *v1alpha1.Machine {
	made.Spec.ProviderID = ""
	made.Status.CurrentStatus.Phase = phase
	return made
}

func node(name, serverID string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: "stackit://" + serverID},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

// words are the notes, sorted.
func words(notes []operator.Note) []string {
	all := []string{}
	for _, note := range notes {
		all = append(all, note.String())
	}
	slices.Sort(all)
	return all
}
