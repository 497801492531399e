// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/options"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

func TestOwnFlags(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		ok   bool
	}{
		"defaults": {nil, true},
		"all set": {[]string{"--stackit-settle=0", "--stackit-api-qps=0.5", "--stackit-api-burst=1",
			"--strict-provider-spec"}, true},
		"negative settle":   {[]string{"--stackit-settle=-1s"}, false},
		"no calls at all":   {[]string{"--stackit-api-qps=0"}, false},
		"no burst":          {[]string{"--stackit-api-burst=0"}, false},
		"not even a number": {[]string{"--stackit-api-qps=NaN"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			own, flags := newDriverOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
			own.addFlags(flags)
			if err := flags.Parse(row.args); err != nil {
				t.Fatal(err)
			}
			if err := own.validate(); (err == nil) != row.ok {
				t.Errorf("%v, want ok=%t", err, row.ok)
			}
		})
	}
}

// asSidecar in the environment makes the test binary behave as the sidecar.
const asSidecar = "MACHINE_CONTROLLER_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asSidecar) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A client-key in a kubeconfig is a path; client-go's error for a key in its place repeats it.
func TestAKeyInPlaceOfItsPathIsNotLogged(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users:
- name: a
  user:
    client-certificate: a
    client-key: "-----BEGIN PRIVATE KEY-----\nMIIEcanary\n-----END PRIVATE KEY-----\n"
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a`), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-v=2", "--target-kubeconfig="+kubeconfig)
	command.Env = append(os.Environ(), asSidecar+"=1")
	output, err := command.CombinedOutput()
	says := "unable to read client-key " + filepath.Dir(kubeconfig) + "/<redacted>"
	if err == nil || !strings.Contains(string(output), says) || strings.Contains(string(output), "MIIE") {
		t.Errorf("%v, %s, want an error with %q, without the key", err, output, says)
	}
}

func TestTheStartIsRefused(t *testing.T) {
	const says = spi.EnvIaaSEndpoint + " is an http URL: must be https"
	t.Setenv(spi.EnvIaaSEndpoint, "http://iaas.example")
	err := run(newServer(pflag.NewFlagSet("", pflag.ContinueOnError)), newDriverOptions())
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want an error that says %q", err, says)
	}
}

func TestConcurrentSyncs(t *testing.T) {
	for flag, want := range map[string]int32{"": concurrentSyncs, "--concurrent-syncs=7": 7} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		server := newServer(flags)
		if err := flags.Parse(strings.Fields(flag)); err != nil {
			t.Fatal(err)
		}
		if got := server.ConcurrentNodeSyncs; got != want {
			t.Errorf("with %q it is %d, want %d", flag, got, want)
		}
	}
}

func TestLeadership(t *testing.T) {
	leads := func(l *leadership) float64 {
		t.Helper()
		registry := prometheus.NewRegistry()
		l.show(registry)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "leader_election_master_status" {
			t.Fatalf("%v, %v", families, err)
		}
		metric := families[0].GetMetric()[0]
		if label := metric.GetLabel()[0]; label.GetName() != "name" || label.GetValue() != "machine-controller" {
			t.Errorf("its label is %s, want the lease's name", label)
		}
		return metric.GetGauge().GetValue()
	}
	before := time.Now()
	alone := newLeadership(options.LeaderElectionConfiguration{})
	if since := alone.actingSince(); since.Before(before) || since.After(time.Now()) || leads(alone) != 1 {
		t.Errorf("without leader election it acts since %s, the metric is %v, want now and 1", since, leads(alone))
	}
	l := &leadership{}
	if since := l.actingSince(); !since.IsZero() || leads(l) != 0 {
		t.Errorf("it acts since %s before it leads, the metric is %v", since, leads(l))
	}
	l.NewLeaderMetric().On("machine-controller")
	if since := l.actingSince(); since.Before(before) || leads(l) != 1 {
		t.Errorf("it acts since %s once it leads, the metric is %v, want now and 1", since, leads(l))
	}
}

func TestFenceFollowsTheLease(t *testing.T) {
	for name, row := range map[string]struct{ lease, renew, retry, tolerated time.Duration }{
		"MCM's defaults":          {15 * time.Second, 10 * time.Second, 2 * time.Second, 3 * time.Second},
		"a lease that lasts long": {60 * time.Second, 10 * time.Second, 2 * time.Second, 48 * time.Second},
		"no time is left":         {3 * time.Second, 2 * time.Second, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			election := options.LeaderElectionConfiguration{LeaseDuration: metav1.Duration{Duration: row.lease},
				RenewDeadline: metav1.Duration{Duration: row.renew}, RetryPeriod: metav1.Duration{Duration: row.retry}}
			if got := toleratedPause(election); got != row.tolerated {
				t.Errorf("a stop of %s is no pause, want %s", got, row.tolerated)
			}
			if startFence(election) != nil {
				t.Error("there is a fence without leader election")
			}
			if election.LeaderElect = true; startFence(election) == nil {
				t.Error("there is no fence with leader election")
			}
		})
	}
}
