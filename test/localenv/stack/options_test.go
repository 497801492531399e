// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestProgressNamesTheControllersThatAreStarted(t *testing.T) {
	for want, options := range map[string][]Option{
		"machine-controller-manager and machine-controller": nil,
		"machine-controller-manager":                        {WithoutSidecar()},
		"machine-controller":                                {WithoutManager(), WithSidecarReplicas(2)},
		"":                                                  {WithoutManager(), WithoutSidecar()},
	} {
		s := newSettings(options)
		NewWithT(t).Expect(s.controllers()).To(Equal(want))
	}
}

func TestAFolderForTemporaryFilesThatIsMissingIsNamed(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent")
	_, err := makeFolder()
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("in /nonexistent "), ContainSubstring("TMPDIR"))))
}
