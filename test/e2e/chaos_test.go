// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	// chaosDurationVariable is how long things go wrong, such as 10m.
	chaosDurationVariable = "E2E_CHAOS_DURATION"
	// chaosSeedVariable repeats the choices of an earlier run. What the processes
	// make of them depends on their timing, and is not repeated.
	chaosSeedVariable = "E2E_CHAOS_SEED"

	defaultChaos = 2 * time.Minute
	// healTimeout is the longest that the manager waits before it tries again (10
	// minutes, where a deletion was answered with an error that does not pass by
	// itself), and what it then takes.
	healTimeout = 12 * time.Minute
)

var _ = Describe("Chaos", longest, func() {
	It("ends with the Machines that are wanted, one server each, and nothing else", func(ctx SpecContext) {
		duration, seed := chaosSettings()
		AddReportEntry(fmt.Sprintf("%s=%d %s=%s", chaosSeedVariable, seed, chaosDurationVariable, duration), ReportEntryVisibilityAlways)
		c := newCluster(startEnvironment(ctx,
			localenv.WithSidecarReplicas(2),
			localenv.WithCloudOptions(
				iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
				iaasmock.WithListLag(2*time.Second), iaasmock.WithLatency(0, 50*time.Millisecond)),
			// Only the creation timeout (20 minutes by default) ends the wait for the Node of
			// a server that breaks before it has joined.
			localenv.WithSidecarArgs("--resource-exhausted-retry=10s", "--machine-health-timeout=20s", "--machine-drain-timeout=5s",
				"--machine-safety-orphan-vms-period=30s", "--machine-creation-timeout=5m")))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		c.createSecret(ctx, nil)
		for class, machineType := range chaosClasses {
			c.createClass(ctx, class, specWith(providerSpec{"machineType": machineType, "allowedAddresses": []string{"100.96.0.0/11"}}))
		}
		user := &chaosUser{cluster: c, random: newRandom(seed, 1), wanted: map[string]wantedPool{}}
		cloud := &chaosCloud{cloud: c.env.Cloud(), random: newRandom(seed, 2)}
		processes := &chaosProcesses{env: c.env, random: newRandom(seed, 3)}

		By(fmt.Sprintf("letting things go wrong for %s", duration))
		during(ctx, duration, user.act, cloud.act, processes.act)
		user.actLast(ctx)
		cloud.endFaults()

		By("waiting until all is as it was wanted")
		ended := time.Now()
		Eventually(ctx, user.atRest).WithTimeout(healTimeout).WithPolling(poll).Should(Succeed())
		healed := time.Since(ended).Round(time.Second)
		verify()
		AddReportEntry(fmt.Sprintf("healed %s after the last fault, with %d machines; %d nodes had lost their machines; %d changes by the user; faults %+v; processes ended or paused %+v",
			healed, len(c.env.Cloud().Servers()), user.strayNodes, user.changes, cloud.counts, processes.counts), ReportEntryVisibilityAlways)
		Consistently(ctx, user.atRest).WithTimeout(5 * time.Second).WithPolling(poll).Should(Succeed())
	})
})

// chaosSettings reads the environment.
func chaosSettings() (duration time.Duration, seed uint64) {
	GinkgoHelper()
	var err error
	duration, seed = defaultChaos, rand.Uint64()
	if text := os.Getenv(chaosDurationVariable); text != "" {
		duration, err = time.ParseDuration(text)
		Expect(err).NotTo(HaveOccurred(), chaosDurationVariable)
	}
	if text := os.Getenv(chaosSeedVariable); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred(), chaosSeedVariable)
	}
	return duration, seed
}

// newRandom gives each actor choices of its own, whatever the others do meanwhile.
func newRandom(seed, actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, actor)) }

// between returns a random duration.
func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}

// during runs the actors until the time is over. An actor does one thing, and
// returns how long it waits before the next. What it has begun it always finishes.
func during(ctx context.Context, duration time.Duration, actors ...func(context.Context) time.Duration) {
	over := time.After(duration)
	var group sync.WaitGroup
	defer group.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for _, act := range actors {
		group.Go(func() {
			defer GinkgoRecover()
			for {
				select {
				case <-stop:
					return
				case <-time.After(act(ctx)):
				}
			}
		})
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// atRest answers nil when each deployment has the Machines that the user wants of
// it, all Running, of its class, with one ACTIVE server and one Node each, and when
// nothing else is there: no server, Node, NIC or volume.
func (u *chaosUser) atRest(ctx context.Context) error {
	machines, err := u.machines(ctx)
	if err != nil {
		return err
	}
	pools := map[string]int{}
	for i := range machines {
		if err := u.machineAtRest(&machines[i]); err != nil {
			return err
		}
		pools[machines[i].Labels[deploymentLabel]]++
	}
	all := 0
	for name, pool := range u.wanted {
		if all += pool.replicas; pools[name] != pool.replicas {
			return fmt.Errorf("deployment %s has %d machines, %d are wanted", name, pools[name], pool.replicas)
		}
	}
	nodes, stray, err := u.nodes(ctx)
	u.strayNodes += stray
	if err != nil {
		return err
	}
	servers := u.env.Cloud().Servers()
	// Each server has a boot volume and a NIC of its own.
	extra := len(attachments(u.env.Cloud())) - len(u.attachments)
	if len(machines) != all || len(servers) != all || nodes != all || extra != 2*all {
		return fmt.Errorf("%d machines are wanted, there are %d, with %d servers, %d nodes and %d NICs and volumes",
			all, len(machines), len(servers), nodes, extra)
	}
	return nil
}
