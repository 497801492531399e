// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/stackitcloud/stackit-sdk-go/core/config"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	secretName   = "credentials"
	userData     = "#cloud-config\n# " + userDataCanary + "\nhostname: <<MACHINE_NAME>>\ntoken: <<BOOTSTRAP_TOKEN>>\n"
	clusterLabel = "kubernetes.io/cluster"
	clusterName  = "shoot--test--e2e"
	// deploymentLabel of a Machine names its MachineDeployment.
	deploymentLabel = "deployment"
)

type providerSpec map[string]any

// specWith returns a small valid providerSpec with the given fields over it.
func specWith(fields providerSpec) providerSpec {
	spec := providerSpec{
		"machineType": iaasmock.DefaultMachineType,
		"imageId":     iaasmock.DefaultImageID,
		"bootVolume":  map[string]any{"size": 20},
		"labels":      map[string]any{clusterLabel: clusterName},
	}
	for name, value := range fields {
		spec[name] = value
	}
	return spec
}

// createSecret makes the credentials; change may spoil them.
func (c *cluster) createSecret(ctx context.Context, change func(map[string][]byte)) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: c.env.Namespace()},
		Data: map[string][]byte{
			"projectId":         []byte(iaasmock.DefaultProjectID),
			"region":            []byte(iaasmock.DefaultRegion),
			"networkId":         []byte(iaasmock.DefaultNetworkID),
			"serviceAccountKey": c.env.ServiceAccountKey(),
			"userData":          []byte(userData),
		},
	}
	if change != nil {
		change(secret.Data)
	}
	Expect(c.Create(ctx, secret)).To(Succeed())
	return secret
}

func (c *cluster) createClass(ctx context.Context, name string, spec providerSpec) *v1alpha1.MachineClass {
	GinkgoHelper()
	class := &v1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace()},
		Provider:     "stackit",
		ProviderSpec: rawSpec(spec),
		SecretRef:    &corev1.SecretReference{Name: secretName, Namespace: c.env.Namespace()},
	}
	Expect(c.Create(ctx, class)).To(Succeed())
	return class
}

func rawSpec(spec providerSpec) runtime.RawExtension {
	GinkgoHelper()
	raw, err := json.Marshal(spec)
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

func classReference(name string) v1alpha1.ClassSpec {
	return v1alpha1.ClassSpec{Kind: "MachineClass", Name: name}
}

// createMachine makes a Machine. Its name must have at least 5 characters: the
// manager takes its bootstrap token's ID from the last 5, and panics without.
func (c *cluster) createMachine(ctx context.Context, name, class string) *v1alpha1.Machine {
	GinkgoHelper()
	machine := c.newMachine(name, class)
	Expect(c.Create(ctx, machine)).To(Succeed())
	return machine
}

func (c *cluster) newMachine(name, class string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace()},
		Spec:       v1alpha1.MachineSpec{Class: classReference(class)},
	}
}

// postServer makes a server with these labels, as any client of the API does, and returns its ID.
func (c *cluster) postServer(ctx context.Context, name string, labels map[string]any) string {
	GinkgoHelper()
	network, size, goes := iaasmock.DefaultNetworkID, int64(20), true
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, name, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network},
	})
	payload.Labels = labels
	payload.BootVolume = &iaas.BootVolume{Size: &size, DeleteOnTermination: &goes,
		Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image")}
	server, err := c.api().CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(*payload).Execute()
	Expect(err).NotTo(HaveOccurred())
	return server.GetId()
}

// newDeployment rolls by one Machine more at a time.
func (c *cluster) newDeployment(name, class string, replicas int32) *v1alpha1.MachineDeployment {
	labels := map[string]string{deploymentLabel: name}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace()},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1alpha1.MachineSpec{Class: classReference(class)},
			},
		},
	}
}

// change patches an object as it is now on the API server.
func change[Object client.Object](ctx context.Context, c *cluster, object Object, mutate func()) {
	GinkgoHelper()
	Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	mutate()
	Expect(c.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// changeMachine changes a Machine as the API server has it.
func (c *cluster) changeMachine(ctx context.Context, name string, mutate func(*v1alpha1.Machine)) {
	GinkgoHelper()
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: name}}
	change(ctx, c, machine, func() { mutate(machine) })
}

// allNodes are the Nodes of the target cluster.
func (c *cluster) allNodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	err := c.target.List(ctx, &list)
	return list.Items, err
}

// machines that exist in the namespace.
func (c *cluster) machines(ctx context.Context) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	err := c.List(ctx, &list, client.InNamespace(c.env.Namespace()))
	return list.Items, err
}

// running are the Machines in phase Running that nobody is deleting.
func (c *cluster) running(ctx context.Context) ([]v1alpha1.Machine, error) {
	all, err := c.machines(ctx)
	var running []v1alpha1.Machine
	for _, machine := range all {
		if machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning && machine.DeletionTimestamp == nil {
			running = append(running, machine)
		}
	}
	return running, err
}

// machine reads one Machine, for Eventually.
func (c *cluster) machine(name string) func(context.Context) (*v1alpha1.Machine, error) {
	return func(ctx context.Context) (*v1alpha1.Machine, error) {
		machine := &v1alpha1.Machine{}
		return machine, c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: name}, machine)
	}
}

// serverNamed returns the one server with the name.
func (c *cluster) serverNamed(name string) iaasmock.Server {
	GinkgoHelper()
	servers := slices.DeleteFunc(c.env.Cloud().Servers(), func(server iaasmock.Server) bool { return server.Name != name })
	Expect(servers).To(HaveLen(1), "servers with the name %s", name)
	return servers[0]
}

// nics are those attached to a server.
func (c *cluster) nics(serverID string) []iaasmock.NIC {
	var attached []iaasmock.NIC
	for _, nic := range c.env.Cloud().NICs() {
		if nic.ServerID == serverID {
			attached = append(attached, nic)
		}
	}
	return attached
}

// api is somebody else's client of the cloud.
func (c *cluster) api() iaas.DefaultAPI {
	GinkgoHelper()
	api, err := iaas.NewAPIClient(config.WithEndpoint(c.env.CloudURL()), config.WithHTTPClient(&http.Client{}),
		config.WithTokenEndpoint(c.env.CloudURL()+"/oauth/v2/token"),
		config.WithServiceAccountKey(string(c.env.ServiceAccountKey())))
	Expect(err).NotTo(HaveOccurred())
	return api.DefaultAPI
}
