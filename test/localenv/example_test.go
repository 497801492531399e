// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package localenv_test

import (
	"context"
	"fmt"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// The samples are applied to an environment; a minute later their three Machines run. make localenv builds what Start
// needs.
func Example() {
	ctx := context.Background()
	env, err := localenv.Start(ctx, localenv.WithCloudOptions(iaasmock.WithBootDuration(2*time.Second)))
	if err != nil {
		panic(err)
	}
	defer env.Stop()
	for _, sample := range []string{"secret.yaml", "machine-class-minimal.yaml", "machine-deployment.yaml"} {
		if err := env.ApplyFile(ctx, "../../samples/"+sample); err != nil {
			panic(err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var machines machinev1alpha1.MachineList
		err := env.Client().List(ctx, &machines)
		running := 0
		for i := range machines.Items {
			if machines.Items[i].Status.CurrentStatus.Phase == machinev1alpha1.MachineRunning {
				running++
			}
		}
		return running == 3, err
	})
	if err != nil {
		panic(err)
	}
	for _, server := range env.Cloud().Servers() {
		fmt.Println(server.Name, server.Status)
	}
}
