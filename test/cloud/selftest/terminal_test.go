// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package selftest_test

import (
	"io"
	"maps"
	"os"
	"syscall"
	"testing"
)

// TestClosedTerminal ends what reads the output, as Ctrl-C does with tee, and hangs up: what
// was made goes.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	m := startMock(t, "--boot=1m", "--delete=1s")
	before := m.state(t).ids()
	s := newSuite(t, m, m.url)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.Stdout, s.Stderr = writer, writer
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	await(t, "a server", func() bool { return len(m.state(t).Servers) > 0 })
	_ = reader.Close()
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait() // the exit code says it
	if left := m.state(t).ids(); s.ProcessState.ExitCode() != 1 || !maps.Equal(before, left) {
		t.Errorf("%s; before there were %v, now %v", s.ProcessState, before, left)
	}
}
