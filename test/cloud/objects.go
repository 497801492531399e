// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

const (
	podCIDR  = "100.96.0.0/11"
	userData = "#cloud-config\n"
)

// cluster is a local control plane whose sidecar works for the real project, through the door.
type cluster struct {
	client.Client

	suite *suite
	env   *stack.Env
}

// startCluster starts a control plane that stops with the container of the specs.
func (s *suite) startCluster(ctx context.Context) *cluster {
	GinkgoHelper()
	variables := []string{"STACKIT_IAAS_ENDPOINT=" + s.door.URL()}
	if s.Settings.TokenURL != "" {
		variables = append(variables, "STACKIT_TOKEN_BASEURL="+s.Settings.TokenURL)
	}
	if s.Settings.IDPURL != "" {
		variables = append(variables, "STACKIT_IDP_TOKEN_ENDPOINT="+s.Settings.IDPURL)
	}
	env, err := stack.Start(ctx,
		stack.WithProgressWriter(s.Out), stack.WithTargetless(),
		stack.WithCloud(stack.API{Environment: variables}),
		stack.WithSidecarArgs("--stackit-settle="+s.Settle.String(), "--machine-safety-orphan-vms-period=10s"))
	Expect(err).NotTo(HaveOccurred())
	c := &cluster{suite: s, env: env, Client: env.Client()}
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			log, _ := env.Logs(stack.PartSidecar)
			s.say("The end of the sidecar's log:\n%s", log[max(0, len(log)-8000):])
		}
		env.Stop()
	})
	return c
}

// createSecret makes a Secret with the account's credentials; change may spoil them.
func (c *cluster) createSecret(ctx context.Context, name string, change func(map[string][]byte)) {
	GinkgoHelper()
	settings := c.suite.Settings
	data := map[string][]byte{
		"projectId": []byte(settings.ProjectID), "region": []byte(settings.Region),
		"networkId": []byte(settings.NetworkID), "userData": []byte(userData),
	}
	if settings.Key != nil {
		data["serviceAccountKey"] = settings.Key
	} else {
		token, err := settings.Token()
		Expect(err).NotTo(HaveOccurred())
		data["serviceAccountEmail"], data["token"] = []byte(settings.Email), []byte(token)
	}
	change(data)
	Expect(c.Create(ctx, &corev1.Secret{ObjectMeta: c.meta(name), Data: data})).To(Succeed())
}

func (c *cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.env.Namespace()}
}

// createClass makes a MachineClass with these fields over those of a small server.
func (c *cluster) createClass(ctx context.Context, name, secret string, fields map[string]any) {
	GinkgoHelper()
	settings := c.suite.Settings
	spec := map[string]any{
		"machineType": settings.MachineType, "imageId": settings.ImageID,
		"bootVolume":       map[string]any{"size": bootVolumeSize},
		"labels":           map[string]any{mark.ClusterLabel: mark.Cluster(c.suite.name)},
		"allowedAddresses": []any{podCIDR},
	}
	if settings.Zone != "" {
		spec["availabilityZone"] = settings.Zone
	}
	maps.Copy(spec, fields)
	raw, err := json.Marshal(spec)
	Expect(err).NotTo(HaveOccurred())
	class := &v1alpha1.MachineClass{
		ObjectMeta: c.meta(name), Provider: "stackit", ProviderSpec: runtime.RawExtension{Raw: raw},
		SecretRef: &corev1.SecretReference{Name: secret, Namespace: c.env.Namespace()},
	}
	Expect(c.Create(ctx, class)).To(Succeed())
}

func (c *cluster) createMachine(ctx context.Context, name, class string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &v1alpha1.Machine{ObjectMeta: c.meta(name), Spec: machineSpec(class)})).To(Succeed())
}

func machineSpec(class string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}}
}

// newDeployment has two Machines and rolls by one more at a time.
func (c *cluster) newDeployment(name, class string) *v1alpha1.MachineDeployment {
	labels := map[string]string{"deployment": name}
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: c.meta(name),
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: 2,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: machineSpec(class)},
		},
	}
}

// machine returns a function that reads a Machine, for eventually.
func (c *cluster) machine(name string) func(context.Context) (v1alpha1.Machine, error) {
	return func(ctx context.Context) (v1alpha1.Machine, error) {
		var machine v1alpha1.Machine
		err := c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: name}, &machine)
		return machine, err
	}
}

// machines returns the names of all Machines.
func (c *cluster) machines(ctx context.Context) ([]string, error) {
	var list v1alpha1.MachineList
	err := c.List(ctx, &list, client.InNamespace(c.env.Namespace()))
	var names []string
	for _, machine := range list.Items {
		names = append(names, machine.Name)
	}
	return names, err
}

// otherKey returns a service account key that nobody has registered: the given one with
// another private key.
func otherKey(key []byte) []byte {
	GinkgoHelper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	var object map[string]any
	Expect(json.Unmarshal(key, &object)).To(Succeed())
	credentials, ok := object["credentials"].(map[string]any)
	Expect(ok).To(BeTrue(), "the service account key has credentials")
	credentials["privateKey"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	changed, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return changed
}
