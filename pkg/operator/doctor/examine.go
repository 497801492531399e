// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// Examine looks at everything, and returns what it found in the order in which it looked.
func (d *Doctor) Examine(ctx context.Context) report.Findings {
	d.servers, d.unusable = map[*account.Account][]provider.Server{}, map[string]bool{}
	for _, part := range []func(context.Context){
		d.examineControlPlane, d.examineCloud, d.examineCRDs, d.examineClasses, d.examineMachines,
		d.examineClusterLabels, d.examineOpenStack, d.examineTarget, d.examineControllers,
	} {
		part(ctx)
		if ctx.Err() != nil {
			d.unknown("the rest", "not looked at: interrupted", "")
			break
		}
	}
	return d.findings
}

// examineControllers looks at the manager, the sidecar, who leads, and what the sidecar's
// service account may do.
func (d *Doctor) examineControllers(ctx context.Context) {
	if d.Control == nil {
		return
	}
	d.looking("manager and sidecar")
	var deployments appsv1.DeploymentList
	err := d.Control.List(ctx, &deployments, client.InNamespace(d.Namespace))
	var sidecar *workload
	if err != nil {
		d.unread("manager and sidecar", err)
	} else {
		manager := findContainer(deployments.Items, isManager)
		if d.examineWorkload("manager", manager) {
			d.examineManagerVersion(manager.container.Image)
		}
		sidecar = findContainer(deployments.Items, isSidecar)
		if d.examineWorkload("sidecar", sidecar) {
			d.examineEnvironment(sidecar.container)
		}
	}
	d.examineLease(ctx, managerName)
	d.examineLease(ctx, sidecarName)
	d.examineRights(ctx, sidecar)
}

// examineRights asks what the sidecar's service account may do in the control cluster.
// sidecar is nil if no Deployment of it was found.
func (d *Doctor) examineRights(ctx context.Context, sidecar *workload) {
	subject := "rights in namespace " + d.Namespace
	account := d.controlUser(sidecar)
	if account == nil {
		d.unknown(subject, "not looked at: there is no Deployment of the sidecar that would name its service account", "name it with --service-account")
		return
	}
	d.looking(subject)
	d.reportRights(ctx, d.Control, account, subject, "apply kubernetes/control/rbac.yaml", map[string][]rbacv1.PolicyRule{d.Namespace: controlRules})
	d.examineTargetRights(ctx, sidecar, account)
}
