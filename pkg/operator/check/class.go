// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package check finds what is wrong with MachineClasses, their Secrets, Machines and MachineDeployments, by the rules
// of the driver and of machine-controller-manager and, on request, by what the API has. It reads no files.
package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	kjson "sigs.k8s.io/json"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
)

// NoClusterLabel is the hint about a class without a cluster label.
const NoClusterLabel = "no cluster label: orphans are found by class and machine name; " +
	"set one only on a class that has no machines yet"

// classCheck is a check of one class.
type classCheck struct {
	*account.Class
	found report.Findings
}

// secretSubject returns "Secret namespace/name" of the last Secret that has the key or, if none has, of the last one.
func (c *classCheck) secretSubject(key string) string {
	last := len(c.Secrets) - 1
	for i, secret := range c.Secrets {
		for _, name := range []string{key, gardeners[key]} {
			_, inData := secret.Data[name]
			if _, inText := secret.StringData[name]; inData || inText {
				last = i
			}
		}
	}
	return report.OneLine(fmt.Sprintf("Secret %s/%s", c.Secrets[last].Namespace, c.Secrets[last].Name))
}

// gardeners maps keys to Gardener's spelling of them.
var gardeners = map[string]string{
	apis.SecretProjectID:         apis.SecretProjectIDGardener,
	apis.SecretServiceAccountKey: apis.SecretServiceAccountGardener,
}

// Class returns the findings about a class and its Secrets, without the API. Of another provider's class, as there is
// one in a migration, only the provider is one: another driver reads the rest.
func Class(class *account.Class, sessions *spi.PluginSPIImpl, clock clock.PassiveClock) report.Findings {
	c := &classCheck{Class: class}
	isForeign := c.IsForeign()
	for _, err := range c.Inputs.Errors {
		if !isForeign || err.Field == "machineClass.provider" {
			c.addInput(err)
		}
	}
	if isForeign {
		return c.found
	}
	for _, err := range c.Inputs.Unknown {
		var at kjson.FieldError
		if errors.As(err, &at) {
			c.add(report.Wrong, "providerSpec."+at.FieldPath(), "is not a known field")
		}
	}
	if len(c.Inputs.ClusterLabels) == 0 && !refuses(c.Inputs, "providerSpec.labels") {
		c.add(report.Hint, "providerSpec.labels", NoClusterLabel)
	}
	if strings.Contains(c.Name, ".") {
		c.add(report.Hint, "metadata.name", dotsText)
	}
	isOwn := c.Inputs.Spec.UserData != c.Inputs.Secret.UserData // and not the Secret's
	if isOwn {
		c.add(report.Hint, "providerSpec.userData", userDataText(c.Inputs.Spec.UserData))
	}
	c.checkNodeTemplate()
	c.checkReferences()
	if len(c.Secrets) > 0 {
		c.checkUserData(isOwn)
		c.checkCredentials(sessions, clock)
	}
	return c.found
}

// add adds a finding about the class, unless the text is "".
func (c *classCheck) add(verdict report.Verdict, path, text string) {
	c.addTo(verdict, c.Subject(), path, text)
}

func (c *classCheck) addTo(verdict report.Verdict, subject, path, text string) {
	if text != "" {
		c.found = append(c.found,
			report.Finding{Verdict: verdict, Subject: subject, Field: path, Found: report.OneLine(text)})
	}
}

// addKey adds a finding about a key of the Secrets.
func (c *classCheck) addKey(verdict report.Verdict, key, text string) {
	c.addTo(verdict, c.secretSubject(key), key, text)
}

// addInput adds an error of Inspect, unless a missing Secret explains it.
func (c *classCheck) addInput(err *field.Error) {
	key, ofSecret := strings.CutPrefix(err.Field, apis.SecretPath.String()+".")
	mayBeInSecret := err.Type == field.ErrorTypeRequired &&
		(err.Field == "providerSpec.region" || err.Field == "providerSpec.networking")
	switch {
	case len(c.Secrets) == 0 && (ofSecret || mayBeInSecret):
	case ofSecret:
		c.addKey(report.Wrong, key, body(err))
	default:
		c.add(report.Wrong, strings.TrimPrefix(err.Field, "machineClass."), body(err))
	}
}

// refuses reports whether an error was found in a field, in a part of it, or in an object that contains it.
func refuses(inputs *provider.Inputs, path string) bool {
	isPart := func(part, whole string) bool {
		rest, ok := strings.CutPrefix(part, whole)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	return slices.ContainsFunc(inputs.Errors, func(err *field.Error) bool {
		return isPart(err.Field, path) || isPart(path, err.Field)
	})
}

// checkNodeTemplate applies the rule of the manager's validateNodeTemplate (v0.62.1 machine_util.go:146), which cannot
// be imported: the manager ignores the Machines of a class that breaks it, and only logs that. cluster-autoscaler takes
// the template for the Node when it scales up from zero, so it must also match the providerSpec.
func (c *classCheck) checkNodeTemplate() {
	template, spec := c.NodeTemplate, c.Inputs.Spec
	if template == nil {
		return
	}
	region, zone := spec.Region, spec.AvailabilityZone
	if apis.RegionOfZone(region) != "" { // a zone's name: only the API can tell
		region = ""
	}
	if of := apis.RegionOfZone(zone); of != "" && of != spec.Region {
		zone = ""
	}
	const missing = "Required value: machine-controller-manager creates no machines of a class whose nodeTemplate lacks it"
	for _, name := range []corev1.ResourceName{"cpu", "gpu", "memory"} {
		if _, ok := template.Capacity[name]; !ok {
			c.add(report.Wrong, "nodeTemplate.capacity."+string(name), missing)
		}
	}
	for _, row := range []struct{ name, value, field, want string }{
		{"instanceType", template.InstanceType, "machineType", spec.MachineType},
		{"region", template.Region, "region", region},
		{"zone", template.Zone, "availabilityZone", zone},
	} {
		switch {
		case row.value == "":
			c.add(report.Wrong, "nodeTemplate."+row.name, missing)
		case row.want != "" && row.value != row.want && !refuses(c.Inputs, "providerSpec."+row.field):
			c.add(report.Wrong, "nodeTemplate."+row.name, fmt.Sprintf("is %q, but the servers' %s is %q: "+
				"cluster-autoscaler scales up from zero by the nodeTemplate", row.value, row.field, row.want))
		}
	}
	if template.Zone != "" && spec.AvailabilityZone == "" && len(c.Secrets) > 0 {
		c.add(report.Hint, "nodeTemplate.zone", "neither class nor Secret names a zone: servers may be made in another one")
	}
}

// checkReferences checks how the class names its Secrets. The manager reads those of its own namespace only (v0.62.1
// app.go:270).
func (c *classCheck) checkReferences() {
	if c.SecretRef == nil && c.CredentialsSecretRef == nil {
		c.add(report.Wrong, "secretRef", "Required value: name the Secret with projectId, serviceAccountKey and userData")
	}
	for _, row := range []struct {
		path string
		ref  *corev1.SecretReference
	}{{"secretRef", c.SecretRef}, {"credentialsSecretRef", c.CredentialsSecretRef}} {
		switch {
		case row.ref == nil:
		case row.ref.Name == "":
			c.add(report.Wrong, row.path+".name", "Required value: name the Secret")
		case row.ref.Namespace != c.Namespace:
			c.add(report.Wrong, row.path+".namespace", fmt.Sprintf("is %q: must be %q, the namespace of the class",
				row.ref.Namespace, c.Namespace))
		}
	}
}

// checkUserData requires the key userData. Without it the manager never calls the driver, and the Machine's status
// stays empty (v0.62.1 userdata.go:48).
func (c *classCheck) checkUserData(isReplaced bool) {
	userData, ok := c.Secret().Data[apis.SecretUserData]
	switch {
	case !ok:
		c.addKey(report.Wrong, apis.SecretUserData, "Required value: may be empty, but without the key "+
			"machine-controller-manager creates no machines, and their status stays empty")
	case !isReplaced:
		c.addKey(report.Hint, apis.SecretUserData, userDataText(string(userData)))
	}
}

// checkCredentials checks the service-account key or the workload identity.
func (c *classCheck) checkCredentials(sessions *spi.PluginSPIImpl, clock clock.PassiveClock) {
	secret := c.Inputs.Secret
	_, err := sessions.Session(provider.Credentials(secret))
	if problem := provider.CredentialsProblem(secret, err, c.Inputs.Errors); problem != nil {
		c.addInput(problem)
	}
	if key, err := sessions.Config.InspectKey(secret.ServiceAccountKey); err == nil && !sessions.Config.NoAuth {
		for _, about := range account.CheckKey(key, secret.ProjectID, clock.Now()) {
			c.addKey(about.Verdict, apis.SecretServiceAccountKey, "the key "+about.Found)
		}
	}
}

// body returns an error's text about its field, in the API server's words, with a long value shortened.
func body(err *field.Error) string {
	const maxLength = 80
	short := *err
	if runes := []rune(fmt.Sprint(err.BadValue)); len(runes) > maxLength {
		short.BadValue = string(runes[:maxLength]) + "..."
	}
	return short.ErrorBody()
}
