// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv/stack"
)

// leftovers is the temporary folder of one test: what an environment forgets to
// remove or to stop shows up there.
func leftovers(t *testing.T) (check func()) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return func() {
		t.Helper()
		entries, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(BeEmpty(), "temporary folders are left")
		g.Expect(children(t)).To(BeEmpty(), "processes are left")
	}
}

func TestMain(m *testing.M) {
	if err := localenv.Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestEnvironmentWithoutSidecar(t *testing.T) {
	g := NewWithT(t)
	check := leftovers(t)
	ctx := t.Context()
	var mu sync.Mutex
	var steps []string
	env, err := localenv.Start(ctx,
		localenv.WithoutSidecar(),
		localenv.WithNamespace("machines"),
		localenv.WithProgress(func(line string) {
			mu.Lock()
			defer mu.Unlock()
			steps = append(steps, line)
		}))
	g.Expect(err).NotTo(HaveOccurred())
	defer env.Stop()
	g.Expect(steps).To(ContainElement(ContainSubstring("kube-apiserver")))

	// The CRDs are served, and objects without a namespace go to the environment's.
	class := &machinev1alpha1.MachineClass{
		ObjectMeta:   metav1.ObjectMeta{Name: "small"},
		Provider:     "stackit",
		ProviderSpec: runtime.RawExtension{Raw: []byte("{}")},
	}
	deployment := &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "workers"},
		Spec: machinev1alpha1.MachineDeploymentSpec{
			Replicas: 2,
			Strategy: machinev1alpha1.MachineDeploymentStrategy{Type: machinev1alpha1.RecreateMachineDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}},
			Template: machinev1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "workers"}},
				Spec:       machinev1alpha1.MachineSpec{Class: machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}},
			},
		},
	}
	g.Expect(env.Apply(ctx, class, deployment)).To(Succeed())

	// The manager works: it makes the Machines that the deployment asks for.
	g.Eventually(func() ([]machinev1alpha1.Machine, error) {
		var machines machinev1alpha1.MachineList
		err := env.Client().List(ctx, &machines, client.InNamespace("machines"))
		return machines.Items, err
	}).WithTimeout(2 * time.Minute).Should(HaveLen(2))

	// A part that is killed on purpose is no failure and can be started again.
	env.KillManager()
	g.Consistently(env.Done()).WithTimeout(300 * time.Millisecond).ShouldNot(BeClosed())
	g.Expect(env.StartManager(ctx)).To(Succeed())
	g.Expect(env.StartManager(ctx)).To(MatchError(ContainSubstring("already running")))

	// So can one that was left out.
	g.Expect(env.PID(localenv.PartSidecar)).To(BeZero())
	g.Expect(env.StartSidecar(ctx)).To(Succeed())

	addresses := []string{
		hostOf(t, env.RESTConfig().Host), hostOf(t, env.CloudURL()), hostOf(t, env.SidecarMetricsURL()),
	}
	env.Stop()
	env.Stop()
	g.Expect(env.Done()).To(BeClosed())
	g.Expect(env.Err()).NotTo(HaveOccurred())
	for _, address := range addresses {
		_, err := net.Dial("tcp", address)
		g.Expect(err).To(MatchError(syscall.ECONNREFUSED), "%s is still served", address)
	}
	g.Expect(env.StartManager(ctx)).NotTo(Succeed())
	check()
}

func TestPartThatDiesIsNoticed(t *testing.T) {
	g := NewWithT(t)
	check := leftovers(t)
	env, err := localenv.Start(t.Context(), localenv.WithoutSidecar(), localenv.WithoutManager())
	g.Expect(err).NotTo(HaveOccurred())
	defer env.Stop()
	g.Expect(syscall.Kill(env.PID(stack.PartEtcd), syscall.SIGKILL)).To(Succeed())
	g.Eventually(env.Done()).WithTimeout(time.Minute).Should(BeClosed())
	var failure *localenv.PartError
	g.Expect(errors.As(env.Err(), &failure)).To(BeTrue())
	g.Expect(failure.Part).To(Equal(stack.PartEtcd))
	g.Expect(failure.Error()).To(And(HavePrefix("etcd: exited: signal: killed"), ContainSubstring("the end of its log")))
	env.Stop()
	check()
}

func TestStartThatFailsNamesThePart(t *testing.T) {
	g := NewWithT(t)
	check := leftovers(t)
	_, err := localenv.Start(t.Context(), localenv.WithoutSidecar(), localenv.WithManagerArgs("--no-such-flag"))
	g.Expect(err).To(MatchError(And(
		HavePrefix("machine-controller-manager: exited: exit status"),
		ContainSubstring("unknown flag: --no-such-flag"),
	)))
	check()
}

func TestStartWithoutPrograms(t *testing.T) {
	g := NewWithT(t)
	check := leftovers(t)
	_, err := localenv.Start(t.Context(), localenv.WithSidecarProgram("missing"))
	g.Expect(err).To(MatchError(And(
		HavePrefix("programs: "), ContainSubstring("/bin/localenv/missing"), HaveSuffix(": run 'make localenv'"))))
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	_, err = localenv.Start(t.Context())
	g.Expect(err).To(MatchError(And(ContainSubstring(assets+"/etcd: "), ContainSubstring("KUBEBUILDER_ASSETS must name"))))
	check()
}

func TestStartThatIsCancelled(t *testing.T) {
	for _, step := range []string{"starting etcd", "installing", "starting machine-controller-manager"} {
		t.Run(step, func(t *testing.T) {
			g := NewWithT(t)
			check := leftovers(t)
			interrupted := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			_, err := localenv.Start(ctx, localenv.WithoutSidecar(), localenv.WithProgress(func(line string) {
				if strings.HasPrefix(line, step) {
					cancel(interrupted)
				}
			}))
			g.Expect(err).To(MatchError(interrupted))
			check()
		})
	}
}

func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestLeadershipMovesAndTheAPIServerComesBack(t *testing.T) {
	g := NewWithT(t)
	check := leftovers(t)
	ctx := t.Context()
	env, err := localenv.Start(ctx, localenv.WithoutManager(), localenv.WithSidecarReplicas(2))
	g.Expect(err).NotTo(HaveOccurred())
	defer env.Stop()
	defer func() {
		if t.Failed() {
			for number := range 2 {
				log, _ := env.Logs(stack.ReplicaPart(number + 1))
				t.Log(log)
			}
		}
	}()
	leader := func() (int, error) { return env.Leader(ctx) }
	g.Eventually(leader).WithTimeout(2 * time.Minute).ShouldNot(BeZero())
	first, err := leader()
	g.Expect(err).NotTo(HaveOccurred())

	env.KillReplica(first)
	g.Eventually(leader).WithTimeout(2 * time.Minute).Should(Equal(3 - first))

	stays := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays", Namespace: env.Namespace()}}
	g.Expect(env.Client().Create(ctx, stays)).To(Succeed())
	env.KillAPIServer()
	g.Expect(env.Client().Get(ctx, client.ObjectKeyFromObject(stays), stays)).NotTo(Succeed())
	g.Expect(env.StartAPIServer(ctx)).To(Succeed())
	g.Expect(env.Client().Get(ctx, client.ObjectKeyFromObject(stays), stays)).To(Succeed())
	// The one that was killed has come back.
	second, err := leader()
	g.Expect(err).NotTo(HaveOccurred())
	env.KillReplica(second)
	g.Eventually(leader).WithTimeout(2 * time.Minute).Should(Equal(3 - second))

	env.Stop()
	g.Expect(env.Err()).NotTo(HaveOccurred())
	check()
}

// children returns the processes whose parent we are, but for the ps that looks.
func children(t *testing.T) []int {
	t.Helper()
	cmd := exec.Command("ps", "-A", "-o", "pid=,ppid=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err != nil {
			t.Fatalf("ps printed %q: %v", line, err)
		}
		if parent == os.Getpid() && pid != cmd.Process.Pid {
			found = append(found, pid)
		}
	}
	return found
}
