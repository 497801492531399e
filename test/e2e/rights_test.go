// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/localenv"
)

// right is one verb for one resource, as a rule grants it.
type right struct {
	// namespace is the Role's, empty for a ClusterRole.
	namespace string
	// resource is "RESOURCE.GROUP/SUBRESOURCE", as kubectl auth can-i takes it.
	verb, resource string
	// name is empty if the right is to all objects.
	name string
}

func (r right) String() string {
	return strings.TrimSpace(r.verb + " " + r.resource + " " + r.name)
}

// covers reports whether a right was used for a request.
func (r right) covers(request localenv.Request) bool {
	return r.verb == request.Verb && r.resource == resourceName(request.Resource, request.Group, request.Subresource) &&
		(r.namespace == "" || r.namespace == request.Namespace) && (r.name == "" || r.name == request.Name)
}

func resourceName(resource, group, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// grantedRights returns the rights that the Roles and ClusterRoles among objects hold.
func grantedRights(objects []*unstructured.Unstructured) []right {
	GinkgoHelper()
	var rights []right
	for _, object := range objects {
		if object.GetKind() != "Role" && object.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.Role{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role)).To(Succeed())
		for _, rule := range role.Rules {
			rights = append(rights, rightsOf(rule, role.Namespace)...)
		}
	}
	Expect(rights).NotTo(BeEmpty())
	return rights
}

func rightsOf(rule rbacv1.PolicyRule, namespace string) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var rights []right
	for _, group := range rule.APIGroups {
		for _, path := range rule.Resources {
			resource, subresource, _ := strings.Cut(path, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights = append(rights, right{namespace, verb, resourceName(resource, group, subresource), name})
				}
			}
		}
	}
	return rights
}

// expectAllowed looks for requests that RBAC or a policy refused.
func (c *cluster) expectAllowed() {
	GinkgoHelper()
	Expect(c.requests()).NotTo(ContainElement(HaveField("Code", http.StatusForbidden)))
}

// requests returns what service accounts have asked of the API servers, after what was audited.
func (c *cluster) requests() []localenv.Request {
	GinkgoHelper()
	requests, err := c.env.Requests()
	Expect(err).NotTo(HaveOccurred())
	Expect(requests).NotTo(BeEmpty(), "the audit logs are empty")
	return requests[c.audited:]
}

// expectRightsUsed expects that each right of the objects was used, or is an exception.
func (c *cluster) expectRightsUsed(objects []*unstructured.Unstructured) {
	GinkgoHelper()
	requests := c.requests()
	isException := map[string]bool{}
	for _, exception := range unusedRights {
		isException[exception.right] = true
	}
	var tooMany []string
	for _, right := range grantedRights(objects) {
		used := false
		for _, request := range requests {
			used = used || right.covers(request)
		}
		if !used && !isException[right.String()] {
			tooMany = append(tooMany, right.String())
		}
		delete(isException, right.String())
	}
	Expect(tooMany).
		To(BeEmpty(), "rights that nobody used: take them out of kubernetes/, or write down here who needs them")
	Expect(isException).To(BeEmpty(), "exceptions for rights that are not granted")
}

// unusedRights are rights that the run need not use, and who in
// machine-controller-manager v0.62.1 or its libraries needs them.
var unusedRights = []struct{ right, user string }{
	// client-go takes what there is from the beginning of a watch, and asks for a list where
	// the API server cannot do that.
	{"list machineclasses.machine.sapcloud.io", "informer"},
	{"list machinedeployments.machine.sapcloud.io", "informer"},
	{"list machines.machine.sapcloud.io", "informer"},
	{"list machinesets.machine.sapcloud.io", "informer"},
	{"list secrets", "informer"},
	{"list nodes", "informer"},
	{"list pods", "informer"},
	{"list poddisruptionbudgets.policy", "informer"},
	{"list persistentvolumeclaims", "informer"},
	{"list persistentvolumes", "informer"},
	{"list volumeattachments.storage.k8s.io", "informer"},
	{"patch machines.machine.sapcloud.io", "AdoptMachine, ReleaseMachine: somebody changed a Machine's labels or owner"},
	{"patch machinesets.machine.sapcloud.io", "AdoptMachineSet, ReleaseMachineSet: the same with a MachineSet"},
	{"patch nodes", "addNodeFinalizers: a Node changes when its Machine knows it, which is a matter of milliseconds here"},
	{"patch events", "recordEvent of client-go: the same event comes again"},
}
