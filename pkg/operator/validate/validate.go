// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validate checks MachineClasses, their Secrets, Machines and MachineDeployments by
// the rules of the driver, of machine-controller-manager and, if asked, of the API.
package validate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// ErrNothingToValidate says that no object is of a kind that Run knows.
var ErrNothingToValidate = errors.New("there is no MachineClass, Machine, MachineDeployment or Secret to check")

var errInterrupted = errors.New("not everything was checked")

// Run checks the objects that the options and the Access name. The error says why it could
// not begin, or that it was interrupted.
func Run(ctx context.Context, o *account.Access, options Options) (*Result, error) {
	v := &validator{
		Access: o, options: options, reported: map[string]bool{}, secrets: map[client.ObjectKey]*object{}, inCluster: map[client.ObjectKey]error{},
		result: &Result{Findings: report.Findings{}, Checked: map[string]int{}, NotChecked: map[string]int{}},
	}
	if err := v.gather(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	for _, broken := range o.Broken {
		v.result.Findings = append(v.result.Findings, report.Finding{Verdict: report.Wrong, Position: &broken.Position, Subject: "manifest", Found: broken.Text})
	}
	if len(v.objects) == 0 && len(v.result.Findings) == 0 {
		return v.result, ErrNothingToValidate
	}
	for _, object := range v.objects {
		v.result.Checked[object.kind]++
		v.check(ctx, object)
	}
	for _, object := range v.objects {
		if deployment, ok := object.value.(*v1alpha1.MachineDeployment); ok {
			v.checkSingleMachine(object, deployment)
		}
	}
	if options.Online {
		v.checkOnline(ctx)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	v.sortFindings()
	return v.result, nil
}

// sortFindings puts what is about files into the order of the files and their lines, and
// leaves the rest behind it.
func (v *validator) sortFindings() {
	files := map[string]int{}
	for _, manifest := range v.Manifests {
		if _, ok := files[manifest.File]; !ok {
			files[manifest.File] = len(files)
		}
	}
	slices.SortStableFunc(v.result.Findings, func(a, b report.Finding) int {
		switch {
		case a.Position == nil && b.Position == nil:
			return 0
		case a.Position == nil:
			return 1
		case b.Position == nil:
			return -1
		}
		return cmp.Or(
			cmp.Compare(files[a.Position.File], files[b.Position.File]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

// check checks an object without the API.
func (v *validator) check(ctx context.Context, on *object) {
	for _, problem := range on.problems {
		v.report(on, report.Wrong, problem)
	}
	v.checkName(on)
	switch value := on.value.(type) {
	case *v1alpha1.MachineClass:
		v.checkClass(ctx, on, value)
	case *v1alpha1.Machine:
		v.checkMachine(ctx, on, value)
	case *v1alpha1.MachineDeployment:
		v.checkDeployment(ctx, on, value)
	case *corev1.Secret:
		v.checkLoneSecret(on, value)
	}
}
