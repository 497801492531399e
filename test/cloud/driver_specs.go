// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/api"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/cloud/mark"
)

// The names of what the specs of the driver share.
const (
	secret       = "credentials"
	otherProject = "other-project"
	wrongKey     = "wrong-key"
	deployment   = "roll"
)

func beAvailable() gomegatypes.GomegaMatcher {
	return HaveField("Status.CurrentStatus.Phase", v1alpha1.MachineAvailable)
}

func driverSpecs() {
	var c *cluster
	var s *suite
	var class, first, second string

	BeforeAll(func(ctx SpecContext) {
		s = current
		class, first, second = mark.Name(s.name, "class"), mark.Name(s.name, "first"), mark.Name(s.name, "next2")
		c = s.startCluster(ctx)
		c.createSecret(ctx, secret, func(map[string][]byte) {})
		c.createClass(ctx, class, secret, nil)
	})

	It("makes a server with labels, allowedAddresses and addresses for a Machine", func(ctx SpecContext) {
		c.createMachine(ctx, first, class)
		s.eventually(ctx, c.machine(first)).Should(beAvailable())
		server := c.onlyServer(ctx, first)
		for key, value := range mark.Labels(s.name, first, class) {
			Expect(server.Labels.Get(key)).To(Equal(value), "the label %s", key)
		}
		machine, err := c.machine(first)(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(machine.Spec.ProviderID).To(Equal("stackit://" + s.Settings.ProjectID + "/" + server.ID))
		Expect(machine.Status.Addresses).To(ContainElement(HaveField("Type", corev1.NodeInternalIP)))
		c.expectAllowedAddresses(ctx, server.ID)
	})

	It("is shown as it is by mcm-stackit", func(ctx SpecContext) {
		for command, wanted := range map[string][]int{"validate --online": {0}, "list servers": {0}, "doctor": {0, 1, 2}} {
			out, code := c.mcmStackit(ctx, strings.Fields(command)...)
			if !slices.Contains(wanted, code) || command == "list servers" && !strings.Contains(out, first) {
				s.say("mcm-stackit %s said:\n%s", command, out) // Here alone: names in it may be somebody else's.
			}
			Expect(code).To(BeElementOf(wanted), "the exit code of mcm-stackit %s", command)
			s.note("mcm-stackit reads the project as it is", fmt.Sprintf("%s: exit code %d", command, code), "pkg/operator")
			if command == "list servers" {
				Expect(strings.Contains(out, first)).To(BeTrue(), "mcm-stackit %s shows the server of Machine %s", command, first)
			}
		}
	})

	It("adopts the server that it made before it was killed", func(ctx SpecContext) {
		c.createMachine(ctx, second, class)
		s.eventually(ctx, func(ctx context.Context) ([]api.Server, error) { return s.api.Servers(ctx, selectMachine(second)) }).
			ShouldNot(BeEmpty(), "a server for the Machine")
		c.env.KillSidecar()
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		s.eventually(ctx, c.machine(second)).Should(beAvailable())
		c.onlyServer(ctx, second)
		Expect(c.machine(first)(ctx)).To(beAvailable())
	})

	It("lists what it has made: an orphan is found and deleted, and nothing else", func(ctx SpecContext) {
		orphan := mark.Name(s.name, "orphan")
		id, err := s.makeServer(ctx, orphan, mark.Labels(s.name, orphan, class), nil)
		Expect(err).NotTo(HaveOccurred())
		s.eventually(ctx, func(ctx context.Context) (bool, error) {
			server, err := s.api.Server(ctx, id)
			return server == nil || !server.Live(), err
		}).Should(BeTrue(), "the orphan is deleted")
		c.onlyServer(ctx, first)
		c.onlyServer(ctx, second)
	})

	// What is deleted from here on goes while the next specs run: the manager takes half a
	// minute for each, and servers cost money meanwhile. The last spec waits for all of it.
	It("deletes servers, and rolls two Machines to another class", func(ctx SpecContext) {
		c.startDeletions(ctx)
		rolling := c.newDeployment(mark.Name(s.name, deployment), class)
		Expect(c.Create(ctx, rolling)).To(Succeed())
		s.eventually(ctx, c.available(class)).Should(HaveLen(2))
		s.eventually(ctx, s.live).Should(HaveLen(2), "servers that nobody is deleting: there is to be room for one more")
		next := class + "-2"
		c.createClass(ctx, next, secret, map[string]any{"allowedAddresses": []any{podCIDR, "100.64.0.0/13"}})
		before := client.MergeFrom(rolling.DeepCopy())
		rolling.Spec.Template.Spec.Class.Name = next
		Expect(c.Patch(ctx, rolling, before)).To(Succeed())
		s.eventually(ctx, c.available(next)).Should(HaveLen(2))
		s.eventually(ctx, c.machines).Should(HaveLen(2), "Machines after the update")
		s.eventually(ctx, s.left).Should(HaveLen(2), "servers, and NICs and volumes without one, after the update")
		Expect(c.Delete(ctx, rolling)).To(Succeed())
	})

	It("deletes a server that is being created", func(ctx SpecContext) {
		name := mark.Name(s.name, "early")
		c.createMachine(ctx, name, class)
		s.eventually(ctx, func(ctx context.Context) ([]api.Server, error) { return s.api.Servers(ctx, selectMachine(name)) }).
			ShouldNot(BeEmpty(), "a server for the Machine")
		c.startDeletions(ctx)
	})

	It("says what is wrong with a class or a key, and makes no server that runs", func(ctx SpecContext) {
		s.eventually(ctx, s.live).Should(BeEmpty(), "servers that nobody is deleting: there is to be room for more")
		c.expectRefusedMachines(ctx)
	})

	It("leaves nothing", func(ctx SpecContext) {
		c.startDeletions(ctx)
		s.eventually(ctx, c.machines).Should(BeEmpty(), "Machines that are being deleted")
		s.expectNothingLeft(ctx)
	})
}

func selectMachine(name string) string { return provider.StackitMachineLabel + "=" + name }

// onlyServer returns the server of a Machine: there is one.
func (c *cluster) onlyServer(ctx context.Context, machine string) api.Server {
	GinkgoHelper()
	servers, err := c.suite.api.Servers(ctx, selectMachine(machine))
	Expect(err).NotTo(HaveOccurred())
	Expect(servers).To(HaveLen(1), "servers of Machine %s", machine)
	return servers[0]
}

// available returns a function that names the Machines of a class that are Available.
func (c *cluster) available(class string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list v1alpha1.MachineList
		err := c.List(ctx, &list, client.InNamespace(c.env.Namespace()))
		var names []string
		for _, machine := range list.Items {
			if machine.Spec.Class.Name == class && machine.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable && machine.DeletionTimestamp == nil {
				names = append(names, machine.Name)
			}
		}
		return names, err
	}
}

// expectAllowedAddresses reads the NICs of a server.
func (c *cluster) expectAllowedAddresses(ctx context.Context, id string) {
	GinkgoHelper()
	server, err := c.suite.server(id)(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(server.NICs).NotTo(BeEmpty(), "NICs of the server")
	for _, shown := range server.NICs {
		nic, err := c.suite.api.NIC(ctx, shown.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(nic).To(HaveValue(HaveField("AllowedAddresses", ContainElement(podCIDR))), "the NIC of the server")
		c.suite.note("A NIC shows the allowedAddresses that were sent", fmt.Sprintf("of 1 sent, %d shown, the same text among them", len(nic.AllowedAddresses)), "pkg/provider/nics.go")
	}
}

// startDeletions deletes all Machines, and does not wait.
func (c *cluster) startDeletions(ctx context.Context) {
	GinkgoHelper()
	Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))).To(Succeed())
}

// mcmStackit runs the operator's command, with the door in the place of the API.
func (c *cluster) mcmStackit(ctx context.Context, args ...string) (output string, code int) {
	GinkgoHelper()
	process := exec.CommandContext(ctx, c.suite.Command, append(args, "-n", c.env.Namespace(), "--target-kubeconfig=none")...)
	process.Env = append([]string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + c.env.KubeconfigPath()}, c.env.CloudEnvironment()...)
	out, err := process.CombinedOutput()
	var exit *exec.ExitError
	Expect(err == nil || errors.As(err, &exit)).To(BeTrue(), "%v", err)
	return string(out), process.ProcessState.ExitCode()
}

// expectRefusedMachines makes Machines that cannot have a server: each is told why.
func (c *cluster) expectRefusedMachines(ctx context.Context) {
	GinkgoHelper()
	s := c.suite
	c.createSecret(ctx, otherProject, func(data map[string][]byte) { data["projectId"] = []byte(nobody) })
	type refusal struct{ what, secret string }
	refused := map[string]refusal{}
	add := func(what, thing, secret string, fields map[string]any) {
		GinkgoHelper()
		name := mark.Name(s.name, thing)
		c.createClass(ctx, name, secret, fields)
		c.createMachine(ctx, name, name)
		refused[name] = refusal{what, secret}
	}
	add("an image that does not exist", "image", secret, map[string]any{"imageId": nobody})
	add("a machine type that does not exist", "mtype", secret, map[string]any{"machineType": "mcm-cloud-test.0"})
	add("a key of another project", "elsewhere", otherProject, nil)
	if s.Settings.Key != nil {
		c.createSecret(ctx, wrongKey, func(data map[string][]byte) { data["serviceAccountKey"] = otherKey(s.Settings.Key) })
		add("a wrong key", "wrongkey", wrongKey, nil)
	}
	for name, is := range refused {
		s.eventually(ctx, c.machine(name)).Should(HaveField("Status.LastOperation.ErrorCode", Not(BeEmpty())), "the Machine with %s", is.what)
		machine, err := c.machine(name)(ctx)
		Expect(err).NotTo(HaveOccurred())
		last := machine.Status.LastOperation
		s.note("What is wrong with a class or a key is told by a code", fmt.Sprintf("%s: %s, %s", is.what, last.ErrorCode, last.Description), "pkg/provider/errors.go")
		Expect(machine).NotTo(beAvailable(), "the Machine with %s", is.what)
		// With wrong credentials a deletion is refused, too, and the manager rests for 10 minutes
		// then: they are put right just before it.
		c.putRight(ctx, is.secret)
		// At once: the manager tries again, and each time a server may be made that ends in ERROR.
		Expect(c.Delete(ctx, &machine)).To(Succeed())
	}
}

// putRight gives a Secret the data of the right one.
func (c *cluster) putRight(ctx context.Context, name string) {
	GinkgoHelper()
	if name == secret {
		return
	}
	right := &corev1.Secret{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: c.env.Namespace(), Name: secret}, right)).To(Succeed())
	Expect(c.Patch(ctx, &corev1.Secret{ObjectMeta: c.meta(name)}, client.RawPatch(types.MergePatchType, dataOf(right)))).To(Succeed())
	// The sidecar reads Secrets from a cache of its own, which nothing shows.
	Expect(api.Pause(ctx, 2*time.Second)).To(Succeed())
}

// dataOf is a patch that gives a Secret the data of another.
func dataOf(secret *corev1.Secret) []byte {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"data": secret.Data})
	Expect(err).NotTo(HaveOccurred())
	return patch
}
