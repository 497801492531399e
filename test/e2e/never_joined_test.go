// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// joinTimeout is after which the manager gives the first of these Machines up; their Nodes never come.
const joinTimeout = 20 * time.Second

var _ = Describe("A server that never joins", long, journey, func() {
	It("has its cause in log and metrics, without a secret, and makes an alert fire", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithJoinDuration(time.Hour),
			localenv.WithSidecarArgs("--stackit-settle=2s")))
		c.createSecret(ctx, nil)
		s := startScrapes(c.env.SidecarMetricsURL, 2*longEnough)
		causes := []string{"dns", "disk-full"}
		for i, cause := range causes {
			c.createClass(ctx, cause, specWith(nil))
			deployment := c.newDeployment(cause, cause, 1)
			deployment.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{
				// One log is read at a time.
				MachineCreationTimeout: &metav1.Duration{Duration: joinTimeout + time.Duration(i)*10*time.Second}}
			Expect(c.Create(ctx, deployment)).To(Succeed())
		}
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(len(causes)))
		for _, server := range c.env.Cloud().Servers() {
			cause := server.Labels["kubernetes.io/machineclass"]
			log, err := os.ReadFile(filepath.Join(root(), "pkg", "provider", "testdata", "console", cause+".log"))
			Expect(err).NotTo(HaveOccurred())
			hostile := fmt.Sprintf("\n[FAILED] Failed to start a.service - With the token %[1]s.\n"+
				"curl: (6) Could not resolve host: x %[1]s\npassword: %[1]s: No space left on device\n%[2]s\n",
				userDataCanary, userData)
			Expect(c.env.Cloud().SetConsoleLog(server.ID, string(log)+hostile, 0)).To(Succeed())
		}
		s.other = "StackitMachineCreationSlow" // half a minute without a ProviderID is a quarter of an hour here
		s.expectAlerts(ctx, "StackitServersNeverJoin")

		for _, cause := range causes { // the first of them may have fired the alert
			Eventually(ctx, func() (float64, error) {
				samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
				return measured(samples).sum("stackit_never_joined_total", cause), err
			}).WithTimeout(upTimeout).WithPolling(poll).Should(BeNumerically(">=", 1), cause)
		}
		log := controllerLogs(c.env)[localenv.PartSidecar]
		samples, err := readMetrics(ctx, c.env.SidecarMetricsURL())
		Expect(err).NotTo(HaveOccurred())
		for _, cause := range causes {
			Expect(log).To(MatchRegexp(`never joined the cluster.* machine="default/` + cause + `-.* cause="` + cause + `"`))
		}
		for _, secret := range []string{"geheim", "07401b", "eyJhbGci", userDataCanary} {
			Expect(log).NotTo(ContainSubstring(secret))
			for _, sample := range samples {
				Expect(sample.Metric.String()).NotTo(ContainSubstring(secret))
			}
		}
	}, SpecTimeout(6*time.Minute))
})
