// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// afterChaos allows for leases that expire, and several times for the manager's retry after 3 minutes.
const afterChaos = 12 * time.Minute

var _ = Describe("Processes that are killed", longest, func() {
	It("leave each Machine with one server, whoever leads, while the API server comes and goes", func(ctx SpecContext) {
		c := newCluster(startEnvironment(ctx, localenv.WithNamespace("machines"), localenv.WithoutManager(),
			localenv.WithoutSidecar(), localenv.WithPodRestarts(), localenv.WithCloudOptions(
				iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
				iaasmock.WithListLag(2*time.Second), iaasmock.WithLatency(0, 50*time.Millisecond))))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		objects := renderIn("machines")
		Expect(c.applyAll(ctx, objects)).To(Succeed())
		user := serviceAccount{c.env.Namespace(), account}
		user.awaitRights(ctx, c.Client, controlRights(c.env.Namespace()))
		user.awaitRights(ctx, c.target, targetRights)
		deployment := c.deploymentIn(ctx, objects)
		sidecar := &deployment.Spec.Template.Spec.Containers[1]
		sidecar.Args = append(sidecar.Args, "--stackit-settle=5s") // lists lag 2 s
		for _, name := range []string{"pod-1", "pod-2"} {
			c.startPod(ctx, deployment, name)
		}
		c.createSecret(ctx, nil)
		c.createClass(ctx, "blue", specWith(providerSpec{"allowedAddresses": []string{"100.96.0.0/11"}}))
		c.createClass(ctx, "green", specWith(providerSpec{"machineType": "g2i.4"}))
		workers := c.newDeployment("workers", "blue", 4)
		workers.Spec.Strategy.RollingUpdate.MaxSurge.IntVal = workers.Spec.Replicas // all at once
		Expect(c.Create(ctx, workers)).To(Succeed())
		servers := c.env.Cloud().Servers
		killLeader := func(next string) {
			GinkgoHelper()
			leader, err := c.leader(ctx)
			Expect(err).NotTo(HaveOccurred())
			c.env.KillPod(leader)
			c.startPod(ctx, deployment, next)
			Eventually(ctx, c.leader).WithTimeout(upTimeout).WithPolling(poll).ShouldNot(Equal(leader))
		}

		By("killing the leader in the middle of creations")
		Eventually(ctx, servers).WithTimeout(afterCrash).WithPolling(poll / 10).Should(ContainElement(
			HaveField("Status", iaasmock.StatusCreating)))
		killLeader("pod-3")

		By("letting the API server go in the middle of a rolling update, and come back")
		change(ctx, c, workers, func() { workers.Spec.Template.Spec.Class.Name = "green" })
		Eventually(ctx, servers).WithTimeout(afterCrash).WithPolling(poll / 10).Should(ContainElement(
			HaveField("MachineType", "g2i.4")))
		Expect(c.env.RestartAPIServer()).To(Succeed())

		By("killing the leader in the middle of it")
		killLeader("pod-4")

		By("waiting until all is as it was wanted")
		Eventually(ctx, func(ctx context.Context) error { return c.atRest(ctx, workers) }).
			WithTimeout(afterChaos).WithPolling(poll).Should(Succeed())
		verify()
	}, NodeTimeout(2*afterChaos))
})

// atRest returns nil if the deployment has all its Machines, each of its class and Running with one ACTIVE server and
// one Node, and nothing else exists.
func (c *cluster) atRest(ctx context.Context, deployment *v1alpha1.MachineDeployment) error {
	machines, err := c.machines(ctx)
	if err != nil {
		return err
	}
	byID := map[string]iaasmock.Server{}
	for _, server := range c.env.Cloud().Servers() {
		byID[server.ID] = server
	}
	nodes, err := c.nodes(ctx)
	if want := int(deployment.Spec.Replicas); err != nil || len(machines) != want || len(byID) != want || nodes != want {
		return fmt.Errorf("%d Machines are wanted, there are %d, with %d servers and %d Nodes (%w)",
			want, len(machines), len(byID), nodes, err)
	}
	for i := range machines {
		status, id := machines[i].Status, machines[i].Spec.ProviderID
		server := byID[id[strings.LastIndex(id, "/")+1:]]
		if machines[i].Spec.Class != deployment.Spec.Template.Spec.Class || server.Name != machines[i].Name ||
			status.CurrentStatus.Phase != v1alpha1.MachineRunning || server.Status != iaasmock.StatusActive {
			return fmt.Errorf("machine %s of class %s is %q (%s), with server %q, which is %s", machines[i].Name,
				machines[i].Spec.Class.Name, status.CurrentStatus.Phase, status.LastOperation.Description, server.Name,
				server.Status)
		}
	}
	return nil
}

// nodes counts the Nodes of servers, and deletes the others, as the cloud controller manager does: a Machine that is
// deleted before the manager has noted the name of its Node leaves the Node behind.
func (c *cluster) nodes(ctx context.Context) (count int, err error) {
	all, err := c.allNodes(ctx)
	for i := range all {
		id := strings.TrimPrefix(all[i].Spec.ProviderID, "stackit://")
		if _, exists := c.env.Cloud().Server(id); exists {
			count++
		} else if err := c.target.Delete(ctx, &all[i]); err != nil {
			return count, err
		}
	}
	return count, err
}

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
