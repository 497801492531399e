// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

func (d *Doctor) examineClasses(ctx context.Context) {
	if d.Control == nil {
		return
	}
	d.looking("MachineClasses")
	subject := "MachineClasses of namespace " + d.Namespace
	classes, err := d.Classes(ctx, d.Namespace)
	if err != nil {
		d.unread(subject, err)
		return
	}
	if len(classes) == 0 {
		d.hint(subject, "there is none", "name the namespace of the Machines with -n")
	}
	for _, class := range classes {
		if account.IsForeign(class) {
			d.hint(account.Subject(class), fmt.Sprintf("is of provider %q: for another sidecar, not looked at", class.Provider),
				"if STACKIT is meant, set provider to "+provider.StackitProviderName)
			continue
		}
		d.examineClass(ctx, class)
	}
}

// examineClass reports one fine Finding, or all that is wrong.
func (d *Doctor) examineClass(ctx context.Context, class *v1alpha1.MachineClass) {
	subject := account.Subject(class)
	names := account.SecretNames(class)
	if len(names) == 0 {
		d.wrong(subject, "names no Secret: machine-controller-manager does not call the driver", "set secretRef")
		return
	}
	secret, err := d.SecretOf(ctx, class)
	if err != nil {
		d.reportSecret(class, err)
		return
	}
	before := len(d.findings)
	// Without it the manager never calls the driver for a creation (v0.62.1 userdata.go:42).
	if _, ok := secret.Data[apis.SecretUserData]; !ok {
		d.wrong(subject, fmt.Sprintf("the key %s is missing in %s: machine-controller-manager does not call the driver, and new Machines stay without a status",
			apis.SecretUserData, strings.Join(names, " and ")), "add the key "+apis.SecretUserData+" with the cloud-init; it may be empty")
	}
	inputs := provider.Inspect(class, secret)
	d.classes = append(d.classes, account.Class{MachineClass: class, Inputs: inputs})
	if len(inputs.Errors) == 0 {
		d.place = place{projectID: inputs.Secret.ProjectID, region: inputs.Spec.Region}
		defer func() { d.place = place{} }()
	}
	d.examineInputs(class, inputs)
	if len(inputs.ClusterLabels) == 0 {
		d.hint(subject, "has no cluster label: servers are told apart by the names of Machine and class only",
			"where clusters share a project, make a class whose providerSpec.labels have a key that ends in /cluster, with a value for this cluster alone, and roll to it; never add it to a class that has machines")
	}
	if len(d.findings) == before && !d.unusable[class.Name] {
		d.fine(subject, fmt.Sprintf("provider, credentials and %s are there, in %s", apis.SecretUserData, strings.Join(names, " and ")))
	}
}

// reportSecret says that a Secret of a class cannot be had, unless it was said before.
func (d *Doctor) reportSecret(class *v1alpha1.MachineClass, err error) {
	switch {
	case d.unusable[class.Name]:
	case errors.Is(err, account.ErrNoSecret):
		d.wrong(account.Subject(class), report.OneLine(err.Error()), "make the Secret, or correct the reference to it")
	default:
		d.unread(account.Subject(class), err)
	}
}

// examineInputs says what the driver would refuse, unless it was said before.
func (d *Doctor) examineInputs(class *v1alpha1.MachineClass, inputs *provider.Inputs) {
	subject := account.Subject(class)
	var secret, spec []string
	for _, err := range inputs.Errors {
		if strings.HasPrefix(err.Field, "secret") {
			secret = append(secret, report.OneLine(err.Error()))
		} else {
			spec = append(spec, report.OneLine(err.Error()))
		}
	}
	if len(spec) > 0 {
		d.wrong(subject, fmt.Sprintf("%s: %s", report.Count(len(spec), "error"), spec[0]), "\"mcm-stackit validate\" shows all of them with their places")
	}
	if d.unusable[class.Name] || d.ConfigError != nil {
		return
	}
	if len(secret) > 0 {
		d.wrong(subject, strings.Join(secret, "; "), "correct its Secret")
		return
	}
	if _, err := d.SessionWith(inputs.Secret); err != nil {
		d.wrong(subject, report.OneLine(err.Error()), credentialsRemedy(err))
	}
}
