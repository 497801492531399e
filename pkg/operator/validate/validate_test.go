// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// deployment is a MachineDeployment of a class that no file has.
const deployment = `apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: pool}
spec:
  replicas: 2
  selector: {matchLabels: {pool: a}}
  template:
    metadata: {labels: {pool: a}}
    spec: {class: {kind: MachineClass, name: worker}}
  strategy: {type: Recreate}
---
`

// give reads a text as the files of -f.
func give(t *testing.T, rig *testrig.Rig, text string) {
	t.Helper()
	var err error
	rig.Access.Manifests, rig.Access.Broken, err = manifest.Read(t.Context(), []string{manifest.Stdin}, strings.NewReader(text), testrig.Namespace)
	if err != nil || len(rig.Access.Broken) > 0 {
		t.Fatal(err, rig.Access.Broken)
	}
	rig.MakeClusters()
}

func TestClassInTheCluster(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("machineclasses"), "worker", errors.New("no right"))
	for name, row := range map[string]struct {
		text        string
		clusterless bool
		get         error
		code        int
		says        string
	}{
		"it is there":          {deployment, false, nil, report.ExitFine, "MachineClass shoot--demo/worker is in the cluster"},
		"it is not there":      {strings.Replace(deployment, "name: worker", "name: other", 1), false, nil, report.ExitUnknown, "MachineClass shoot--demo/other is not given, and not in the cluster"},
		"no cluster":           {deployment, true, nil, report.ExitUnknown, "is not given: whether it is there cannot be told: reading the kubeconfig"},
		"it may not be asked":  {deployment, false, forbidden, report.ExitUnknown, "cannot be told: asking the cluster: "},
		"asked once when down": {deployment + strings.NewReplacer("worker", "second", "name: pool", "name: second").Replace(deployment), false, errors.New("down"), report.ExitUnknown, "asking the cluster: down"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := testrig.New(t)
			rig.Clusterless, rig.Access.ControlError = row.clusterless, errors.New("reading the kubeconfig")
			asked := 0
			rig.Funcs.Get = func(ctx context.Context, with client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if asked++; row.get != nil {
					return row.get
				}
				return with.Get(ctx, key, object, options...)
			}
			give(t, rig, row.text)
			result, err := Run(t.Context(), rig.Access, Options{})
			if err != nil || result.ExitCode() != row.code || !strings.Contains(result.Findings[0].String(), row.says) {
				t.Errorf("got %v, %v, want exit code %d and %q", result.Findings, err, row.code, row.says)
			}
			if asked > 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// Whoever ends the command is told so, not that the API cannot be reached.
func TestInterrupted(t *testing.T) {
	rig := testrig.New(t)
	rig.MakeClusters()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := Run(ctx, rig.Access, Options{Cluster: true, Online: true, Replicas: 1, Progress: func(text string) {
		if text == "listing machine types" {
			cancel()
		}
	}})
	if result != nil || !errors.Is(err, errInterrupted) {
		t.Errorf("got %v, %v, want that it was interrupted", result, err)
	}
	if calls := rig.Cloud.CallCounts(); calls["GetImage"]+calls["ListQuotas"] > 0 {
		t.Errorf("made %v, want no more calls", calls)
	}
}

// A NIC may be attached to a server that the driver would find as one of the class's.
func TestOwns(t *testing.T) {
	own := testrig.Labels("worker-1", "worker", testrig.OwnCluster)
	for name, row := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"the class's":        {own, true},
		"another class's":    {testrig.Labels("worker-1", "other", testrig.OwnCluster), false},
		"another cluster's":  {testrig.Labels("worker-1", "worker", "other"), false},
		"of no cluster":      {testrig.Labels("worker-1", "worker", ""), false},
		"of no Machine":      {map[string]string{provider.StackitMachineClassLabel: "worker", testrig.ClusterKey: testrig.OwnCluster}, false},
		"without our labels": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			class := testrig.Class("worker", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
			check := &onlineCheck{classCheck: &classCheck{object: &object{name: "worker"}}, spec: provider.Inspect(class, nil).Spec}
			if got := check.owns(&provider.Server{ID: iaasmock.DefaultNICID, Name: "worker-1", Labels: row.labels}); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
