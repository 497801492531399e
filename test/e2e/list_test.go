// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/list"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/providerid"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// stock is a cluster with Machines and servers of all kinds, made without a manager.
type stock struct {
	*cluster
	command *command
	session *spi.Session
	// ids are of the servers, by name.
	ids map[string]string
}

var _ = Describe("mcm-stackit list", Ordered, func() {
	var i *stock

	BeforeAll(func(ctx SpecContext) {
		env := startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithCloudOptions(iaasmock.WithBootDuration(0)))
		i = &stock{
			cluster: &cluster{env: env, Client: env.Client(), target: env.TargetClient()},
			command: newCommand(env), ids: map[string]string{},
		}
		i.makeEverything(ctx)
	})

	It("notes what is wrong with servers", func(ctx SpecContext) {
		Expect(i.notes(ctx, "servers", "--all")).To(Equal(map[string][]string{
			"healthy":   {},
			"twin":      {"duplicate"},
			"orphaned":  {"orphan"},
			"forgotten": {"orphan", "class deleted"},
			"classless": {"class deleted"},
			"stolen":    {"contradicting label " + clusterLabel},
			"stranger":  {"of another cluster"},
			"bastion":   {"unmanaged"},
		}))
	})

	It("notes what is wrong with Machines", func(ctx SpecContext) {
		Expect(i.notes(ctx, "machines")).To(Equal(map[string][]string{
			"healthy":   {"duplicate"},
			"classless": {"class deleted"},
			"stolen":    {"contradicting label " + clusterLabel},
			"new-born":  {"being created"},
			"lost":      {"no server"},
			"stuck":     {"stuck: QuotaExceeded"},
		}))
	})

	It("shows Nodes, addresses and the remedy for a stuck Machine", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string {
			return i.command.run(ctx, "list", "servers", "-o", "wide", "--machine", "healthy").Stdout
		}).WithTimeout(upTimeout).WithPolling(poll).Should(MatchRegexp(`(?m)^shoot--test--e2e .* healthy .* ACTIVE .* 10\.0\.\d+\.\d+ .* Ready `))
		Expect(i.command.run(ctx, "list", "machines").Stdout).To(And(
			MatchRegexp(`(?m)^healthy .* Running .* yes `),
			MatchRegexp(`(?m)^lost .* Running .* no server$`),
			ContainSubstring("stuck: QuotaExceeded\n  of:     stuck\n  reason: QuotaExceeded: Quota exceeded: "),
			ContainSubstring("remedy: raise it, or scale something else down"),
		))
	})

	It("counts by cluster", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "clusters", "--cluster", clusterLabel+"="+clusterName)
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(strings.Fields(strings.Split(got.Stdout, "\n")[1])).To(HaveExactElements(
			clusterLabel+"="+clusterName, "1", "5", "5", "6", Not(BeEmpty()), "2"))
	})

	It("finds orphans, and says so by its exit code", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "servers", "--orphans", "-o", "name")
		Expect(got.Code).To(Equal(1), got.Stderr)
		Expect(strings.Fields(got.Stdout)).To(ConsistOf(i.ids["orphaned"], i.ids["forgotten"]))

		got = i.command.run(ctx, "list", "servers", "--orphans", "--class", "none")
		Expect(got).To(Equal(ran{Stdout: "0 orphans of 0 servers\n"}))
	})

	It("says what somebody may not read, and that orphans cannot be told", func(ctx SpecContext) {
		i.allowNamespace(ctx, "operator")
		as := []string{"--as", "operator"}
		var got ran
		Eventually(ctx, func(ctx context.Context) int { // the API server learns of roles in a moment
			got = i.command.run(ctx, append(as, "list", "servers")...)
			return got.Code
		}).WithTimeout(upTimeout).WithPolling(poll).Should(Equal(0))
		Expect(got.Stdout).To(MatchRegexp(`(?m) healthy .* ACTIVE .* unknown `), "Nodes are not read")
		Expect(got.Stderr).To(And(ContainSubstring("Machines of other namespaces unknown: "), ContainSubstring("Nodes unknown: ")))

		got = i.command.run(ctx, append(as, "list", "servers", "--orphans")...)
		Expect(got.Code).To(Equal(2), got.Stdout)
		Expect(got.Stderr).To(ContainSubstring("orphans unknown: of 3 servers it cannot be told: not all MachineClasses could be read; not all Machines could be read"))

		got = i.command.run(ctx, "--as", "nobody", "list", "machines")
		Expect(got.Code).To(Equal(2), got.Stdout)
		Expect(got.Stderr).To(ContainSubstring("servers unknown: "))
	})

	It("does not believe an empty list", func(ctx SpecContext) {
		restore := i.env.Cloud().Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true})
		defer restore()
		got := i.command.run(ctx, "list", "machines", "-o", "wide")
		Expect(got.Code).To(Equal(2), got.Stdout)
		Expect(got.Stdout).To(MatchRegexp(`(?m)^healthy .* Running .* unknown .* unknown `))
		Expect(got.Stdout).NotTo(ContainSubstring("delete the Machine"))
		Expect(got.Stdout).To(MatchRegexp(`(?m)^servers unknown, \d of 6 Machines ready, orphans unknown$`))
		Expect(got.Stderr).To(MatchRegexp("servers unknown: project .* in eu01: the list lacks server .*, which is there"))
	})

	It("counts nothing that was not read", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "servers", "--secret", "nope")
		Expect(got.Code).To(Equal(2), got.Stdout)
		Expect(got.Stdout).To(MatchRegexp(`(?m)^servers unknown, \d of 6 Machines ready, orphans unknown$`))
	})

	It("says that Nodes are unknown without the target's kubeconfig", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "machines", "--target-kubeconfig", "/nowhere")
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(got.Stdout).To(MatchRegexp(`(?m)^healthy .* Running .* ACTIVE +unknown `))
		Expect(got.Stderr).To(Equal("Nodes unknown: reading --target-kubeconfig /nowhere: stat /nowhere: no such file or directory\n"))
	})

	It("needs no target cluster", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "machines", "--target-kubeconfig", "none")
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(got.Stderr).To(BeEmpty())
		Expect(got.Stdout).To(ContainSubstring(", 6 Machines, "))
	})

	It("has examples that work", func(ctx SpecContext) {
		for _, kind := range []string{"servers", "machines", "clusters"} {
			_, section, _ := strings.Cut(i.command.run(ctx, "list", kind, "--help").Stdout, "Examples:\n")
			section, _, _ = strings.Cut(section, "\n\n")
			for line := range strings.SplitSeq(section, "\n") {
				example := strings.Fields(line)
				if example[0] == "#" {
					continue
				}
				want := 0
				switch {
				case slices.Contains(example, "--orphans"):
					want = 1
				case slices.Contains(example, "--cluster"):
					want = 2 // the example's is another one
				}
				Expect(i.command.run(ctx, example[1:]...).Code).To(Equal(want), line)
			}
		}
	})

	It("shows no secret", func(ctx SpecContext) {
		silent := &canaries{env: i.env}
		for _, kind := range []string{"servers", "machines", "clusters"} {
			for _, output := range []string{"wide", "json"} {
				got := i.command.run(ctx, "-v=9", "list", kind, "-o", output)
				silent.expectNone("list "+kind, got.Stdout+got.Stderr)
			}
		}
	})

	It("shows the Machines of all namespaces, and those with labels", func(ctx SpecContext) {
		const other = "elsewhere"
		Expect(i.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})).To(Succeed())
		Expect(i.Create(ctx, &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "far", Labels: map[string]string{"pool": "far"}},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "worker"}},
		})).To(Succeed())
		got := i.command.run(ctx, "list", "machines", "-A")
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(got.Stdout).To(And(
			MatchRegexp(`(?m)^MACHINE +NAMESPACE +PHASE `),
			MatchRegexp(`(?m)^far +%s `, other),
			MatchRegexp(`(?m)^healthy +%s +Running `, i.env.Namespace()),
			ContainSubstring(" of 7 Machines ready")))
		got = i.command.run(ctx, "list", "machines", "-A", "--no-headers", "-l", "pool in (far)")
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(got.Stdout).To(MatchRegexp(`^far [^\n]+\n$`))
		Expect(i.command.run(ctx, "list", "machines", "-o", "name").Stdout).NotTo(ContainSubstring("far"))
	})

	It("counts what was read, and says that nothing carries a mistyped label", func(ctx SpecContext) {
		got := i.command.run(ctx, "list", "servers", "--orphans", "-o", "json")
		var found list.Inventory
		Expect(json.Unmarshal([]byte(got.Stdout), &found)).To(Succeed())
		Expect(found.Servers).To(HaveLen(2))
		Expect([]int{*found.Totals.Servers, *found.Totals.Orphans}).To(Equal([]int{7, 2}))

		got = i.command.run(ctx, "list", "servers", "--cluster", clusterLabel+"=typo")
		Expect(got).To(Equal(ran{Code: 2, Stdout: "0 servers, 0 ACTIVE, 0 of 0 Machines ready, 0 orphans\n",
			Stderr: "cluster unknown: no server and no MachineClass that was read carries " + clusterLabel + "=typo\n"}))
	})

	It("shows drift", func(ctx SpecContext) {
		const field = "machineType"
		class := &v1alpha1.MachineClass{}
		Expect(i.Get(ctx, client.ObjectKey{Namespace: i.env.Namespace(), Name: "worker"}, class)).To(Succeed())
		changed := func(ctx context.Context, machineType string) {
			raw, err := json.Marshal(specWith(map[string]any{field: machineType}))
			Expect(err).NotTo(HaveOccurred())
			change(ctx, i.cluster, class, func() { class.ProviderSpec.Raw = raw })
		}
		changed(ctx, "c2i.4")
		DeferCleanup(func(ctx SpecContext) { changed(ctx, iaasmock.DefaultMachineType) })
		got := i.command.run(ctx, "list", "machines", "-o", "wide", "--machine", "healthy")
		Expect(got.Code).To(Equal(0), got.Stderr)
		Expect(got.Stdout).To(ContainSubstring(" " + field + " " + iaasmock.DefaultMachineType + ", not c2i.4; imageId unknown "))
	})
})

// makeEverything makes a server or Machine for each note.
func (i *stock) makeEverything(ctx context.Context) {
	GinkgoHelper()
	secret := i.createSecret(ctx, nil)
	class := i.createClass(ctx, "worker", specWith(nil))
	sessions := &spi.PluginSPIImpl{Config: spi.Config{Endpoint: i.env.CloudURL(), TokenURL: i.env.CloudURL() + "/token"}}
	var err error
	i.session, err = sessions.Session(spi.Credentials{ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(i.env.ServiceAccountKey())})
	Expect(err).NotTo(HaveOccurred())

	running := v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning}}
	healthy := i.createMachine(ctx, "healthy", "worker")
	// Nothing was sent before: there is no need to wait until it would show.
	created, err := provider.NewProvider(sessions, provider.WithSettle(0)).CreateMachine(ctx, &driver.CreateMachineRequest{Machine: healthy, MachineClass: class, Secret: secret})
	Expect(err).NotTo(HaveOccurred())
	i.run(ctx, "healthy", created.ProviderID, running)
	i.createServer(ctx, "twin", "healthy", "worker", clusterName)

	for name, owner := range map[string][2]string{"classless": {"gone", clusterName}, "stolen": {"worker", "another"}} {
		i.createServer(ctx, name, name, owner[0], owner[1])
		i.createMachine(ctx, name, owner[0])
		i.run(ctx, name, providerid.Format(iaasmock.DefaultProjectID, i.ids[name]), running)
	}
	i.createServer(ctx, "orphaned", "orphaned", "worker", clusterName)
	i.createServer(ctx, "forgotten", "forgotten", "gone", clusterName)
	i.createServer(ctx, "stranger", "stranger", "worker", "strangers")
	i.createServer(ctx, "bastion", "", "", "")

	i.createMachine(ctx, "new-born", "worker")
	i.createMachine(ctx, "lost", "worker")
	i.run(ctx, "lost", providerid.Format(iaasmock.DefaultProjectID, "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"), running)
	i.createMachine(ctx, "stuck", "worker")
	i.setStatus(ctx, "stuck", v1alpha1.MachineStatus{
		CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineCrashLoopBackOff},
		LastOperation: v1alpha1.LastOperation{
			State: v1alpha1.MachineStateFailed, Type: v1alpha1.MachineOperationCreate, ErrorCode: "ResourceExhausted",
			Description: "Cloud provider message - machine codes error: code = [ResourceExhausted] message = [QuotaExceeded: Quota exceeded: creating a server: status 403]",
		},
	})
}

// createServer makes a server with the labels that are not empty.
func (i *stock) createServer(ctx context.Context, name, machine, class, cluster string) {
	GinkgoHelper()
	labels := map[string]any{}
	for key, value := range map[string]string{provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class, clusterLabel: cluster} {
		if value != "" {
			labels[key] = value
		}
	}
	server, err := i.session.API.CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: labels,
		BootVolume: &iaas.BootVolume{Size: new(int64(20)), Source: &iaas.BootVolumeSource{Id: iaasmock.DefaultImageID, Type: "image"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: new(iaasmock.DefaultNetworkID)}},
	}).Execute()
	Expect(err).NotTo(HaveOccurred())
	i.ids[name] = server.GetId()
}

// run gives a Machine what the manager gives one whose server runs.
func (i *stock) run(ctx context.Context, name, providerID string, status v1alpha1.MachineStatus) {
	GinkgoHelper()
	machine, err := i.machine(name)(ctx)
	Expect(err).NotTo(HaveOccurred())
	change(ctx, i.cluster, machine, func() {
		machine.Spec.ProviderID = providerID
		machine.Labels = map[string]string{v1alpha1.NodeLabelKey: name}
	})
	i.setStatus(ctx, name, status)
}

func (i *stock) setStatus(ctx context.Context, name string, status v1alpha1.MachineStatus) {
	GinkgoHelper()
	machine, err := i.machine(name)(ctx)
	Expect(err).NotTo(HaveOccurred())
	machine.Status = status
	Expect(i.Status().Update(ctx, machine)).To(Succeed())
}

// notes returns what list says of servers or Machines, by name.
func (i *stock) notes(ctx context.Context, args ...string) map[string][]string {
	GinkgoHelper()
	got := i.command.run(ctx, append([]string{"list", "-o", "json"}, args...)...)
	Expect(got.Code).To(Equal(0), got.Stderr)
	Expect(got.Stderr).To(BeEmpty())
	var found list.Inventory
	Expect(json.Unmarshal([]byte(got.Stdout), &found)).To(Succeed())
	words := map[string][]string{}
	add := func(name string, notes []list.Note) {
		words[name] = []string{}
		for _, note := range notes {
			words[name] = append(words[name], note.String())
		}
	}
	for _, server := range found.Servers {
		add(server.Name, server.Notes)
	}
	for _, machine := range found.Machines {
		add(machine.Name, machine.Notes)
	}
	return words
}

// allowNamespace lets a user read what is in the namespace.
func (c *cluster) allowNamespace(ctx context.Context, user string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: user, Namespace: c.env.Namespace()}
	Expect(c.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"machines", "machineclasses", "machinedeployments", "machinesets"}, Verbs: []string{"list"}},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}})).To(Succeed())
	Expect(c.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}
