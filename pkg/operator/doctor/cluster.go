// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/check"
)

// checkClasses checks the MachineClasses and their Secrets, as validate does.
func (d *Doctor) checkClasses(ctx context.Context) {
	subject := "MachineClasses of namespace " + d.Namespace
	classes, err := d.Classes(ctx, d.Namespace)
	if err != nil {
		d.unread(subject, err)
		return
	}
	if len(classes) == 0 {
		d.hint(subject, "there are none; set the namespace of the Machines with -n")
	}
	clusters := map[string]string{}
	for _, class := range classes {
		if class.IsForeign() {
			d.hint(class.Subject(), fmt.Sprintf("belongs to provider %q, so to another sidecar: not checked", class.Provider))
			continue
		}
		maps.Copy(clusters, class.Inputs.ClusterLabels)
		d.checkClass(ctx, class)
	}
	d.checkClusterLabels(ctx, clusters)
}

func (d *Doctor) checkClass(ctx context.Context, class *account.Class) {
	switch err := d.ReadSecrets(ctx, class); {
	case errors.Is(err, account.ErrNoSecret):
		d.wrong(class.Subject(), err.Error())
		return
	case err != nil:
		d.unread(class.Subject(), err)
		return
	}
	found := check.Class(class, d.Sessions, d.Clock)
	for _, each := range found {
		d.add(each)
	}
	if len(found) == 0 {
		d.fine(class.Subject(), "valid, with its Secret")
	}
}

// checkClusterLabels looks for other namespaces that use one of the cluster labels: in one project, the two would adopt
// and delete each other's servers.
func (d *Doctor) checkClusterLabels(ctx context.Context, clusters map[string]string) {
	if len(clusters) == 0 {
		return
	}
	everywhere, err := d.Classes(ctx, metav1.NamespaceAll)
	if err != nil {
		d.notTried("whether MachineClasses of other namespaces have this cluster label: they cannot be read")
		return
	}
	for _, class := range everywhere {
		for key, value := range class.Inputs.ClusterLabels {
			if class.Namespace != d.Namespace && !class.IsForeign() && clusters[key] == value {
				d.hint("cluster label "+key+"="+value, "also the label of "+class.Subject()+
					": in one project, the two clusters delete each other's servers (kubernetes/runbooks.md#stackitorphanservers)")
			}
		}
	}
}
