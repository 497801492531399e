// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const otherNamespace = "other"

// clinic is a cluster that is fine until a spec spoils it. What a spec spoils is as before
// when it ends.
type clinic struct {
	*cluster
	doctor *command
}

// newClinic applies kubernetes/, and plays kubelet and controllers: the Deployment is ready,
// and its two containers lead.
func newClinic(ctx context.Context) *clinic {
	GinkgoHelper()
	c := &clinic{cluster: newCluster(startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar()))}
	c.doctor = newCommand(c.env)
	objects := render("kubernetes")
	for _, object := range objects {
		Expect(c.env.Apply(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
	serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
	serviceAccount{c.env.Namespace(), account}.awaitRights(ctx, c.target, targetRights)
	c.setReady(ctx, 1)
	for _, name := range []string{"machine-controller", "machine-controller-manager"} {
		Expect(c.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1"), LeaseDurationSeconds: ptr.To[int32](3600),
				RenewTime: ptr.To(metav1.NowMicro())},
		})).To(Succeed())
	}
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: otherNamespace}})).To(Succeed())
	c.createSecret(ctx, nil)
	c.createClass(ctx, "small", specWith(nil))
	return c
}

// setReady says how many Pods of the Deployment are ready.
func (c *clinic) setReady(ctx context.Context, ready int32) {
	GinkgoHelper()
	deployment := named(c, &appsv1.Deployment{}, account)
	Expect(c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	deployment.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: ready}
	Expect(c.Status().Update(ctx, deployment)).To(Succeed())
}

// secretFile is a file with the credentials.
func (c *clinic) secretFile() string {
	GinkgoHelper()
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": secretName},
		"stringData": map[string]string{"projectId": iaasmock.DefaultProjectID, "region": iaasmock.DefaultRegion, "serviceAccountKey": string(c.env.ServiceAccountKey())},
	})
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "secret.yaml")
	Expect(os.WriteFile(path, manifest, 0o600)).To(Succeed())
	return path
}

// writeKubeconfig returns a kubeconfig that has no secret but the address.
func writeKubeconfig(config *rest.Config) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"target": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		Contexts:       map[string]*clientcmdapi.Context{"target": {Cluster: "target"}},
		CurrentContext: "target",
	}, path)).To(Succeed())
	return path
}

// named is an object of the namespace, to be read.
func named[Object client.Object](c *clinic, object Object, name string) Object {
	object.SetName(name)
	object.SetNamespace(c.env.Namespace())
	return object
}

// spoil changes an object until the spec ends.
func spoil[Object client.Object](ctx context.Context, c *clinic, object Object, mutate func()) {
	GinkgoHelper()
	Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before, ok := object.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	mutate()
	Expect(c.Update(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		before.SetResourceVersion(object.GetResourceVersion()) // others write, too
		Expect(c.Update(ctx, before)).To(Succeed())
	})
}

// remove deletes an object until the spec ends.
func remove(ctx context.Context, c *clinic, object client.Object) {
	GinkgoHelper()
	key := client.ObjectKeyFromObject(object)
	Expect(c.Get(ctx, key, object)).To(Succeed())
	before, ok := object.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	before.SetResourceVersion("")
	before.SetFinalizers(nil)
	Expect(c.Delete(ctx, object)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) bool { return apierrors.IsNotFound(c.Get(ctx, key, object)) }).WithPolling(poll).Should(BeTrue())
	DeferCleanup(func(ctx SpecContext) { Expect(c.Create(ctx, before)).To(Succeed()) })
}

// add makes an object until the spec ends.
func (c *clinic) add(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(c.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, object)).To(Succeed()) })
}

// addServer makes a server with these labels until the spec ends.
func (c *clinic) addServer(ctx context.Context, name string, labels map[string]string) (id string) {
	GinkgoHelper()
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: c.env.CloudURL(), TokenURL: c.env.CloudURL() + "/token"}}
	session, err := sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(c.env.ServiceAccountKey())})
	Expect(err).NotTo(HaveOccurred())
	spec, _, errs := apis.DecodeProviderSpec([]byte(`{"machineType": "` + iaasmock.DefaultMachineType + `", "bootVolume": {"size": 20, "deleteOnTermination": true,
		"source": {"type": "image", "id": "` + iaasmock.DefaultImageID + `"}}, "networking": {"networkId": "` + iaasmock.DefaultNetworkID + `"}}`))
	Expect(errs).To(BeEmpty())
	server, err := provider.NewClient(session, iaasmock.DefaultRegion).CreateServer(ctx, &provider.ServerRequest{Name: name, Labels: labels, Spec: spec})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.env.Cloud().RemoveServer(server.ID)).To(Succeed()) })
	return server.ID
}

// classIn is a class of another namespace, with the cluster label of the specs.
func classIn(namespace string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: namespace}, ProviderSpec: rawSpec(specWith(nil)),
		SecretRef: &corev1.SecretReference{Name: secretName, Namespace: namespace},
	}
}
