// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/monitoring"
)

// build renders a folder of kubernetes/.
func build(t *testing.T, folder string) resmap.ResMap {
	t.Helper()
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "kubernetes", folder))
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

// decode finds the one object of the kind and decodes it; an unknown field fails the test.
func decode[Object any](t *testing.T, resources resmap.ResMap, kind string) *Object {
	t.Helper()
	object := new(Object)
	found := 0
	for _, resource := range resources.Resources() {
		if resource.GetKind() != kind {
			continue
		}
		found++
		content, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(content, object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if found != 1 {
		t.Fatalf("%d objects of kind %s", found, kind)
	}
	return object
}

func TestTheManifestsAreWhatTheOperatorReads(t *testing.T) {
	resources := build(t, "monitoring")
	rule := decode[monitoringv1.PrometheusRule](t, resources, "PrometheusRule")
	if rule.APIVersion != monitoringv1.SchemeGroupVersion.String() || len(rule.Spec.Groups) == 0 {
		t.Errorf("%s with %d groups", rule.APIVersion, len(rule.Spec.Groups))
	}
	monitor := decode[monitoringv1.PodMonitor](t, resources, "PodMonitor")
	deployment := decode[appsv1.Deployment](t, build(t, "control"), "Deployment")
	if monitor.Namespace != deployment.Namespace || rule.Namespace != deployment.Namespace {
		t.Errorf("PodMonitor in %s, PrometheusRule in %s, pod in %s", monitor.Namespace, rule.Namespace, deployment.Namespace)
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s does not select the pod, which has %v", selector, deployment.Spec.Template.Labels)
	}
	var scraped, served []string
	for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
		scraped = append(scraped, *endpoint.Port)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			served = append(served, port.Name)
		}
	}
	slices.Sort(scraped)
	slices.Sort(served)
	if !slices.Equal(scraped, served) {
		t.Errorf("the PodMonitor scrapes %q, the pod has %q", scraped, served)
	}
}

func TestTheDashboardComesAsAConfigMap(t *testing.T) {
	dashboard := decode[corev1.ConfigMap](t, build(t, "monitoring"), "ConfigMap")
	if len(dashboard.Data) != 1 || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("%d files, labels %v", len(dashboard.Data), dashboard.Labels)
	}
	for name, content := range dashboard.Data {
		if !json.Valid([]byte(content)) {
			t.Errorf("%s is not JSON", name)
		}
	}
}

// TestGardenersServiceMonitor is about the one that the README shows: it keeps what our
// alerts read and Gardener drops.
func TestGardenersServiceMonitor(t *testing.T) {
	root, err := localenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "kubernetes", "monitoring", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the README has no YAML")
	}
	var monitor monitoringv1.ServiceMonitor
	if err := yaml.UnmarshalStrict(block[1], &monitor); err != nil {
		t.Fatal(err)
	}
	keep := regexp.MustCompile(monitor.Spec.Endpoints[0].MetricRelabelConfigs[0].Regex)
	gardeners := []string{"mcm_machine_current_status_phase", "mcm_machine_info", "mcm_machine_controller_frozen", "up", "ALERTS"}
	for _, alert := range alerts(t) {
		for _, name := range monitoring.MetricNames(alert.Expr) {
			if keep.MatchString(name) == slices.Contains(gardeners, name) {
				t.Errorf("%s reads %s: kept by one of the two monitors, want exactly one", alert.Alert, name)
			}
		}
	}
}
