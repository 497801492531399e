// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Class is a MachineClass with what it says, and its Secrets if they were read.
type Class struct {
	*v1alpha1.MachineClass
	Inputs *provider.Inputs
}

// Subject names a class in findings.
func Subject(class *v1alpha1.MachineClass) string {
	return fmt.Sprintf("MachineClass %s/%s", class.Namespace, class.Name)
}

// IsForeign says that a class is for another provider's sidecar.
func IsForeign(class *v1alpha1.MachineClass) bool {
	return class.Provider != "" && class.Provider != provider.StackitProviderName
}

// InspectedClasses are the MachineClasses of the namespaces, inspected without their Secrets.
func (o *Access) InspectedClasses(ctx context.Context, namespaces ...string) ([]*Class, error) {
	classes, err := o.Classes(ctx, namespaces...)
	inspected := make([]*Class, 0, len(classes))
	for _, class := range classes {
		inspected = append(inspected, &Class{class, provider.Inspect(class, nil)})
	}
	return inspected, err
}
