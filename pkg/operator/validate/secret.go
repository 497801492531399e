// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/manifest"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider/apis/validation"
)

// secretsOf returns the Secrets of a class in the order in which the manager merges them
// (v0.62.1 machine_util.go:97); nil if not all of them can be had, with the reason reported
// or, where they are not given, among the missing.
func (v *validator) secretsOf(ctx context.Context, check *classCheck) []*object {
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
		secret := v.secretOfReference(ctx, check, reference.path, reference.ref)
		if secret == nil {
			complete = false
			continue
		}
		secrets = append(secrets, secret)
	}
	if none {
		v.wrong(on, "secretRef", "is missing", "name the Secret with projectId, serviceAccountKey and userData")
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
func (v *validator) secretOfReference(ctx context.Context, check *classCheck, path string, ref *corev1.SecretReference) *object {
	on := check.object
	if ref.Name == "" {
		v.wrong(on, path+".name", "is missing", "name the Secret")
		return nil
	}
	if ref.Namespace != on.namespace {
		// v0.62.1 app.go:270: the manager's cache has the Secrets of this namespace only.
		found := "is " + report.Quoted(ref.Namespace)
		if ref.Namespace == "" {
			found = "is missing"
		}
		v.wrong(on, path+".namespace", found, fmt.Sprintf("must be %s, the namespace of the class: machine-controller-manager sees no other Secrets", report.Quoted(on.namespace)))
	}
	if v.named != nil || ref.Namespace == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if secret := v.secrets[key]; secret != nil {
		return secret
	}
	if !v.options.Cluster {
		check.missing = append(check.missing, missingSecret{path, key})
		return nil
	}
	secret, err := v.Secret(ctx, key)
	switch {
	case errors.Is(err, account.ErrNoSecret):
		v.wrong(on, path, fmt.Sprintf("Secret %s is not there: what it should hold is missing", key), "create it, or remove the reference")
		return nil
	case err != nil:
		v.unknown(on, path, err.Error(), "")
		return nil
	}
	v.result.Checked[kindSecret]++
	found := &object{kind: kindSecret, namespace: key.Namespace, name: key.Name, value: secret}
	v.secrets[key] = found
	return found
}

// reportMissing says of Secrets that are not given what cannot be told without them.
func (v *validator) reportMissing(check *classCheck) {
	untold := []string{apis.SecretProjectID, apis.SecretServiceAccountKey, apis.SecretUserData}
	if check.inputs.Spec.Region == "" {
		untold = append(untold, apis.SecretRegion)
	}
	if check.inputs.Spec.Networking == nil {
		untold = append(untold, apis.SecretNetworkID)
	}
	for _, missing := range check.missing {
		v.withoutSecret(check.object, missing.path, fmt.Sprintf("Secret %s is not given: whether it is right cannot be told, nor its %s",
			missing.key, strings.Join(untold, ", ")), "add its file with -f, or name one with --secret")
	}
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
// it, or, if none does, at the only Secret or else at the class.
func (v *validator) reportKey(check *classCheck, key, found, remedy string) {
	if secret, name := check.holderOf(key); secret != nil {
		if v.options.AllowMissingSecret && bytes.Contains(secret.secretData()[name], []byte(placeholder)) {
			v.withoutSecret(secret, secret.keyPath(name), "is a placeholder ("+placeholder+"): whether the value is right cannot be told", "")
			return
		}
		v.wrong(secret, secret.keyPath(name), found, remedy)
		return
	}
	if near := manifest.Nearest(key, keysOf(check.secrets)); near != "" {
		remedy += fmt.Sprintf("; is the key %s meant to be it?", report.Quoted(near))
	}
	if len(check.secrets) == 1 {
		v.wrong(check.secrets[0], check.secrets[0].keyPath(key), found, remedy)
		return
	}
	var names []string
	for _, secret := range check.secrets {
		names = append(names, secret.subject())
	}
	v.wrong(check.object, "credentialsSecretRef", fmt.Sprintf("%s %s in %s", key, found, strings.Join(names, " and in ")), remedy)
}

// keysOf returns the keys of the Secrets that the driver does not know.
func keysOf(secrets []*object) []string {
	known := []string{
		apis.SecretProjectID, apis.SecretProjectIDGardener, apis.SecretServiceAccountKey, apis.SecretServiceAccountGardener,
		apis.SecretRegion, apis.SecretUserData, apis.SecretNetworkID,
	}
	keys := slices.Sorted(maps.Keys(merged(secrets).Data))
	return slices.DeleteFunc(keys, func(key string) bool {
		return slices.Contains(known, key) || slices.Contains(apis.SecretIdentity, key)
	})
}

// keyPath returns where a key of a Secret stands, or should.
func (o *object) keyPath(key string) string {
	parent := "data"
	if o.manifest != nil {
		if o.manifest.Has("stringData") && (o.manifest.Has("stringData", key) || !o.manifest.Has("data")) {
			parent = "stringData"
		}
	}
	return manifest.PathOf(parent, key)
}

// checkUserData: without the key the manager never calls the driver, and the Machine shows
// nothing (v0.62.1 userdata.go:48).
func (v *validator) checkUserData(check *classCheck) {
	if _, ok := check.secret.Data[apis.SecretUserData]; !ok {
		v.reportKey(check, apis.SecretUserData, "is missing", "the key must exist, if need be with an empty value: without it machine-controller-manager makes no machines, and their status stays empty")
	}
}

// maxUserData is how much userData OpenStack, which is below the API, takes: 65535 bytes in
// base64 (Nova's limit). The API document names none: it has userData as base64 without a
// maxLength.
const maxUserData = 65535

// checkUserDataSize gives a hint about userData that may be refused. The driver sends it in
// base64, so that it grows by a third.
func (v *validator) checkUserDataSize(check *classCheck) {
	text := check.inputs.Spec.UserData
	encoded := base64.StdEncoding.EncodedLen(len(text))
	if encoded <= maxUserData {
		return
	}
	on, path := check.object, apis.SpecPath.Child(apis.SecretUserData).String()
	if holder, name := check.holderOf(apis.SecretUserData); holder != nil && check.inputs.Secret.UserData == text {
		on, path = holder, holder.keyPath(name)
	}
	v.report(on, report.Hint, manifest.Problem{
		Path: path, Found: fmt.Sprintf("has %d bytes, in base64 %d: the API may refuse it", len(text), encoded),
		Remedy: fmt.Sprintf("the API document names no limit, OpenStack's is %d bytes in base64, which is %d of text", maxUserData, maxUserData/4*3),
	})
}

// checkCredentials asks what the session says of the service-account key, or of the workload
// identity. What is in a file of the sidecar's pod cannot be told here.
func (v *validator) checkCredentials(check *classCheck, secret *apis.Secret) {
	_, err := v.SessionWith(secret)
	problem := provider.CredentialsProblem(secret, err, check.rejected)
	if problem != nil {
		found, remedy := describe(problem)
		if secret.ServiceAccountKey != "" {
			remedy = "put in the whole file that STACKIT handed out, with the private key"
		}
		v.reportKey(check, secretKey(problem), found, remedy)
	}
	holder, name := check.holderOf(apis.SecretWorkloadIdentityTokenFile)
	if holder == nil || err != nil || secret.CredentialsKey() != name {
		return
	}
	v.report(holder, report.Hint, manifest.Problem{
		Path: holder.keyPath(name), Found: "is a file of the sidecar's pod: only its path could be checked",
		Remedy: "mount it there; kubernetes/README.md shows how",
	})
}

// secretKey is the key of the Secret that an error is about.
func secretKey(err *field.Error) string {
	return strings.TrimPrefix(err.Field, apis.SecretPath.String()+".")
}

// checkLoneSecret checks a Secret that no class names, if it has credentials: it may be one
// for the command, or its classes are elsewhere.
func (v *validator) checkLoneSecret(on *object, secret *corev1.Secret) {
	if len(on.problems) > 0 || v.isNamedByClass(on) {
		return
	}
	decoded, errs := apis.DecodeSecret(secret.Data)
	// Others' Secrets have a key "token", too.
	if decoded.ProjectID == "" && decoded.ServiceAccountKey == "" && decoded.ServiceAccountEmail == "" && len(errs) == 0 {
		return
	}
	check := &classCheck{object: on, secrets: []*object{on}}
	check.rejected = append(errs, validation.ValidateSecret(decoded, apis.SecretPath)...)
	for _, err := range check.rejected {
		found, remedy := describe(err)
		v.reportKey(check, secretKey(err), found, remedy)
	}
	v.checkCredentials(check, decoded)
}

// isNamedByClass says whether the Secret is checked with a class.
func (v *validator) isNamedByClass(secret *object) bool {
	return slices.ContainsFunc(v.objects, func(object *object) bool {
		class, ok := object.value.(*v1alpha1.MachineClass)
		if !ok || v.named != nil {
			return ok && v.named == secret
		}
		return slices.ContainsFunc(account.SecretRefs(class), func(ref *corev1.SecretReference) bool {
			return ref.Namespace == secret.namespace && ref.Name == secret.name
		})
	})
}
