// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/eventrecorder"
	"github.com/prometheus/alertmanager/inhibit"
	"github.com/prometheus/alertmanager/provider/mem"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "kubernetes", "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// configuration is Alertmanager's, with our part in it.
func configuration(t *testing.T) *config.Config {
	t.Helper()
	loaded, err := config.Load("route: {receiver: pages}\nreceivers: [{name: pages}]\n" + read(t, "inhibition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.InhibitRules) == 0 {
		t.Fatal("there are no rules")
	}
	return loaded
}

// severities are those of the alerts that Prometheus knows, by their names.
func severities(t *testing.T) map[string]string {
	t.Helper()
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert  string
					Labels map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule.Labels["severity"]
		}
	}
	return found
}

// firing is an alert by its name and, after a blank, its namespace.
func firing(t *testing.T, known map[string]string, text string) *alert.Alert {
	t.Helper()
	name, namespace, _ := strings.Cut(text, " ")
	if known[name] == "" {
		t.Fatalf("there is no alert %s", name)
	}
	labels := model.LabelSet{"alertname": model.LabelValue(name), "severity": model.LabelValue(known[name])}
	if namespace != "" {
		labels["namespace"] = model.LabelValue(namespace)
	}
	return &alert.Alert{Alert: model.Alert{Labels: labels, StartsAt: time.Now().Add(-time.Minute),
		EndsAt: time.Now().Add(time.Hour)}}
}

// inhibitor has seen all of the alerts.
func inhibitor(t *testing.T, alerts []*alert.Alert) *inhibit.Inhibitor {
	t.Helper()
	logger, nobody := promslog.NewNopLogger(), eventrecorder.NopRecorder()
	provider, err := mem.NewAlerts(t.Context(), time.Hour, 0, nil, logger, nobody, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	if err := provider.Put(t.Context(), alerts...); err != nil {
		t.Fatal(err)
	}
	held := inhibit.NewInhibitor(provider, configuration(t).InhibitRules, logger, nobody)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		held.Run()
	}()
	held.WaitForLoading()
	t.Cleanup(func() {
		held.Stop()
		<-ended
	})
	return held
}

func TestOneTroubleIsOnePage(t *testing.T) {
	const slow, stuck = "StackitMachineCreationSlow", "StackitMachineDeletionStuck"
	const quota = "StackitQuotaOrCapacityExhausted"
	known := severities(t)
	for name, row := range map[string]struct{ firing, sent []string }{
		"slow creation alone":      {[]string{slow + " a"}, []string{slow + " a"}},
		"the quota is used up":     {[]string{quota + " a", slow + " a"}, []string{quota + " a"}},
		"the quota of another one": {[]string{quota + " b", slow + " a"}, []string{quota + " b", slow + " a"}},
		"the sidecar is gone":      {[]string{"StackitSidecarMissing a", slow + " a"}, []string{"StackitSidecarMissing a"}},
		"the sidecar restarts": {[]string{"StackitSidecarRestarting a", slow + " a"},
			[]string{"StackitSidecarRestarting a"}},
		"the lease is taken": {[]string{"StackitSidecarNotLeading a", slow + " a"},
			[]string{"StackitSidecarNotLeading a"}},
		"nobody reads the log":   {[]string{"StackitSidecarStuck a", slow + " a"}, []string{"StackitSidecarStuck a"}},
		"the API server is down": {[]string{"StackitControllerFrozen a", slow + " a"}, []string{"StackitControllerFrozen a"}},
		"a frozen library": {[]string{"StackitControllerFrozen a", "StackitSidecarStuck a"},
			[]string{"StackitControllerFrozen a"}},
		"the Pod is not reached": {[]string{"StackitSidecarRestarting a", "StackitManagerDown a"},
			[]string{"StackitSidecarRestarting a"}},
		"the key has expired": {[]string{"StackitKeyExpires a", "StackitCredentialsRefused a"},
			[]string{"StackitCredentialsRefused a"}},
		"the key is revoked": {
			[]string{"StackitCredentialsRefused a", slow + " a", stuck + " a"},
			[]string{"StackitCredentialsRefused a", stuck + " a"}},
		"the manager alone": {
			[]string{"StackitManagerDown a", "StackitSidecarMissing b"},
			[]string{"StackitManagerDown a", "StackitSidecarMissing b"}},
		"one cluster does not reach the API": {
			[]string{"StackitAPIFailing a", slow + " a", stuck + " a", "StackitListsFailing a", slow + " b"},
			[]string{"StackitAPIFailing a", slow + " b"}},
		"an outage of the cloud": {
			[]string{"StackitCloudOutage", "StackitAPIFailing a", "StackitAPIFailing b", "StackitAPIFailing c",
				slow + " a", slow + " b", stuck + " c", "StackitListsFailing d"},
			[]string{"StackitCloudOutage"}},
		"something else during an outage": {
			[]string{"StackitCloudOutage", "StackitAPIFailing a", "StackitDuplicateServers a", "StackitCredentialsRefused b",
				"StackitSidecarMissing c"},
			[]string{"StackitCloudOutage", "StackitDuplicateServers a", "StackitCredentialsRefused b",
				"StackitSidecarMissing c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var alerts []*alert.Alert
			for _, text := range row.firing {
				alerts = append(alerts, firing(t, known, text))
			}
			held := inhibitor(t, alerts)
			var sent []string
			for i, one := range alerts {
				if !held.Mutes(t.Context(), one.Labels) {
					sent = append(sent, row.firing[i])
				}
			}
			if !slices.Equal(sent, row.sent) {
				t.Errorf("%q are sent, want %q", sent, row.sent)
			}
		})
	}
}

// TestACauseThatEndedHoldsNothingBack: what is resolved says nothing any more.
func TestACauseThatEndedHoldsNothingBack(t *testing.T) {
	known := severities(t)
	quota, slow := firing(t, known, "StackitQuotaOrCapacityExhausted a"), firing(t, known, "StackitMachineCreationSlow a")
	quota.EndsAt = time.Now().Add(-time.Second)
	if inhibitor(t, []*alert.Alert{quota, slow}).Mutes(t.Context(), slow.Labels) {
		t.Error("slow creation is held back by a quota that is there again")
	}
}

// TestRulesNameAlertsThatExist: a rule about an alert that was renamed does nothing.
func TestRulesNameAlertsThatExist(t *testing.T) {
	known := severities(t)
	for _, rule := range configuration(t).InhibitRules {
		for _, matcher := range slices.Concat(rule.SourceMatchers, rule.TargetMatchers) {
			for name := range strings.SplitSeq(matcher.Value, "|") {
				if matcher.Name == "alertname" && known[name] == "" {
					t.Errorf("%s: there is no alert %s", matcher, name)
				}
			}
		}
	}
}
