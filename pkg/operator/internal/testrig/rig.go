// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package testrig provides what the tests of the commands share: an Access to the mock of the cloud and to fake
// clusters.
package testrig

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
)

// Names used in the rig.
const (
	Namespace  = "shoot--demo"
	ClusterKey = "kubernetes.io/cluster"
	OwnCluster = "shoot--demo--laptop"
	// OtherProject is a project that the rig does not use.
	OtherProject = "10000000-0000-4000-8000-000000000002"
)

// Rig is an Access to the mock of the cloud and to fake clusters, for tests.
type Rig struct {
	T       *testing.T
	Cloud   *iaasmock.Cloud
	API     *spi.Session
	Access  *account.Access
	Objects []client.Object
	// Funcs intercepts reads of the clusters, to make them fail.
	Funcs interceptor.Funcs
	// Clusterless means that MakeClusters creates no clusters.
	Clusterless bool
}

// New returns a rig with a Secret and the class worker in its Namespace.
func New(t *testing.T, options ...iaasmock.Option) *Rig {
	t.Helper()
	cloud := iaasmock.New(append([]iaasmock.Option{iaasmock.WithBootDuration(0), iaasmock.WithoutAuthentication()},
		options...)...)
	server := httptest.NewServer(conformance.Watch(t, cloud))
	t.Cleanup(server.Close)
	return NewOver(t, cloud, server.URL, spi.NewTransport())
}

// NewOver returns a rig like New's, for a cloud that the caller serves at url. The rig's requests to it
// are sent through the transport.
func NewOver(t *testing.T, cloud *iaasmock.Cloud, url string, transport http.RoundTripper) *Rig {
	t.Helper()
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: url, NoAuth: true}, Transport: transport}
	api, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID})
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{T: t, Cloud: cloud, API: api, Access: &account.Access{
		Sessions: sessions, Namespace: Namespace, Clock: clock.RealClock{},
	}}
	r.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "credentials"},
		Data: map[string][]byte{
			"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
			"networkId": []byte(iaasmock.DefaultNetworkID), "userData": []byte("secret user data"),
		},
	}, Class("worker", map[string]any{"labels": map[string]any{ClusterKey: OwnCluster}}),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	return r
}

// Add adds objects for MakeClusters.
func (r *Rig) Add(objects ...client.Object) { r.Objects = append(r.Objects, objects...) }

// MakeClusters creates the fake clusters with the added objects. Further calls do nothing.
func (r *Rig) MakeClusters() {
	if r.Access.Control == nil && !r.Clusterless {
		cluster := fake.NewClientBuilder().WithScheme(account.Scheme()).WithObjects(r.Objects...).
			WithInterceptorFuncs(r.Funcs).Build()
		r.Access.Control, r.Access.Target = cluster, cluster
	}
}

// Server creates a server with these labels in the default region and dual-stack network, and returns
// its ID.
func (r *Rig) Server(name string, labels map[string]string) string {
	r.T.Helper()
	return r.ServerAt(iaasmock.DefaultRegion, iaasmock.DefaultDualStackNetworkID, name, labels)
}

// ServerAt creates a server in a region and network, and returns its ID.
func (r *Rig) ServerAt(region, network, name string, labels map[string]string) string {
	r.T.Helper()
	payload := iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: map[string]any{},
		BootVolume: &iaas.BootVolume{Size: new(int64(20)),
			Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: new(network)}},
		UserData: new("c2VjcmV0IHVzZXIgZGF0YQ=="),
	}
	for key, value := range labels {
		payload.Labels[key] = value
	}
	request := r.API.API.CreateServer(r.T.Context(), iaasmock.DefaultProjectID, region)
	server, err := request.CreateServerPayload(payload).Execute()
	if err != nil {
		r.T.Fatal(err)
	}
	return server.GetId()
}

// Labels returns the labels that the driver gives a server; without a cluster label if cluster is "".
func Labels(machine, class, cluster string) map[string]string {
	all := map[string]string{provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class}
	if cluster != "" {
		all[ClusterKey] = cluster
	}
	return all
}

// Class returns a class in the Namespace; spec is added to its providerSpec.
func Class(name string, spec map[string]any) *v1alpha1.MachineClass {
	all := map[string]any{"machineType": iaasmock.DefaultMachineType, "imageId": iaasmock.DefaultImageID}
	for key, value := range spec {
		all[key] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Namespace: Namespace, Name: name},
		ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef:    &corev1.SecretReference{Namespace: Namespace, Name: "credentials"},
	}
}

// Machine returns a running Machine, an hour old, with this server; without a ProviderID if serverID
// is "".
func Machine(name, class, serverID string) *v1alpha1.Machine {
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	made := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, CreationTimestamp: hourAgo,
			Labels: map[string]string{v1alpha1.NodeLabelKey: name}},
		Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
		Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning,
			LastUpdateTime: hourAgo}},
	}
	if serverID != "" {
		made.Spec.ProviderID = providerid.Format(iaasmock.DefaultProjectID, serverID)
	}
	return made
}

// Node returns the Node that runs on a server.
func Node(name, serverID string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: "stackit://" + serverID},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}
