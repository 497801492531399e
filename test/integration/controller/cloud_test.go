// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/probes/project"
)

// cloud is where the suite makes servers.
type cloud struct {
	project.Project
	// environment has the variables by which the sidecar finds it.
	environment []string
}

func mockOf(env *localenv.Env) cloud {
	return cloud{environment: env.CloudEnvironment(), Project: project.Project{
		ID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, NetworkID: iaasmock.DefaultNetworkID,
		Key: string(env.ServiceAccountKey()),
	}}
}

// realProject returns the project that variables name: test/probes/README.md.
func realProject() (c cloud, err error) {
	for _, name := range []string{spi.EnvAPIEndpoint, spi.EnvIaaSEndpoint, spi.EnvTokenURL} {
		if value := os.Getenv(name); value != "" {
			c.environment = append(c.environment, name+"="+value)
		}
	}
	c.Project, err = project.FromEnvironment(os.LookupEnv)
	return c, err
}

// writeClass writes a class for the cloud; those in testdata are the mock's.
func (c *cloud) writeClass(from, to string) error {
	class, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text := string(class)
	if c.ImageID != "" {
		text = strings.NewReplacer(iaasmock.DefaultImageID, c.ImageID, "c2i.2", c.MachineType, "g2i.4", c.MachineType,
			iaasmock.DefaultRegion, c.Region).Replace(text)
	}
	return os.WriteFile(to, []byte(text), 0o600)
}

// joinNodes makes a Node for each Machine whose server runs: servers of a real project cannot join a
// control plane on this computer.
func joinNodes(t *testing.T, env *localenv.Env) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	joined, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			var machines v1alpha1.MachineList
			_ = env.Client().List(ctx, &machines, client.InNamespace(env.Namespace()))
			for _, machine := range machines.Items {
				name := machine.Labels[v1alpha1.NodeLabelKey]
				if name == "" || joined[name] || machine.DeletionTimestamp != nil {
					continue
				}
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
				node.Spec.ProviderID = machine.Spec.ProviderID
				if err := env.Client().Create(ctx, node); err != nil && !apierrors.IsAlreadyExists(err) {
					continue
				}
				ready := client.RawPatch(types.StrategicMergePatchType,
					[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
				joined[name] = env.Client().Status().Patch(ctx, node, ready) == nil
			}
		}, time.Second)
	}()
	return func() { cancel(); <-done }
}
