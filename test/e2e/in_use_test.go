// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// What the policies for objects in use say.
const (
	classRegion   = "providerSpec.region must stay"
	classCluster  = "that ends in /cluster must stay"
	secretRegion  = "the region of a Secret must stay"
	secretProject = "the project of a Secret must stay"
)

// objectsInUse are changes by an administrator; refused is "" if one is allowed.
var objectsInUse = []struct {
	name          string
	before, after client.Object
	refused       string
}{
	{"another region", classWith("stackit", `{"region":"eu01"}`), classWith("stackit", `{"region":"eu02"}`), classRegion},
	{"another region, and a provider", classWith("", `{"region":"eu01"}`), classWith("stackit", `{"region":"eu02"}`),
		classRegion},
	{"the Secret's region", classWith("stackit", `{"region":"eu01"}`), classWith("stackit", `{}`), classRegion},
	{"another cluster", classWith("stackit", `{"labels":{"a/cluster":"x"}}`),
		classWith("stackit", `{"labels":{"a/cluster":"y"}}`), classCluster},
	{"a second cluster", classWith("stackit", `{"labels":{"a/cluster":"x"}}`),
		classWith("stackit", `{"labels":{"a/cluster":"x","b/cluster":"x"}}`), classCluster},
	{"no labels", classWith("stackit", `{"labels":{"a/cluster":"x"}}`), classWith("stackit", `{"labels":null}`),
		classCluster},
	{"the first cluster", classWith("stackit", `{"labels":{"c":"d"}}`),
		classWith("stackit", `{"labels":{"a/cluster":"x","c":"d"}}`), ""},
	{"labels of a wrong type", classWith("stackit", `{"labels":["a"],"region":5}`),
		classWith("stackit", `{"labels":{"a/cluster":"x"}}`), ""},
	{"another image and label", classWith("stackit", `{"imageId":"a","labels":{"a/cluster":"x"}}`),
		classWith("stackit", `{"imageId":"b","labels":{"a/cluster":"x","c":"d"}}`), ""},
	{"from OpenStack", classWith("openstack", `{"region":"RegionOne"}`), classWith("stackit", `{"region":"eu01"}`), ""},
	{"back to OpenStack", classWith("stackit", `{"region":"eu01"}`), classWith("openstack", `{"region":"RegionOne"}`), ""},

	{"a Secret's region", secretWith("region", "eu01"), secretWith("region", "eu02"), secretRegion},
	{"a zone of another region", secretWith("region", "eu01-2"), secretWith("region", "eu02-2"), secretRegion},
	{"no region", secretWith("region", "eu01"), secretWith("userData", "a"), secretRegion},
	{"a Secret's project", secretWith("projectId", "a"), secretWith("projectId", "b"), secretProject},
	{"another under the other key", secretWith("projectId", "a"), secretWith("project-id", "b"), secretProject},
	{"no project", secretWith("projectId", "a"), secretWith("userData", "a"), secretProject},
	{"the project under the other key", secretWith("project-id", "a"), secretWith("projectId", "a"), ""},
	{"a project without its line break", secretWith("projectId", iaasmock.DefaultProjectID+"\n"),
		secretWith("projectId", iaasmock.DefaultProjectID), ""},
	{"a zone of the region", secretWith("region", "eu01"), secretWith("region", "eu01-1"), ""},
	{"another zone", secretWith("region", "eu03-m"), secretWith("region", "eu03-9"), ""},
	{"a region at last", secretWith("userData", "a"), secretWith("region", "eu01"), ""},
}

func classWith(provider, spec string) *v1alpha1.MachineClass {
	return &v1alpha1.MachineClass{Provider: provider, ProviderSpec: runtime.RawExtension{Raw: []byte(spec)},
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{classFinalizer}}}
}

func secretWith(key, value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{key: []byte(value)},
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{secretFinalizer}}}
}

// expectInUseStays tries, as an administrator, to change by what servers are found: not while the finalizer of a
// class says that it has Machines, or that of a Secret that it has classes.
func (c *cluster) expectInUseStays(ctx SpecContext) {
	GinkgoHelper()
	for i, row := range objectsInUse {
		before, after := row.before.DeepCopyObject().(client.Object), row.after.DeepCopyObject().(client.Object)
		before.SetNamespace(c.env.Namespace())
		before.SetName(fmt.Sprintf("in-use-%d", i))
		Expect(c.Create(ctx, before)).To(Succeed(), row.name)
		after.SetNamespace(before.GetNamespace())
		after.SetName(before.GetName())
		after.SetFinalizers(nil)
		after.SetResourceVersion(before.GetResourceVersion())
		if row.refused != "" {
			awaitRefusal(ctx, row.refused, func(ctx context.Context) error {
				return c.Update(ctx, after.DeepCopyObject().(client.Object), client.DryRunAll)
			}, row.name)
			before.SetFinalizers(nil) // its last Machine or class is gone
			Expect(c.Update(ctx, before)).To(Succeed(), row.name)
			after.SetResourceVersion(before.GetResourceVersion())
		}
		Expect(c.Update(ctx, after)).To(Succeed(), row.name)
	}
}

const (
	// large is about as much as etcd takes of an object, in bytes: 1.5 MiB with all that is around it.
	large = 1_300_000
	// largeSecret is what the API server takes of a Secret's values, a MiB with all of them.
	largeSecret = 1<<20 - 100
)

// expectLargeObjectsGo makes objects as large as etcd takes them. A policy whose expression costs too much
// fails, and refuses everything: a change that is allowed, the removal of finalizers, and with it the end of the
// namespace.
func (c *cluster) expectLargeObjectsGo(ctx SpecContext, user serviceAccount) {
	GinkgoHelper()
	manager := user.client(ctx, c.Client, c.env.RESTConfig())
	var clusters, finalizers []string
	for i := range 20_000 {
		clusters = append(clusters, fmt.Sprintf(`"a%05d/cluster":"x"`, i))
		finalizers = append(finalizers, fmt.Sprintf("a.io/f%05d", i))
	}
	many := classWith("stackit", `{"region":"eu01"}`)
	many.Finalizers = append(many.Finalizers, finalizers...)
	manyOfSecret := secretWith("region", "eu01")
	manyOfSecret.Finalizers = append(manyOfSecret.Finalizers, finalizers...)
	other, otherSecret := classWith("stackit", `{"labels":{"a/cluster":"x"}}`), secretWith("region", "eu02")
	for i, row := range []struct {
		object, after      client.Object
		finalizer, refused string
	}{
		{classWith("stackit", `{"labels":{`+strings.Join(clusters, ",")+`}}`), other, classFinalizer, ""},
		{classWith("stackit", `{"labels":{"a/cluster":"`+strings.Repeat("a", large)+`"}}`), other, classFinalizer, ""},
		{classWith("stackit", `{"region":"`+strings.Repeat("a", large)+`"}`), other, classFinalizer, classRegion},
		{many, other, classFinalizer, classRegion},
		{secretWith("region", strings.Repeat("a", largeSecret)), otherSecret, secretFinalizer, secretRegion},
		{secretWith("projectId", strings.Repeat("a", largeSecret)), otherSecret, secretFinalizer, secretProject},
		{manyOfSecret, otherSecret, secretFinalizer, secretRegion},
	} {
		name := fmt.Sprintf("large-%d", i)
		for _, object := range []client.Object{row.object, row.after} {
			object.SetNamespace(c.env.Namespace())
			object.SetName(name)
		}
		Expect(c.Create(ctx, row.object)).To(Succeed(), name)
		row.after.SetResourceVersion(row.object.GetResourceVersion())
		err := c.Update(ctx, row.after.DeepCopyObject().(client.Object), client.DryRunAll)
		if row.refused == "" {
			Expect(err).NotTo(HaveOccurred(), name)
		} else {
			Expect(err).To(MatchError(ContainSubstring(row.refused)), name)
		}
		c.expectFinalizerGoes(ctx, manager, row.object, row.finalizer, name)
	}
}

// expectFinalizerGoes has the manager and an administrator take a finalizer away and put it back, as
// both may, changes something that no policy is about, and deletes the object.
func (c *cluster) expectFinalizerGoes(
	ctx context.Context, manager client.Client, object client.Object, finalizer, name string,
) {
	GinkgoHelper()
	for _, user := range []client.Client{manager, c.Client} {
		controllerutil.RemoveFinalizer(object, finalizer)
		Expect(user.Update(ctx, object)).To(Succeed(), name)
		controllerutil.AddFinalizer(object, finalizer)
		Expect(user.Update(ctx, object)).To(Succeed(), name)
	}
	object.SetAnnotations(map[string]string{"an": "annotation"})
	Expect(c.Update(ctx, object)).To(Succeed(), name)
	Expect(c.Delete(ctx, object)).To(Succeed(), name)
	Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed(), name)
	object.SetFinalizers(nil)
	Expect(c.Update(ctx, object)).To(Succeed(), name)
	Expect(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))).To(BeTrue(), name)
}
