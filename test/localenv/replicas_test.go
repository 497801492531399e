// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

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
				log, _ := env.Logs(localenv.ReplicaPart(number + 1))
				t.Log(log)
			}
		}
	}()
	leader := func() (int, error) { return env.Leader(ctx) }
	g.Eventually(leader).WithTimeout(30 * time.Second).ShouldNot(BeZero())
	first, err := leader()
	g.Expect(err).NotTo(HaveOccurred())

	env.KillReplica(first)
	g.Eventually(leader).WithTimeout(30 * time.Second).Should(Equal(3 - first))

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
	g.Eventually(leader).WithTimeout(30 * time.Second).Should(Equal(3 - second))

	env.Stop()
	g.Expect(env.Err()).NotTo(HaveOccurred())
	check()
}
