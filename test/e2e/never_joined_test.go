// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// joinTimeout is after which the manager gives these Machines up; their Nodes never come.
const joinTimeout = 30 * time.Second

// plantedCauses are what goes wrong in servers here, each with a console log of pkg/provider/testdata.
var plantedCauses = []string{"no-address", "dns", "certificate", "refused", "kernel-panic", "emergency-mode",
	"cloud-init", "disk-full", "no-cloud-init", "node-agent"}

var _ = Describe("A server that never joins", Ordered, ContinueOnFailure, long, func() {
	var c *cluster

	BeforeAll(func(ctx SpecContext) {
		c = newCluster(startEnvironment(ctx, localenv.WithJoinDuration(time.Hour),
			localenv.WithSidecarArgs("--stackit-settle=2s")))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
	}, NodeTimeout(5*time.Minute))

	// causes are those that the sidecar has counted.
	causes := func(ctx context.Context) (map[string]float64, error) {
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		counted := map[string]float64{}
		for _, sample := range samples {
			if sample.Metric["__name__"] == "stackit_never_joined_total" && sample.Value > 0 {
				counted[string(sample.Metric["cause"])] = float64(sample.Value)
			}
		}
		return counted, err
	}

	// withServers are the Machines that have their ProviderIDs.
	withServers := func(ctx context.Context) (machines []v1alpha1.Machine, err error) {
		machines, err = c.machines(ctx)
		return slices.DeleteFunc(machines, func(m v1alpha1.Machine) bool { return m.Spec.ProviderID == "" }), err
	}

	It("has its cause in the sidecar's log and metrics, and no secret", func(ctx SpecContext) {
		root, err := localenv.Root()
		Expect(err).NotTo(HaveOccurred())
		for _, cause := range plantedCauses {
			machine := c.newMachine(cause+"-x1", "small")
			machine.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
				MachineCreationTimeout: &metav1.Duration{Duration: joinTimeout}}
			Expect(c.Create(ctx, machine)).To(Succeed())
		}
		Eventually(ctx, withServers).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(len(plantedCauses)))
		for _, server := range c.env.Cloud().Servers() {
			file := strings.TrimSuffix(server.Name, "-x1") + ".log"
			log, err := os.ReadFile(filepath.Join(root, "pkg", "provider", "testdata", "console", file))
			Expect(err).NotTo(HaveOccurred())
			hostile := fmt.Sprintf("\n[FAILED] Failed to start a.service - With the token %[1]s.\n"+
				"curl: (6) Could not resolve host: x %[1]s\npassword: %[1]s: No space left on device\n%[2]s\n",
				userDataCanary, userData)
			Expect(c.env.Cloud().SetConsoleLog(server.ID, string(log)+hostile, 0)).To(Succeed())
		}
		machines, err := c.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		for i := range machines { // one log of a class is read at a time
			expired := machines[i].CreationTimestamp.Add(joinTimeout + time.Second)
			Eventually(time.Now).WithTimeout(upTimeout).WithPolling(poll).Should(BeTemporally(">", expired))
			Expect(c.Delete(ctx, &machines[i])).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (total float64, err error) {
				counted, err := causes(ctx)
				for count := range maps.Values(counted) {
					total += count
				}
				return total, err
			}).WithTimeout(downTimeout).WithPolling(poll).Should(BeEquivalentTo(i + 1))
		}
		named, err := causes(ctx)
		Expect(err).NotTo(HaveOccurred())
		log := controllerLogs(c.env)[localenv.PartSidecar]
		for _, cause := range plantedCauses {
			Expect(named).To(HaveKeyWithValue(cause, 1.0))
			Expect(log).To(MatchRegexp(`never joined the cluster.* machine="default/` + cause + `-x1" .*cause="` + cause + `"`))
		}
		Expect(c.env.Cloud().CallCounts()).To(HaveKeyWithValue("GetServerLog", len(plantedCauses)))
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		Expect(err).NotTo(HaveOccurred())
		for _, secret := range []string{"geheim", "07401b", "eyJhbGci", userDataCanary} {
			Expect(log).NotTo(ContainSubstring(secret))
			for _, sample := range samples {
				Expect(sample.Metric.String()).NotTo(ContainSubstring(secret))
			}
		}
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("makes StackitServersNeverJoin fire once the manager has replaced two", func(ctx SpecContext) {
		s := startScrapes(c.env.SidecarMetricsURL, 2*longEnough)
		c.expectOnlyAlert(ctx, "StackitServersNeverJoin", s, func(*scrapes) {
			deployment := c.newDeployment("hopeless", "small", 2)
			deployment.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
				MachineCreationTimeout: &metav1.Duration{Duration: joinTimeout}}
			Expect(c.Create(ctx, deployment)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, deployment)).To(Succeed()) })
		})
	}, SpecTimeout(5*time.Minute))
})
