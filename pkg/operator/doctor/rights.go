// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the manager and its sidecar need. kubernetes/control/rbac.yaml and
// kubernetes/target/rbac.yaml give it, with the reasons.
var (
	// controlRules are for the namespace of the Machines.
	controlRules = []rbacv1.PolicyRule{
		{APIGroups: []string{"machine.sapcloud.io"}, Resources: []string{"machineclasses", "machinedeployments"},
			Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{"machine.sapcloud.io"}, Resources: []string{"machines", "machinesets"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{"machine.sapcloud.io"}, Resources: []string{"machinedeployments/status", "machines/status", "machinesets/status"},
			Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{sidecarName, managerName}, Verbs: []string{"get", "update"}},
	}
	// targetRules are for the whole target cluster.
	targetRules = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"delete", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete", "get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"}, Verbs: []string{"delete", "list", "watch"}},
	}
	// bootstrapTokenRules are for the target cluster's namespace kube-system.
	bootstrapTokenRules = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete", "get"}},
	}
)

// user is whom a controller logs in as.
type user struct {
	name   string
	groups []string
}

// serviceAccountUser is the user of a service account, as API servers name it.
func serviceAccountUser(namespace, name string) *user {
	return &user{"system:serviceaccount:" + namespace + ":" + name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

// controlUser is the sidecar's service account; nil if nothing names it.
func (d *Doctor) controlUser(sidecar *workload) *user {
	if d.ServiceAccount != "" {
		key := d.NamedKey(d.ServiceAccount)
		return serviceAccountUser(key.Namespace, key.Name)
	}
	if sidecar == nil {
		return nil
	}
	name := sidecar.deployment.Spec.Template.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return serviceAccountUser(sidecar.deployment.Namespace, name)
}

// reportRights asks for each right of the rules, which are given by namespace; "" means the
// whole cluster.
func (d *Doctor) reportRights(ctx context.Context, in client.Client, who *user, subject, remedy string, rules map[string][]rbacv1.PolicyRule) {
	total, missing := 0, map[string][]string{}
	for namespace, rules := range rules {
		for _, right := range rightsOf(rules, namespace) {
			total++
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: who.name, Groups: who.groups, ResourceAttributes: &right,
			}}
			if err := in.Create(ctx, review); err != nil {
				d.unread(subject, err)
				return
			}
			if !review.Status.Allowed {
				name := nameOf(right)
				missing[name] = append(missing[name], right.Verb)
			}
		}
	}
	if len(missing) == 0 {
		d.fine(subject, fmt.Sprintf("%s has all %d", who.name, total))
		return
	}
	var lacks []string
	for name, verbs := range missing {
		lacks = append(lacks, fmt.Sprintf("%s (%s)", name, strings.Join(verbs, ", ")))
	}
	slices.Sort(lacks)
	d.wrong(subject, fmt.Sprintf("%s lacks %s", who.name, strings.Join(lacks, ", ")), remedy)
}

// rightsOf returns each right of the rules by itself.
func rightsOf(rules []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, path := range rule.Resources {
			resource, subresource, _ := strings.Cut(path, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights = append(rights, authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: verb, Name: name,
					})
				}
			}
		}
	}
	return rights
}

// nameOf names what a right is about: "machines/status", "leases machine-controller", and
// "secrets in kube-system" for the bootstrap tokens.
func nameOf(right authorizationv1.ResourceAttributes) string {
	name := right.Resource
	if right.Subresource != "" {
		name += "/" + right.Subresource
	}
	if right.Name != "" {
		name += " " + right.Name
	}
	if right.Namespace == metav1.NamespaceSystem {
		name += " in " + right.Namespace
	}
	return name
}
