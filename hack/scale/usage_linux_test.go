// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParseUsage(t *testing.T) {
	g := NewWithT(t)
	stat := "42 (a (strange) name) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 1 1 1"
	g.Expect(parseUsage(stat, []byte("Name:\tx y z\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\nRssAnon:\t  5120 kB\n"))).
		To(Equal(usage{cpu: 2, memory: 10, anonymous: 5, peak: 20}))
	_, err := parseUsage("42 (short) S", nil)
	g.Expect(err).To(HaveOccurred())
}

func TestParseBusy(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parseBusy("cpu  100 20 30 9999 999 40 10 5 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")).To(Equal(seconds(2)))
	_, err := parseBusy("cpu0 1 2")
	g.Expect(err).To(HaveOccurred())
}

func TestReadUsageOfThisProcess(t *testing.T) {
	g := NewWithT(t)
	u, err := readUsage(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.memory).To(BeNumerically(">", 1))
	g.Expect(u.peak).To(BeNumerically(">=", u.memory))
}
