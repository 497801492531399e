// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// alertTimeout is for one scenario, but for deletions and lists, which need 100 s for their `for` alone.
const alertTimeout = 90 * time.Second

// How many scrapes a scenario may take. With more, a Machine that is being created makes
// StackitMachineCreationSlow fire as well, deletions that fail StackitMachineDeletionStuck.
const (
	slowAfter  = 29
	longEnough = int(alertTimeout / scrapeInterval)
)

// preset returns a fault of the mock by its name.
func preset(name string) iaasmock.Fault {
	GinkgoHelper()
	for _, preset := range iaasmock.Presets() {
		if preset.Name == name {
			return preset.Fault
		}
	}
	Fail("no preset " + name)
	return iaasmock.Fault{}
}

// Each scenario switches one trouble on, and waits until the one alert that is about it
// fires. The order matters: what was refused for its credentials is tried again after 3
// minutes, so that comes first; the server that does not boot would be slow in a scenario
// after it, too, so it comes last. Each other scenario fires before a Machine that it makes
// is 15 minutes old, and before deletions have failed for 50: 30 and 100 s here.
var _ = Describe("Alerts", Ordered, ContinueOnFailure, longest, func() {
	var (
		c *cluster
		// spare are the Machines that run, for the scenarios to delete.
		spare []*v1alpha1.Machine
		seen  = map[string]bool{}
	)

	BeforeAll(func(ctx SpecContext) {
		const machines = 10
		c = newCluster(startEnvironment(ctx, localenv.WithSidecarArgs(
			// Lists of this mock do not lag.
			"--stackit-settle=2s")))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		for i := range machines {
			// Machines of one cluster share their reads. Of several, there are enough
			// calls in the few seconds of a window.
			class := fmt.Sprintf("spare-%d", i)
			c.createClass(ctx, class, specWith(providerSpec{"labels": map[string]any{clusterLabel: class}}))
			spare = append(spare, c.createMachine(ctx, fmt.Sprintf("spare-%03d-x", i), class))
		}
		Eventually(ctx, c.running).WithTimeout(upTimeout).WithPolling(poll).Should(HaveLen(machines))
	}, NodeTimeout(5*time.Minute))

	// deleteSpare deletes so many Machines that run, and does not wait for it.
	deleteSpare := func(ctx context.Context, count int) {
		GinkgoHelper()
		for _, machine := range spare[:count] {
			Expect(c.Delete(ctx, machine)).To(Succeed())
		}
		spare = spare[count:]
	}

	// expectOnly is expectOnlyAlert, and notes which metrics were seen.
	expectOnly := func(ctx SpecContext, alert string, within int, provoke func(*scrapes)) {
		GinkgoHelper()
		s := startScrapes(c.env.SidecarMetricsURL, within)
		DeferCleanup(func() { maps.Copy(seen, s.names()) })
		c.expectOnlyAlert(ctx, alert, s, provoke)
	}

	// inject lets the cloud misbehave until the spec ends.
	inject := func(fault iaasmock.Fault) { DeferCleanup(c.env.Cloud().Inject(fault)) }

	It("StackitCredentialsRefused fires when the service account is refused", func(ctx SpecContext) {
		expectOnly(ctx, "StackitCredentialsRefused", longEnough, func(*scrapes) {
			inject(preset("unauthorized"))
			deleteSpare(ctx, 2)
		})
	})

	It("StackitDuplicateServers fires when a Machine finds two servers", func(ctx SpecContext) {
		expectOnly(ctx, "StackitDuplicateServers", longEnough, func(*scrapes) {
			for range 2 {
				c.createServer(ctx, "two-servers", "small")
			}
			c.createMachine(ctx, "two-servers", "small")
		})
	})

	// All reads, or lists take the place of single ones. Not writes: the driver sends them less and
	// less often while they fail, twice a minute in the end. An operator sees ten of them in five
	// minutes; here five minutes are some seconds.
	It("StackitAPIFailing fires when reads are answered with 503", func(ctx SpecContext) {
		expectOnly(ctx, "StackitAPIFailing", longEnough, func(*scrapes) {
			for _, operation := range []string{"GetServer", "ListServers"} {
				inject(iaasmock.Fault{Operation: operation, Status: http.StatusServiceUnavailable})
			}
			deleteSpare(ctx, 3)
		})
	})

	It("StackitAPIThrottled fires when all calls are answered with 429", func(ctx SpecContext) {
		expectOnly(ctx, "StackitAPIThrottled", longEnough, func(*scrapes) {
			inject(preset("rate-limited"))
			deleteSpare(ctx, 3)
		})
	})

	It("StackitQuotaOrCapacityExhausted fires when the quota is used up", func(ctx SpecContext) {
		expectOnly(ctx, "StackitQuotaOrCapacityExhausted", slowAfter, func(*scrapes) {
			inject(preset("quota-exceeded"))
			machine := c.createMachine(ctx, "beyond-the-quota", "small")
			DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, machine)).To(Succeed()) })
		})
	})

	It("StackitOrphanServers fires when a server without a Machine is deleted", func(ctx SpecContext) {
		expectOnly(ctx, "StackitOrphanServers", longEnough, func(*scrapes) {
			c.createServer(ctx, "nobodys", "small")
			// An orphan run is the first thing a sidecar does.
			c.restartSidecar(ctx)
		})
	})

	It("StackitOrphanRefused fires when the label of a server without a Machine is not its name", func(ctx SpecContext) {
		expectOnly(ctx, "StackitOrphanRefused", longEnough, func(*scrapes) {
			id := c.createServer(ctx, "nobodys", "small")
			DeferCleanup(func(ctx SpecContext) {
				Expect(c.env.Cloud().RemoveServer(id)).To(Succeed())
				Expect(client.IgnoreNotFound(c.target.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nobodys"}}))).To(Succeed())
			})
			_, err := c.api().UpdateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion, id).UpdateServerPayload(iaas.UpdateServerPayload{
				Labels: map[string]any{clusterLabel: clusterName, provider.StackitMachineLabel: "edited", provider.StackitMachineClassLabel: "small"}}).Execute()
			Expect(err).NotTo(HaveOccurred())
			c.restartSidecar(ctx)
		})
	})

	It("StackitKeyExpires fires when a Secret has a key that expires in ten days", func(ctx SpecContext) {
		expectOnly(ctx, "StackitKeyExpires", longEnough, func(*scrapes) {
			DeferCleanup(func(ctx SpecContext) {
				c.setKeyExpiry(ctx, time.Time{})
				c.restartSidecar(ctx)
			})
			c.setKeyExpiry(ctx, time.Now().Add(10*24*time.Hour))
			c.restartSidecar(ctx)
		})
	})

	It("StackitMaintenanceSoon fires when maintenance of a server is announced for the day", func(ctx SpecContext) {
		expectOnly(ctx, "StackitMaintenanceSoon", longEnough, func(*scrapes) {
			begins := time.Now().Add(20 * time.Hour).UTC()
			window := &iaasmock.MaintenanceWindow{Status: "PLANNED", StartsAt: begins, EndsAt: begins.Add(time.Hour)}
			server := c.env.Cloud().Servers()[0].ID
			Expect(c.env.Cloud().SetMaintenanceWindow(server, window)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(c.env.Cloud().SetMaintenanceWindow(server, nil)).To(Succeed())
				c.restartSidecar(ctx)
			})
			c.restartSidecar(ctx) // its orphan run lists the servers
		})
	})

	It("StackitSidecarRestarting fires after three restarts", func(ctx SpecContext) {
		expectOnly(ctx, "StackitSidecarRestarting", longEnough, func(s *scrapes) {
			for range 3 {
				c.restartSidecar(ctx)
				s.await(ctx, 3) // each process is scraped
			}
		})
	})

	It("StackitMachineDeletionStuck fires when a server cannot be deleted", func(ctx SpecContext) {
		expectOnly(ctx, "StackitMachineDeletionStuck", 2*longEnough, func(*scrapes) {
			// A call fails after half a minute, and the alert's window is a minute and a half here.
			inject(preset("delete-error"))
			deleteSpare(ctx, 1)
		})
	}, SpecTimeout(5*time.Minute))

	It("StackitMachineCreationSlow fires when a server does not boot", func(ctx SpecContext) {
		expectOnly(ctx, "StackitMachineCreationSlow", longEnough, func(*scrapes) {
			inject(preset("stuck-creating"))
			c.createMachine(ctx, "boots-for-ever", "small")
			DeferCleanup(func() {
				for _, server := range c.env.Cloud().Servers() {
					if server.Name == "boots-for-ever" {
						Expect(c.env.Cloud().SetServerStatus(server.ID, iaasmock.StatusActive, "")).To(Succeed())
					}
				}
			})
		})
	})

	It("read what is scraped, as does the dashboard, and all of ours is documented", func() {
		documented, err := monitoring.Documented()
		Expect(err).NotTo(HaveOccurred())
		for name := range seen {
			if strings.HasPrefix(name, "stackit_") || strings.HasPrefix(name, "mcm_cloud_api_") {
				Expect(documented).To(HaveKey(name))
			}
		}
		alerts, err := monitoring.Alerts()
		Expect(err).NotTo(HaveOccurred())
		panels, err := monitoring.Panels()
		Expect(err).NotTo(HaveOccurred())
		var queries []string
		for _, alert := range alerts {
			queries = append(queries, alert.Expr)
		}
		for _, panel := range panels {
			for _, target := range panel.Targets {
				queries = append(queries, monitoring.Query(target.Expr))
			}
		}
		fromPrometheus := []string{"up", "ALERTS"}
		for _, query := range queries {
			for _, name := range monitoring.MetricNames(query) {
				if !slices.Contains(fromPrometheus, name) {
					Expect(seen).To(HaveKey(name), "%s", query)
				}
			}
		}
	})
})

// These need a sidecar with other flags, or none. The one without an API server comes last: it
// takes the manager a while to go on after that.
var _ = Describe("Alerts of a sidecar that cannot work", Ordered, ContinueOnFailure, longest, func() {
	var c *cluster

	BeforeAll(func(ctx SpecContext) {
		c = newCluster(startEnvironment(ctx, localenv.WithSidecarArgs(
			// 5 to 10 minutes for promtool, and some seconds.
			"--machine-safety-orphan-vms-period=15s",
			"--machine-safety-apiserver-statuscheck-period=2s", "--machine-safety-apiserver-statuscheck-timeout=2s")))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "quiet", specWith(nil))
	}, NodeTimeout(5*time.Minute))

	It("StackitListsFailing fires when lists fail for an hour", func(ctx SpecContext) {
		s := startScrapes(c.env.SidecarMetricsURL, 3*longEnough)
		c.expectOnlyAlert(ctx, "StackitListsFailing", s, func(*scrapes) {
			DeferCleanup(c.env.Cloud().Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusInternalServerError}))
		})
	}, SpecTimeout(5*time.Minute))

	It("StackitManagerDown fires when the manager does not run, and the sidecar does", func(ctx SpecContext) {
		s := startScrapes(c.env.ManagerMetricsURL, longEnough, asManager)
		c.expectOnlyAlert(ctx, "StackitManagerDown", s, func(*scrapes) {
			c.env.KillManager()
			DeferCleanup(c.env.StartManager)
		})
	})

	It("StackitSidecarMissing fires when there is no Pod", func(ctx SpecContext) {
		var gone atomic.Bool
		s := startScrapes(func() string {
			if gone.Load() {
				return ""
			}
			return c.env.SidecarMetricsURL()
		}, longEnough)
		c.expectOnlyAlert(ctx, "StackitSidecarMissing", s, func(*scrapes) {
			c.env.KillSidecar()
			DeferCleanup(c.env.StartSidecar)
			gone.Store(true)
		})
	})

	It("StackitControllerFrozen fires when the API server does not answer", func(ctx SpecContext) {
		s := startScrapes(c.env.SidecarMetricsURL, longEnough)
		c.expectOnlyAlert(ctx, "StackitControllerFrozen", s, func(*scrapes) {
			c.env.KillAPIServer()
			DeferCleanup(func(ctx SpecContext) {
				Expect(c.env.StartAPIServer(ctx)).To(Succeed())
				c.restartSidecar(ctx) // it would look for the API server less and less often
			})
		})
	})
})

var _ = Describe("Alerts of a sidecar that waits for its lease", long, func() {
	It("StackitSidecarNotLeading fires when somebody else leads", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithoutSidecar(), localenv.WithSidecarArgs("--leader-elect=true")))
		somebody, seconds, now := "somebody-else", int32(3600), metav1.NowMicro()
		Expect(c.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "machine-controller", Namespace: c.env.Namespace()},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &somebody, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
		})).To(Succeed())
		Expect(c.env.StartSidecar(ctx)).To(Succeed())
		s := startScrapes(c.env.SidecarMetricsURL, longEnough)
		fired := func() error { return s.expectFired(ctx, newPromtool(), "StackitSidecarNotLeading") }
		Eventually(ctx, fired).WithTimeout(alertTimeout).WithPolling(2 * time.Second).Should(Succeed())
	}, SpecTimeout(4*time.Minute))
})

func newPromtool() *monitoring.Promtool {
	GinkgoHelper()
	tool, err := monitoring.NewPromtool(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return tool
}

// expectOnlyAlert provokes a trouble and waits until this alert has fired, and no other,
// within the scrapes that count: later ones do not, however long an evaluation takes.
func (c *cluster) expectOnlyAlert(ctx SpecContext, alert string, s *scrapes, provoke func(*scrapes)) {
	GinkgoHelper()
	tool := newPromtool()
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			c.showLogs()
		}
	})
	Expect(s.expectFired(ctx, tool)).To(Succeed(), "before")
	provoke(s)
	timeout := max(alertTimeout, time.Duration(s.most)*scrapeInterval)
	Eventually(ctx, func() error { return s.expectFired(ctx, tool, alert) }).
		WithTimeout(timeout).WithPolling(2 * time.Second).Should(Succeed())
	_, _ = fmt.Fprintf(GinkgoWriter, "%s has fired, after at most %d scrapes\n", alert, s.counted())
}

// createServer makes a server in the cloud, as somebody else than the sidecar would who uses
// its labels.
func (c *cluster) createServer(ctx context.Context, machine, class string) (id string) {
	GinkgoHelper()
	network, size, goes := iaasmock.DefaultNetworkID, int64(20), true
	payload := iaas.NewCreateServerPayload(iaasmock.DefaultMachineType, machine, iaas.CreateServerPayloadAllOfNetworking{
		CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network},
	})
	payload.Labels = map[string]any{clusterLabel: clusterName, provider.StackitMachineLabel: machine, provider.StackitMachineClassLabel: class}
	payload.BootVolume = &iaas.BootVolume{
		Size: &size, DeleteOnTermination: &goes, Source: iaas.NewBootVolumeSource(iaasmock.DefaultImageID, "image"),
	}
	server, err := c.api().CreateServer(ctx, iaasmock.DefaultProjectID, iaasmock.DefaultRegion).CreateServerPayload(*payload).Execute()
	Expect(err).NotTo(HaveOccurred())
	return server.GetId()
}

// setKeyExpiry writes the Secret's key with another validUntil; the zero time is none.
func (c *cluster) setKeyExpiry(ctx context.Context, expiry time.Time) {
	GinkgoHelper()
	var key map[string]any
	Expect(json.Unmarshal(c.env.ServiceAccountKey(), &key)).To(Succeed())
	delete(key, "validUntil")
	if !expiry.IsZero() {
		key["validUntil"] = expiry.Format(time.RFC3339)
	}
	content, err := json.Marshal(key)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.env.Namespace(), Name: secretName}}
	change(ctx, c, secret, func() { secret.Data["serviceAccountKey"] = content })
}
