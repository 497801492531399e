// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// listening is a mock behind a listener of its own.
func listening(t *testing.T) *mock {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	cloud := iaasmock.New(iaasmock.WithClock(clock), iaasmock.WithoutAuthentication())
	listener, err := cloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: cloud, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("served until %v", err)
		}
	})
	return &mock{t: t, cloud: cloud, clock: clock, url: "http://" + listener.Addr().String()}
}

func (m *mock) refuses() bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(m.url, "http://"))
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func TestConnectionsAreRefusedForAWhile(t *testing.T) {
	m := listening(t)
	m.list("/servers")
	m.inject("connection-refused", object{"after": "1m"})
	m.list("/servers") // not yet
	m.clock.Step(time.Minute)
	eventually(t, "refuses connections", m.refuses)
	if _, _, err := m.try("GET", inRegion+"/servers", nil); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the call ends with %v", err)
	}
	if _, _, err := m.try("GET", inRegion+"/servers", nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after an open connection was reset the call ends with %v", err)
	}
	m.clock.Step(10 * time.Second)
	eventually(t, "listens again", func() bool { return !m.refuses() })
	m.list("/servers")
}

func TestRefusalIsTakenAway(t *testing.T) {
	m := listening(t)
	for range 3 {
		removeFault := m.cloud.Inject(iaasmock.Fault{RefuseConnections: true})
		eventually(t, "refuses connections", m.refuses)
		removeFault()
		eventually(t, "listens again", func() bool { return !m.refuses() })
	}
	m.list("/servers")
}

func TestListenerIsClosedDuringAnOutage(t *testing.T) {
	m := listening(t)
	m.cloud.Inject(iaasmock.Fault{RefuseConnections: true})
	eventually(t, "refuses connections", m.refuses)
}

func TestListenerWhosePortIsTaken(t *testing.T) {
	cloud := iaasmock.New()
	listener, err := cloud.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cloud.Listen(listener.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second one on the same port: %v", err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_ = conn.Close()
		}
		accepted <- err
	}()
	removeFault := cloud.Inject(iaasmock.Fault{RefuseConnections: true})
	var thief net.Listener
	eventually(t, "the port is free", func() bool {
		thief, err = net.Listen("tcp", listener.Addr().String())
		return err == nil
	})
	defer func() { _ = thief.Close() }()
	removeFault()
	if err := <-accepted; !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Accept ended with %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}
