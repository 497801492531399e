// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

const (
	// chaosDurationVariable is how long things go wrong, such as 10m.
	chaosDurationVariable = "E2E_CHAOS_DURATION"
	// chaosSeedVariable repeats the choices of an earlier run. What the processes
	// make of them depends on their timing, and is not repeated.
	chaosSeedVariable = "E2E_CHAOS_SEED"

	defaultChaos = time.Minute
	// healTimeout is the longest that the manager waits before it tries again (10
	// minutes, where a deletion was answered with an error that does not pass by
	// itself), and what it then takes.
	healTimeout = 12 * time.Minute
)

var _ = Describe("Chaos", longest, func() {
	It("ends with the Machines that are wanted, one server each, and nothing else", func(ctx SpecContext) {
		duration, seed := chaosSettings()
		AddReportEntry(fmt.Sprintf("%s=%d %s=%s", chaosSeedVariable, seed, chaosDurationVariable, duration),
			ReportEntryVisibilityAlways)
		c := newCluster(startEnvironment(ctx,
			localenv.WithSidecarReplicas(2),
			localenv.WithCloudOptions(
				iaasmock.WithBootDuration(bootDuration), iaasmock.WithDeleteDuration(deleteDuration),
				iaasmock.WithListLag(2*time.Second), iaasmock.WithLatency(0, 50*time.Millisecond)),
			// Only the creation timeout (20 minutes by default) ends the wait for the Node of
			// a server that breaks before it has joined: the spec lasts as long.
			localenv.WithSidecarArgs("--resource-exhausted-retry=10s", "--machine-health-timeout=20s",
				"--machine-drain-timeout=5s", "--machine-safety-orphan-vms-period=30s", "--machine-creation-timeout=2m")))
		verify := watchDoubles(context.WithoutCancel(ctx), c.env.Cloud())
		c.createSecret(ctx, nil)
		for class, machineType := range chaosClasses {
			c.createClass(ctx, class,
				specWith(providerSpec{"machineType": machineType, "allowedAddresses": []string{"100.96.0.0/11"}}))
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
		AddReportEntry(fmt.Sprintf("healed %s after the last fault, with %d machines; "+
			"%d nodes had lost their machines; %d changes by the user; faults %+v; processes ended or paused %+v",
			healed, len(c.env.Cloud().Servers()), user.strayNodes, user.changes, cloud.counts, processes.counts,
		), ReportEntryVisibilityAlways)
		Consistently(ctx, user.atRest).WithTimeout(5 * time.Second).WithPolling(poll).Should(Succeed())
	})
})

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

// chaosFaults are what the cloud may do wrong. Left out is what no program can heal
// (a server that never boots or goes) and what waits for somebody (credentials that
// are refused).
var chaosFaults = []iaasmock.Fault{
	{Operation: "CreateServer", Status: http.StatusInternalServerError},
	{Operation: "CreateServer", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}},
	{Operation: "CreateServer", Status: http.StatusBadGateway, Body: "<html>bad gateway</html>", ContentType: "text/html"},
	{Operation: "CreateServer", Status: http.StatusGatewayTimeout, Executed: true},
	{Operation: "CreateServer", DropBefore: true},
	{Operation: "CreateServer", DropAfter: true},
	{Operation: "CreateServer", Delay: 5 * time.Second},
	{Operation: "CreateServer", AnswerDelay: 5 * time.Second},
	{Operation: "CreateServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "No valid host was found"},
	{Operation: "CreateServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "the hypervisor failed"},
	{Operation: "GetServer", Status: http.StatusInternalServerError},
	{Operation: "GetServer", Status: http.StatusNotFound, Body: "<html>no such page</html>", ContentType: "text/html"},
	{Operation: "GetServer", DropBefore: true},
	{Operation: "ListServers", Status: http.StatusServiceUnavailable},
	{Operation: "ListServers", Status: http.StatusOK, Body: "{}"},
	{Operation: "ListServers", DropAfter: true},
	{Operation: "DeleteServer", Status: http.StatusInternalServerError},
	{Operation: "DeleteServer", Status: http.StatusConflict},
	{Operation: "DeleteServer", DropBefore: true},
	{Operation: "DeleteServer", DropAfter: true},
	{Operation: "DeleteServer", FinalStatus: iaasmock.StatusError, ErrorMessage: "the volume is busy"},
	{Operation: "ListServerNICs", Status: http.StatusInternalServerError},
	{Operation: "ListServerNICs", Status: http.StatusNotFound},
	{Operation: "UpdateNic", Status: http.StatusConflict},
	{Operation: "UpdateNic", DropAfter: true},
	{Operation: "Token", Status: http.StatusServiceUnavailable},
	{Operation: "Token", DropBefore: true},
	{Operation: "", Delay: 2 * time.Second},
}

// chaosFaultsAtATime are in place, so that the calls in between succeed.
const chaosFaultsAtATime = 4

// chaosCloud makes the cloud misbehave.
type chaosCloud struct {
	cloud  *iaasmock.Cloud
	random *rand.Rand
	// remove takes away the faults that are in place, the oldest first.
	remove []func()
	counts struct{ injected, crashed int }
}

// act injects a fault for a few calls; one time in ten it ends a server instead.
func (c *chaosCloud) act(context.Context) time.Duration {
	if servers := c.cloud.Servers(); len(servers) > 0 && c.random.IntN(10) == 0 {
		c.crash(servers[c.random.IntN(len(servers))])
	} else {
		c.inject(chaosFaults[c.random.IntN(len(chaosFaults))])
	}
	return between(c.random, 500*time.Millisecond, 3*time.Second)
}

func (c *chaosCloud) inject(fault iaasmock.Fault) {
	if len(c.remove) == chaosFaultsAtATime {
		c.remove[0]()
		c.remove = c.remove[1:]
	}
	fault.Count = 1 + c.random.IntN(3)
	c.remove = append(c.remove, c.cloud.Inject(fault))
	c.counts.injected++
	_, _ = fmt.Fprintf(GinkgoWriter, "cloud: %d times %s answers %d %s %s (dropped before %t, after %t, late by %s, %s)\n",
		fault.Count, fault.Operation, fault.Status, fault.FinalStatus, fault.ErrorMessage,
		fault.DropBefore, fault.DropAfter, fault.Delay, fault.AnswerDelay)
}

// crash takes a server away, or puts it out of order. Its Machine is then replaced.
func (c *chaosCloud) crash(server iaasmock.Server) {
	what := "is gone"
	// The server may have gone by itself meanwhile: that is as good.
	if c.random.IntN(2) == 0 {
		_ = c.cloud.RemoveServer(server.ID)
	} else {
		what = "is out of order"
		_ = c.cloud.SetServerStatus(server.ID, iaasmock.StatusError, "the host has burnt down")
	}
	c.counts.crashed++
	_, _ = fmt.Fprintf(GinkgoWriter, "cloud: server %s (%s) %s\n", server.ID, server.Name, what)
}

func (c *chaosCloud) endFaults() {
	for _, remove := range c.remove {
		remove()
	}
}

// chaosProcesses ends processes with SIGKILL, and pauses the leader for longer than
// its lease lasts.
type chaosProcesses struct {
	env    *localenv.Env
	random *rand.Rand
	counts struct{ leader, standby, paused, manager, apiServer int }
}

func (p *chaosProcesses) act(ctx context.Context) time.Duration {
	choice := p.random.IntN(8)
	if p.counts.paused == 0 {
		choice = 3 // for sure in every run
	}
	switch choice {
	case 0:
		p.counts.standby++
		p.env.KillReplica(3 - p.leader(ctx))
	case 1, 2:
		p.counts.leader++
		p.env.KillReplica(p.leader(ctx))
	case 3:
		p.pause(ctx, p.leader(ctx))
	case 4, 5:
		p.counts.manager++
		p.env.KillManager()
		Expect(p.env.StartManager(ctx)).To(Succeed())
	default:
		p.counts.apiServer++
		p.env.KillAPIServer()
		Expect(p.env.StartAPIServer(ctx)).To(Succeed())
	}
	_, _ = fmt.Fprintf(GinkgoWriter, "processes: ended so far %+v\n", p.counts)
	return between(p.random, 5*time.Second, 15*time.Second)
}

// pause is shorter than settle (30 s): what the paused replica was about to send shows
// before the next leader asks for a server.
func (p *chaosProcesses) pause(ctx context.Context, replica int) {
	resume, ok := p.env.PauseReplica(replica)
	if !ok {
		return
	}
	defer resume()
	p.counts.paused++
	select {
	case <-ctx.Done():
	case <-time.After(between(p.random, 7*time.Second, 15*time.Second)):
	}
}

func (p *chaosProcesses) leader(ctx context.Context) int {
	GinkgoHelper()
	leader, err := p.env.Leader(ctx)
	Expect(err).NotTo(HaveOccurred())
	return max(1, leader)
}

const (
	// chaosPools are at a time, chaosMaxReplicas each.
	chaosPools       = 3
	chaosMaxReplicas = 5
)

// chaosClasses are the MachineClasses and their machine types.
var chaosClasses = map[string]string{"blue": iaasmock.DefaultMachineType, "green": "g2i.4"}

// wantedPool is what the user wants of a deployment.
type wantedPool struct {
	replicas int
	class    string
}

// chaosUser makes, scales, rolls and deletes MachineDeployments.
type chaosUser struct {
	*cluster
	random *rand.Rand
	wanted map[string]wantedPool
	// changes and strayNodes are counted for the report.
	changes, strayNodes int
}

// act changes one deployment, and insists: the API server may be away.
func (u *chaosUser) act(ctx context.Context) time.Duration {
	names := slices.Sorted(maps.Keys(u.wanted))
	choice := u.random.IntN(10)
	var change func() error
	var name string
	next := wantedPool{replicas: u.random.IntN(chaosMaxReplicas + 1), class: u.pickClass()}
	if len(names) == 0 || len(names) < chaosPools && choice < 4 {
		name = fmt.Sprintf("pool-%d", u.changes) // never used before
		change = func() error { return u.createPool(ctx, name, next) }
	} else {
		name = names[u.random.IntN(len(names))]
		change = func() error { return u.changePool(ctx, name, next) }
		switch pool := u.wanted[name]; {
		case choice < 7: // another number of the same
			next.class = pool.class
		case choice < 9: // as many of another class
			next = wantedPool{replicas: pool.replicas, class: otherClass(pool.class)}
		default:
			change = func() error { return u.deletePool(ctx, name) }
			next = wantedPool{}
		}
	}
	insist(ctx, change)
	if u.wanted[name] = next; next.class == "" {
		delete(u.wanted, name)
	}
	u.changes++
	_, _ = fmt.Fprintf(GinkgoWriter, "user: %s is to be %+v\n", name, next)
	return between(u.random, 2*time.Second, 8*time.Second)
}

// actLast wants a few more Machines, so that there is something to see at rest.
func (u *chaosUser) actLast(ctx context.Context) {
	last := wantedPool{replicas: 3, class: u.pickClass()}
	insist(ctx, func() error { return u.createPool(ctx, "last", last) })
	u.wanted["last"] = last
}

func insist(ctx context.Context, change func() error) {
	for err := change(); err != nil && ctx.Err() == nil; err = change() {
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

func (u *chaosUser) pickClass() string {
	return []string{"blue", "green"}[u.random.IntN(len(chaosClasses))]
}

func otherClass(class string) string {
	if class == "blue" {
		return "green"
	}
	return "blue"
}

// createPool takes it well if the deployment is there: an answer was lost.
func (u *chaosUser) createPool(ctx context.Context, name string, pool wantedPool) error {
	err := u.Create(ctx, u.newDeployment(name, pool.class, int32(pool.replicas)))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (u *chaosUser) changePool(ctx context.Context, name string, pool wantedPool) error {
	var deployment v1alpha1.MachineDeployment
	if err := u.Get(ctx, u.key(name), &deployment); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = int32(pool.replicas)
	deployment.Spec.Template.Spec.Class = classReference(pool.class)
	return u.Patch(ctx, &deployment, client.MergeFrom(before))
}

func (u *chaosUser) deletePool(ctx context.Context, name string) error {
	deployment := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: u.env.Namespace()}}
	return client.IgnoreNotFound(u.Delete(ctx, deployment))
}

func (u *chaosUser) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: u.env.Namespace(), Name: name}
}

// machineAtRest answers nil when the Machine is Running, of the class its deployment
// is to have, with its one server.
func (u *chaosUser) machineAtRest(machine *v1alpha1.Machine) error {
	if phase := machine.Status.CurrentStatus.Phase; phase != v1alpha1.MachineRunning || machine.DeletionTimestamp != nil {
		return fmt.Errorf("machine %s is %q: %s", machine.Name, phase, machine.Status.LastOperation.Description)
	}
	pool := u.wanted[machine.Labels[deploymentLabel]]
	if machine.Spec.Class.Name != pool.class {
		return fmt.Errorf("machine %s is of class %s, %q is wanted", machine.Name, machine.Spec.Class.Name, pool.class)
	}
	var own []iaasmock.Server
	for _, server := range u.env.Cloud().Servers() {
		if server.Name == machine.Name {
			own = append(own, server)
		}
	}
	if len(own) != 1 || own[0].Status != iaasmock.StatusActive || own[0].MachineType != chaosClasses[pool.class] ||
		!strings.HasSuffix(machine.Spec.ProviderID, "/"+own[0].ID) {
		return fmt.Errorf("machine %s with ProviderID %q has the servers %+v", machine.Name, machine.Spec.ProviderID, own)
	}
	return nil
}
