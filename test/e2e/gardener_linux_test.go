// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/conformance"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// Linux alone reads other certificates for those in /etc/ssl/certs, where Gardener mounts
// the CA: a process has no files of its own.
var _ = Describe("In Gardener's terms", long, func() {
	It("machines come up, roll and go, with a CA that only the CloudProfile knows", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace(clusterName),
			localenv.WithTargetCluster(), localenv.WithoutManager(), localenv.WithoutSidecar(),
			// Shoots of before 2026 have keys, and the token endpoint, of then.
			localenv.WithCloudOptions(iaasmock.WithKeyForm(iaasmock.KeyForm2025))))
		cloud := httptest.NewTLSServer(conformance.Watch(GinkgoT(), c.env.Cloud()))
		DeferCleanup(cloud.Close)

		for _, object := range gardenerObjects("shoot.yaml") {
			Expect(c.target.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		shoot := c.env.TargetRESTConfig()
		token, err := localenv.ServiceAccountToken(ctx, c.target, metav1.NamespaceSystem, account)
		Expect(err).NotTo(HaveOccurred())
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cloud.Certificate().Raw})
		controlPlane := gardenerObjects("control-plane.yaml",
			"<URL of the shoot>", shoot.Host,
			"<CA of the shoot, base64>", base64.StdEncoding.EncodeToString(shoot.CAData),
			"<token of the shoot's service account>", token,
			"<CA of the cloud, base64>", base64.StdEncoding.EncodeToString(ca),
			"<URL of the cloud>", cloud.URL)
		worker := gardenerObjects("worker.yaml",
			"<ID of the project>", iaasmock.DefaultProjectID, "<key of a service account>", string(c.env.ServiceAccountKey()),
			"<ID of the network>", iaasmock.DefaultNetworkID, "<ID of the image>", iaasmock.DefaultImageID,
			"<ID of the security group>", iaasmock.DefaultSecurityGroupID, "<name of the key pair>", iaasmock.DefaultKeypairName)
		for _, object := range append(controlPlane, worker...) {
			Expect(c.Create(ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		serviceAccount{clusterName, account}.awaitRights(ctx, c.Client, controlRights(clusterName))
		serviceAccount{metav1.NamespaceSystem, account}.awaitRights(ctx, c.target, targetRights)

		pod := podOf(c.deploymentIn(ctx, controlPlane), "only")
		Expect(c.env.StartPod(ctx, pod)).To(Succeed())

		By("coming up")
		expectServers := func(machineType string, labels map[string]string) {
			GinkgoHelper()
			Eventually(ctx, c.running).WithTimeout(upTimeout + downTimeout).WithPolling(poll).Should(HaveLen(2))
			Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(2), "Machines that are going")
			for _, server := range c.env.Cloud().Servers() {
				Expect(server.MachineType).To(Equal(machineType))
				for key, value := range labels {
					Expect(server.Labels).To(HaveKeyWithValue(key, value))
				}
				Expect(c.nics(server.ID)).To(ConsistOf(HaveField("AllowedAddresses", ConsistOf("100.96.0.0/11"))))
			}
		}
		expectServers("c2i.2", map[string]string{"kubernetes.io/cluster": clusterName})

		By("rolling to a class with the label domain of a landscape")
		pool := &v1alpha1.MachineDeployment{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: clusterName, Name: clusterName + "-worker-z1"}, pool)).To(Succeed())
		change(ctx, c, pool, func() { pool.Spec.Template.Spec.Class.Name = clusterName + "-worker-z1-3c4d5" })
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout + downTimeout).WithPolling(poll).
			Should(And(HaveLen(2), HaveEach(HaveField("MachineType", "g2i.4"))))
		expectServers("g2i.4", map[string]string{"ske.stackit.cloud/cluster": clusterName})

		By("going")
		Expect(c.Delete(ctx, pool)).To(Succeed())
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		c.expectAllowed()
		c.expectLed(pod)
	})
})

// gardenerObjects returns the objects of a file in testdata/gardener, with values for the
// names in it.
func gardenerObjects(file string, namesAndValues ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("testdata", "gardener", file))
	Expect(err).NotTo(HaveOccurred())
	objects, err := localenv.ParseManifests([]byte(strings.NewReplacer(namesAndValues...).Replace(string(content))))
	Expect(err).NotTo(HaveOccurred())
	return objects
}
