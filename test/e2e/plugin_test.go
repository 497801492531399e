// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

var _ = Describe("kubectl mcm-stackit", func() {
	It("is a plugin that kubectl finds, completes and runs", func(ctx SpecContext) {
		kubectl := newPlugin()
		Expect(kubectl.run(ctx, "plugin", "list", "--name-only")).To(And(
			HaveField("Code", 0), HaveField("Stdout", ContainSubstring("kubectl-mcm_stackit\n"))))
		Expect(kubectl.run(ctx, "mcm-stackit", "version")).To(And(
			HaveField("Code", 0), HaveField("Stdout", Not(BeEmpty())), HaveField("Stderr", BeEmpty())))
		help := kubectl.run(ctx, "mcm-stackit", "delete", "server", "--help")
		Expect(help.Stdout).To(And(
			ContainSubstring("  kubectl mcm-stackit delete server ID..."), ContainSubstring("(kubectl mcm-stackit list servers"),
			ContainSubstring(`Use "kubectl mcm-stackit options"`)))
		Expect(kubectl.run(ctx, "mcm-stackit", "bogus")).To(HaveField("Code", report.ExitUsage))
		Expect(kubectl.run(ctx, "__complete", "mcm-stackit", "des")).To(HaveField("Stdout", HavePrefix("describe\t")))
		Expect(kubectl.run(ctx, "__complete", "mcm-stackit", "list", "--output", "")).To(HaveField("Stdout", HavePrefix("wide\njson\n")))
	})
})

// newPlugin returns kubectl, which make builds as bin/kubectl, with the command in its PATH
// as README.md says.
func newPlugin() *command {
	GinkgoHelper()
	root, err := localenv.Root()
	Expect(err).NotTo(HaveOccurred())
	kubectl := filepath.Join(root, "bin", "kubectl")
	Expect(kubectl).To(BeAnExistingFile(), "run 'make bin/kubectl'")
	built, err := buildCommand()
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	for name, target := range map[string]string{
		"kubectl":                      kubectl,
		"kubectl-mcm_stackit":          built,
		"kubectl_complete-mcm_stackit": filepath.Join(root, "cmd", "mcm-stackit", "kubectl_complete-mcm_stackit"),
	} {
		Expect(os.Symlink(target, filepath.Join(folder, name))).To(Succeed())
	}
	return &command{path: kubectl, env: []string{"HOME=" + folder, "PATH=" + folder + ":/usr/bin:/bin"}}
}
