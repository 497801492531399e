// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/options"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnFlags(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		ok   bool
	}{
		"defaults":          {nil, true},
		"all set":           {[]string{"--stackit-settle=0", "--stackit-api-qps=0.5", "--stackit-api-burst=1", "--strict-provider-spec"}, true},
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

func TestVerbosityIsCapped(t *testing.T) {
	for given, want := range map[string]string{"0": "0", "7": "7", "8": "7", "100": "7"} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("v", given, "")
		capVerbosity(flags)
		if got := flags.Lookup("v").Value.String(); got != want {
			t.Errorf("--v=%s becomes %s, want %s", given, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	args := []any{"replacing", "<<BOOTSTRAP_TOKEN>>", "abc123.0123456789abcdef", 5,
		errors.New("refused: Bearer eyJhbGciOiJSUzUxMiJ9.eyJpc3MiOiJhIn0.c2ln"), "stackit://a/b", "1.2.3-alpha.0123456789"}
	want := []any{"replacing", "<<BOOTSTRAP_TOKEN>>", redacted, 5, "refused: Bearer " + redacted, "stackit://a/b", "1.2.3-alpha.0123456789"}
	if diff := cmp.Diff(want, redact(args)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if args[2] != "abc123.0123456789abcdef" {
		t.Error("the caller's arguments were changed")
	}
}

func TestActingSince(t *testing.T) {
	before := time.Now()
	if since := actingSince(options.LeaderElectionConfiguration{})(); since.Before(before) || since.After(time.Now()) {
		t.Errorf("without leader election it acts since %s, want now", since)
	}
	leading := &tenure{now: time.Now}
	leading.Off("machine-controller")
	if since := leading.since(); !since.IsZero() {
		t.Errorf("it acts since %s before it leads", since)
	}
	leading.NewLeaderMetric().On("machine-controller")
	if since := leading.since(); since.Before(before) {
		t.Errorf("it acts since %s once it leads, want now", since)
	}
}

// TestAPausedLeaderTrustsNothing lets time pass between two looks. The lease is
// MCM's default.
func TestAPausedLeaderTrustsNothing(t *testing.T) {
	for name, row := range map[string]struct {
		election     bool
		stood, later time.Duration
	}{
		"at work":                 {true, 3 * time.Second, 0},
		"paused":                  {true, 4 * time.Second, 16 * time.Second},
		"without leader election": {false, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			election := options.LeaderElectionConfiguration{
				LeaderElect:   row.election,
				LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
				RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
				RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			}
			began := time.Now()
			now := began
			leading := newTenure(election)
			leading.now = func() time.Time { return now }
			leading.since()
			leading.On("machine-controller")
			now = now.Add(row.stood)
			for range 2 { // what was noticed once stays
				if later := leading.since().Sub(began); later != row.later {
					t.Errorf("it acts since %s after it began to lead, want %s", later, row.later)
				}
				now = now.Add(time.Second)
			}
		})
	}
}

// A lease that leaves next to no time must not make every look a pause.
func TestAShortLeaseIsNoPause(t *testing.T) {
	second := metav1.Duration{Duration: time.Second}
	if pause := newTenure(options.LeaderElectionConfiguration{LeaderElect: true,
		LeaseDuration: metav1.Duration{Duration: 3 * time.Second}, RenewDeadline: metav1.Duration{Duration: 2 * time.Second}, RetryPeriod: second}).pause; pause < time.Second {
		t.Errorf("a pause of %s counts", pause)
	}
}
