// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock

import (
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Listen listens on a TCP address as net.Listen does, for an http.Server of this Cloud.
// While a fault with RefuseConnections is active the port is closed, so that the
// operating system refuses connections; then it is opened again. If another program keeps
// the port then, Accept fails.
//
// Faults take effect a moment after Inject. Calls on connections that are still accepted,
// or were open before, are reset.
func (c *Cloud) Listen(address string) (net.Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &listener{cloud: c, addr: inner.Addr(), inner: inner, done: make(chan struct{}), changed: make(chan struct{})}
	go l.watch()
	return l, nil
}

// listener opens and closes its port as the Cloud's faults say.
type listener struct {
	cloud *Cloud
	addr  net.Addr
	close sync.Once
	done  chan struct{}

	mu    sync.Mutex
	inner net.Listener // nil while connections are refused
	err   error        // why the port could not be opened again
	// changed is closed when inner or err change.
	changed chan struct{}
}

// Addr returns the address, also while the port is closed.
func (l *listener) Addr() net.Addr { return l.addr }

// Accept waits until the port is open, and for a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, changed, err := l.state()
		if err != nil {
			return nil, err
		}
		if inner != nil {
			conn, err := inner.Accept()
			if now, _, _ := l.state(); err == nil || now == inner {
				return conn, err
			}
			continue
		}
		select {
		case <-changed:
		case <-l.done:
			return nil, net.ErrClosed
		}
	}
}

// Close closes the port for good.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.close.Do(func() {
		close(l.done)
		err = nil
		if inner, _, _ := l.state(); inner != nil {
			err = inner.Close()
		}
	})
	return err
}

func (l *listener) state() (inner net.Listener, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner, l.changed, l.err
}

// watch follows the faults until Close.
func (l *listener) watch() {
	for {
		changed := l.cloud.faults.Changes()
		refusing, next := l.cloud.faults.Refusal(l.cloud.clock.Now())
		l.setOpen(!refusing)
		if !l.sleep(next, changed) {
			l.setOpen(false)
			return
		}
	}
}

// sleep waits until the time (zero: for ever) or a change of faults; false after Close.
func (l *listener) sleep(until time.Time, changed <-chan struct{}) bool {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := l.cloud.clock.NewTimer(until.Sub(l.cloud.clock.Now()))
		defer timer.Stop()
		due = timer.C()
		if !l.cloud.clock.Now().Before(until) {
			return true // a fake clock was stepped before there was the timer
		}
	}
	select {
	case <-due:
	case <-changed:
	case <-l.done:
		return false
	}
	return true
}

func (l *listener) setOpen(open bool) {
	inner, _, err := l.state()
	switch {
	case err != nil || open == (inner != nil):
	case open:
		l.set(l.reopen())
	default:
		l.set(nil, nil) // first, so that Accept knows why it is interrupted
		_ = inner.Close()
	}
}

func (l *listener) set(inner net.Listener, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inner, l.err = inner, err
	close(l.changed)
	l.changed = make(chan struct{})
}

// reopen tries for two seconds: a client that connects to a closed port above
// 32768 may get that very port as its own for a moment.
func (l *listener) reopen() (net.Listener, error) {
	const pause, tries = 50 * time.Millisecond, 40
	for try := 1; ; try++ {
		inner, err := net.Listen("tcp", l.addr.String())
		if err == nil {
			return inner, nil
		}
		if try == tries {
			return nil, fmt.Errorf("listen again after an outage: %w", err)
		}
		select {
		case <-clock.RealClock{}.After(pause):
		case <-l.done:
			return nil, net.ErrClosed
		}
	}
}
