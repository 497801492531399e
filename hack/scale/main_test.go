// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPhasesEndWhenNothingIsTooMuch(t *testing.T) {
	g := NewWithT(t)
	all := phases(10, 2, true)
	up, down := all[0], all[2]
	for i, p := range phases(10, 2, false) {
		g.Expect(p.name).To(Equal([]string{"up", "down"}[i]))
	}
	g.Expect(up.done(counts{10, 9})).To(BeFalse())
	g.Expect(up.done(counts{12, 10})).To(BeTrue())
	g.Expect(up.settled(counts{12, 10}, 10)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 11)).To(BeFalse())
	g.Expect(up.settled(counts{10, 10}, 10)).To(BeTrue())
	g.Expect(down.done(counts{3, 3})).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 3)).To(BeFalse())
	g.Expect(down.settled(counts{2, 2}, 2)).To(BeTrue())
}
