// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// afterCrash allows for the time in which a new process asks for no server because
// its predecessor may have (--stackit-settle), and for the manager's retries.
const afterCrash = 30*time.Second + upTimeout

// watchDoubles returns a check that no machine ever had two servers that were not
// being deleted. It looks at every state the cloud passes through while it runs.
func watchDoubles(ctx context.Context, cloud *iaasmock.Cloud) (verify func()) {
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	doubles := make(chan string, 1)
	go func() {
		defer close(doubles)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			if name := double(cloud.Servers()); name != "" {
				doubles <- name
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		GinkgoHelper()
		cancel()
		Expect(<-doubles).To(BeEmpty(), "a machine had two servers")
	}
}

func double(servers []iaasmock.Server) string {
	seen := map[string]bool{}
	for _, server := range servers {
		if server.Status == iaasmock.StatusDeleting {
			continue
		}
		if seen[server.Name] {
			return server.Name
		}
		seen[server.Name] = true
	}
	return ""
}

// createMachines makes Machines. Their names differ where the manager looks for
// the ID of a bootstrap token: in the 3 characters before the last 2.
func (c *cluster) createMachines(ctx context.Context, count int, class string) {
	GinkgoHelper()
	for i := range count {
		c.createMachine(ctx, fmt.Sprintf("machine-%03d-x", i), class)
	}
}

func (c *cluster) restartSidecar(ctx context.Context) {
	GinkgoHelper()
	c.env.KillSidecar()
	Expect(c.env.StartSidecar(ctx)).To(Succeed())
}

// awaitOrphanRun restarts the sidecar: an orphan run is the first thing that it does.
func (c *cluster) awaitOrphanRun(ctx context.Context) {
	GinkgoHelper()
	c.env.Cloud().ResetCalls()
	c.restartSidecar(ctx)
	Eventually(c.env.Cloud().CallCounts).WithTimeout(upTimeout).WithPolling(poll).Should(HaveKey("ListServers"))
}

var _ = Describe("When the sidecar is killed", long, func() {
	It("in the middle of creations each Machine ends with one server, and of deletions with none", func(ctx SpecContext) {
		const count = 3
		c := newCluster(startEnvironment(ctx, localenv.WithCloudOptions(
			iaasmock.WithBootDuration(8*time.Second), iaasmock.WithDeleteDuration(5*time.Second),
			iaasmock.WithListLag(3*time.Second))))
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		By("killing it where one answer never comes, one request is under way for long, and one server boots")
		for _, fault := range []iaasmock.Fault{
			{Server: "machine-000-x", AnswerDelay: time.Hour}, {Server: "machine-001-x", Delay: 20 * time.Second},
		} {
			fault.Operation, fault.Count = "CreateServer", 1
			c.env.Cloud().Inject(fault)
		}
		c.createMachines(ctx, count, "small")
		Eventually(c.env.Cloud().Servers).WithTimeout(upTimeout).WithPolling(poll / 10).
			Should(ConsistOf(HaveField("Name", "machine-000-x"), HaveField("Name", "machine-002-x")))
		c.restartSidecar(ctx)
		Eventually(ctx, c.running).WithTimeout(afterCrash).WithPolling(poll).Should(HaveLen(count))
		Expect(c.env.Cloud().Servers()).To(HaveLen(count))
		Expect(c.env.Cloud().History().ServersCreated).To(Equal(count), "servers ever created")

		By("killing it while servers are being deleted")
		Expect(c.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(c.env.Namespace()))).To(Succeed())
		Eventually(c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll / 10).
			Should(ContainElement(HaveField("Status", iaasmock.StatusDeleting)))
		c.restartSidecar(ctx)
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(BeEmpty())
		c.expectNothingLeft(ctx)
		verify()
	}, SpecTimeout(6*time.Minute))
})

var _ = Describe("When lists lag behind for longer than servers boot", long, func() {
	It("50 machines get one server each", func(ctx SpecContext) {
		const count = 50
		c := newCluster(startEnvironment(ctx,
			localenv.WithCloudOptions(iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration), iaasmock.WithListLag(10*time.Second)),
			localenv.WithSidecarArgs("--kube-api-qps=100", "--kube-api-burst=200", "--machine-drain-timeout=1s"),
			localenv.WithManagerArgs("--kube-api-qps=150", "--kube-api-burst=200")))
		verify := watchDoubles(ctx, c.env.Cloud())
		c.createSecret(ctx, nil)
		c.createClass(ctx, "small", specWith(nil))
		deployment := c.createDeployment(ctx, "many", "small", count)
		Eventually(ctx, func(ctx context.Context) (int32, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
			return deployment.Status.ReadyReplicas, err
		}).WithTimeout(5 * time.Minute).WithPolling(poll).Should(BeEquivalentTo(count))
		// The manager overshoots at times, and takes the surplus back: what counts is
		// that a machine never has two servers and a server always a machine.
		Eventually(ctx, c.machines).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(count))
		Eventually(c.env.Cloud().Servers).WithTimeout(downTimeout).WithPolling(poll).Should(HaveLen(count))
		verify()
		// Machines of the surplus may have gone before their Nodes came.
		Eventually(ctx, func(ctx context.Context) (int, error) {
			nodes, _, err := c.nodes(ctx)
			return nodes, err
		}).WithTimeout(upTimeout).WithPolling(poll).Should(Equal(count))
	}, SpecTimeout(12*time.Minute))
})
