// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("mcm-stackit describe", func() {
	It("shows all that belongs to a Machine, and no secret", func(ctx SpecContext) {
		env := startEnvironment(ctx, localenv.WithoutManager(), localenv.WithoutSidecar(),
			localenv.WithCloudOptions(iaasmock.WithBootDuration(0)))
		i := &stock{
			cluster: &cluster{env: env, Client: env.Client(), target: env.TargetClient()},
			command: newCommand(env), ids: map[string]string{},
		}
		i.makeEverything(ctx)

		got := i.command.run(ctx, "describe", "machine", "healthy")
		Expect(got.Code).To(Equal(1), got.Stderr)
		Expect(got.Stderr).To(BeEmpty())
		Expect(got.Stdout).To(And(
			MatchRegexp(`(?m)^Machine healthy: Running.* old\n`),
			ContainSubstring("owner:          none: no MachineSet replaces it"),
			ContainSubstring("duplicate\n    reason: server "+i.ids["twin"]+": "),
			MatchRegexp(`(?m)^  Server %s: ACTIVE, .* old\n`, i.ids["twin"]),
			MatchRegexp(`(?m)^    NIC [-0-9a-f]{36}\n.*\n      addresses: +10\.0\.`),
		))

		Expect(i.command.run(ctx, "describe", "machine/stuck", "-o", "jsonpath={.machine.notes[*].about}")).To(
			Equal(ran{Code: 1, Stdout: "QuotaExceeded"}))
		Expect(i.command.run(ctx, "describe", "machine", "new-born").Code).To(Equal(0))
		got = i.command.run(ctx, "describe", "machine", "nobody")
		Expect(got.Code).To(Equal(2))
		Expect(got.Stderr).To(HavePrefix("there is no Machine " + env.Namespace() + "/nobody: "))

		silent := &canaries{env: env}
		for _, output := range []string{"yaml", "jsonpath={}"} {
			got = i.command.run(ctx, "-v=9", "describe", "machine", "healthy", "-o", output)
			silent.expectNone("describe", got.Stdout+got.Stderr)
		}
	})
})
