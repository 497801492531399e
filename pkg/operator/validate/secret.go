// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
)

// secretsOf returns the Secrets of a class in the order in which the manager merges them
// (v0.62.1 machine_util.go:97); nil if not all of them can be had, with the reason reported
// or, where they are not given, among the missing.
func (v *validator) secretsOf(check *classCheck) []*object {
	on, class := check.object, check.class
	references := []struct {
		path string
		ref  *corev1.SecretReference
	}{{"secretRef", class.SecretRef}, {"credentialsSecretRef", class.CredentialsSecretRef}}
	var secrets []*object
	none, complete := true, true
	for _, reference := range references {
		if reference.ref == nil {
			continue
		}
		none = false
		secret := v.secretOfReference(on, reference.path, reference.ref)
		if secret == nil {
			complete = false
			continue
		}
		secrets = append(secrets, secret)
	}
	if none {
		v.wrong(on, "secretRef", "Required value: name the Secret with projectId, serviceAccountKey and userData")
	}
	if v.named != nil {
		secrets, none, complete = []*object{v.named}, false, true
	}
	if none || !complete || slices.ContainsFunc(secrets, func(secret *object) bool { return len(secret.problems) > 0 }) {
		return nil
	}
	return secrets
}

// secretOfReference returns the Secret that a class names; nil if it cannot be had. The one
// that the user names takes its place.
func (v *validator) secretOfReference(on *object, path string, ref *corev1.SecretReference) *object {
	if ref.Name == "" {
		v.wrong(on, path+".name", "Required value: name the Secret")
		return nil
	}
	if ref.Namespace != on.namespace {
		// v0.62.1 app.go:270: the manager's cache has the Secrets of this namespace only.
		v.wrong(on, path+".namespace", body(field.Invalid(nil, ref.Namespace, fmt.Sprintf(
			"must be %q, the namespace of the class: machine-controller-manager sees no other Secrets", on.namespace))))
	}
	if v.named != nil || ref.Namespace == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if secret := v.find(kindSecret, key); secret != nil {
		return secret
	}
	v.withoutSecret(on, path, fmt.Sprintf("Secret %s is not given: its contents cannot be checked; add its file with -f, or name one with --secret", key))
	return nil
}

// secretData returns the data of an object that is a Secret.
func (o *object) secretData() map[string][]byte {
	if secret, ok := o.value.(*corev1.Secret); ok {
		return secret.Data
	}
	return nil
}

// merged returns one Secret with the data of all; later ones win.
func merged(secrets []*object) *corev1.Secret {
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for _, each := range secrets {
		maps.Copy(secret.Data, each.secretData())
	}
	return secret
}

// otherSpelling has Gardener's names of keys.
var otherSpelling = map[string]string{
	apis.SecretProjectID:         apis.SecretProjectIDGardener,
	apis.SecretServiceAccountKey: apis.SecretServiceAccountGardener,
}

// placeholder stands in the samples for what is nobody else's to know.
const placeholder = "replace-me"

// holderOf returns the Secret that has a key, and the name under which it has it; nil if none
// has it.
func (c *classCheck) holderOf(key string) (holder *object, name string) {
	for _, secret := range slices.Backward(c.secrets) {
		for _, name := range []string{key, otherSpelling[key]} {
			if _, ok := secret.secretData()[name]; ok && name != "" {
				return secret, name
			}
		}
	}
	return nil, ""
}

// reportKey reports what is wrong with a key of the class's Secrets: at the Secret that has
// it, or, if none does, at the last one.
func (v *validator) reportKey(check *classCheck, key, text string) {
	if secret, name := check.holderOf(key); secret != nil {
		if v.options.AllowMissingSecret && bytes.Contains(secret.secretData()[name], []byte(placeholder)) {
			v.withoutSecret(secret, secret.keyPath(name), "is a placeholder ("+placeholder+"): whether the value is right cannot be checked")
			return
		}
		v.wrong(secret, secret.keyPath(name), text)
		return
	}
	last := check.secrets[len(check.secrets)-1]
	v.wrong(last, last.keyPath(key), text)
}

// keyPath returns where a key of a Secret stands, or should.
func (o *object) keyPath(key string) string {
	parent := "data"
	if o.has("stringData") && (o.has("stringData", key) || !o.has("data")) {
		parent = "stringData"
	}
	return apis.ChildPath(field.NewPath(parent), key).String()
}

// checkUserData: without the key the manager never calls the driver, and the Machine shows
// nothing (v0.62.1 userdata.go:48).
func (v *validator) checkUserData(check *classCheck) {
	if _, ok := check.secret.Data[apis.SecretUserData]; !ok {
		v.reportKey(check, apis.SecretUserData, "Required value: the key must exist, if need be with an empty value: "+
			"without it machine-controller-manager makes no machines, and their status stays empty")
	}
}

// checkCredentials asks what the session says of the service-account key, or of the workload
// identity. What is in a file of the sidecar's pod cannot be checked here.
func (v *validator) checkCredentials(check *classCheck, secret *apis.Secret) {
	_, err := v.Sessions.Session(provider.Credentials(secret))
	unusable := provider.CredentialsProblem(secret, err, check.rejected)
	if unusable != nil {
		text := body(unusable)
		if secret.ServiceAccountKey != "" {
			text += "; put in the whole file that STACKIT handed out, with the private key"
		}
		v.reportKey(check, strings.TrimPrefix(unusable.Field, apis.SecretPath.String()+"."), text)
	}
	holder, name := check.holderOf(apis.SecretWorkloadIdentityTokenFile)
	if holder == nil || err != nil || secret.CredentialsKey() != name {
		return
	}
	v.report(holder, report.Hint, holder.keyPath(name),
		"is a file of the sidecar's pod: only its path could be checked; mount it there; kubernetes/README.md shows how")
}
