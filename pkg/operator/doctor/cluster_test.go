// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/check"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// clinic is a rig whose user data looks right.
type clinic struct{ *testrig.Rig }

func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{testrig.New(t)}
	c.secret().Data["userData"] = []byte("#cloud-config\n# canary\n")
	return c
}

// examine looks at everything.
func (c *clinic) examine(t *testing.T) *Result {
	t.Helper()
	c.MakeClusters()
	return (&Doctor{Access: c.Access}).Examine(t.Context())
}

// remove takes objects away.
func (c *clinic) remove(gone ...client.Object) {
	for _, each := range gone {
		for i, object := range c.Objects {
			if object == each {
				c.Objects = append(c.Objects[:i:i], c.Objects[i+1:]...)
				break
			}
		}
	}
}

func (c *clinic) secret() *corev1.Secret        { return c.Objects[0].(*corev1.Secret) }
func (c *clinic) class() *v1alpha1.MachineClass { return c.Objects[1].(*v1alpha1.MachineClass) }

// otherClass adds a class of another namespace with the same cluster label.
func (c *clinic) otherClass() *v1alpha1.MachineClass {
	class := testrig.Class("theirs", map[string]any{"labels": map[string]any{testrig.ClusterKey: testrig.OwnCluster}})
	class.Namespace = "other"
	c.Add(class)
	return class
}

// refuse makes reads of a kind fail.
func (c *clinic) refuse(err error, isOne func(client.ObjectList, *client.ListOptions) bool) {
	c.Funcs = interceptor.Funcs{List: func(
		ctx context.Context, reader client.WithWatch, list client.ObjectList, options ...client.ListOption,
	) error {
		if isOne(list, (&client.ListOptions{}).ApplyOptions(options)) {
			return err
		}
		return reader.List(ctx, list, options...)
	}}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	const subject = "MachineClass shoot--demo/worker: "
	for name, row := range map[string]struct {
		spoil func(*clinic)
		code  int
		says  []string
	}{
		"nothing": {func(*clinic) {}, 0, []string{"fine     " + subject + "valid, with its Secret\n",
			"not tried: whether manager and sidecar run", "not tried: POST, PATCH and DELETE: "}},
		"a class without userData": {func(c *clinic) { delete(c.secret().Data, "userData") }, 1,
			[]string{"wrong    Secret shoot--demo/credentials: userData: Required value"}},
		"a class whose Secret does not exist": {func(c *clinic) { c.remove(c.secret()) }, 1,
			[]string{"wrong    " + subject + "Secret shoot--demo/credentials does not exist"}},
		"a class whose key is no JSON": {func(c *clinic) {
			c.Access.Sessions.Config.NoAuth, c.secret().Data["serviceAccountKey"] = false, []byte("{")
		}, 1, []string{"wrong    Secret shoot--demo/credentials: serviceAccountKey: Invalid value: "}},
		"a class with a wrong value": {func(c *clinic) { c.class().ProviderSpec.Raw = []byte(`{"machineType": "-"}`) }, 1,
			[]string{"wrong    " + subject + "providerSpec.machineType: ", "hint     " + subject + "providerSpec.labels: " +
				check.NoClusterLabel + "\n"}},
		"a class of another provider": {func(c *clinic) { c.class().Provider = "aws" }, 2,
			[]string{"hint     " + subject + `belongs to provider "aws"`, "unknown  credentials: there is no"}},
		"no class": {func(c *clinic) { c.remove(c.class()) }, 2,
			[]string{"hint     MachineClasses of namespace shoot--demo: there are none"}},
		"a cluster label of two namespaces": {func(c *clinic) { c.otherClass() }, 0,
			[]string{"hint     cluster label kubernetes.io/cluster=shoot--demo--laptop: also the label of "}},
		"classes that may not be read": {func(c *clinic) {
			c.refuse(forbidden, func(list client.ObjectList, _ *client.ListOptions) bool {
				_, isClasses := list.(*v1alpha1.MachineClassList)
				return isClasses
			})
		}, 2, []string{"unknown  MachineClasses of namespace shoot--demo: cannot be read: "}},
		"classes of other namespaces that may not be read": {func(c *clinic) {
			c.otherClass()
			c.refuse(forbidden, func(list client.ObjectList, options *client.ListOptions) bool {
				_, isClasses := list.(*v1alpha1.MachineClassList)
				return isClasses && options.Namespace == ""
			})
		}, 0, []string{"not tried: whether MachineClasses of other namespaces have this cluster label"}},
		"no cluster": {func(c *clinic) { c.Clusterless, c.Access.ControlError = true, errors.New("it is down") }, 2,
			[]string{"unknown  cluster with the Machines: not checked: it is down; name a kubeconfig", "not tried: the API: "}},
		"no cluster wanted": {func(c *clinic) { c.Clusterless = true }, 2,
			[]string{"not tried: the cluster with the Machines", "unknown  credentials: no credentials: set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t)
			row.spoil(c)
			expect(t, c.examine(t), row.code, row.says...)
		})
	}
}

// Findings about two accounts name theirs.
func TestTwoAccounts(t *testing.T) {
	c := newClinic(t)
	second := c.secret().DeepCopy()
	second.Name, second.Data["projectId"] = "second", []byte(testrig.OtherProject)
	class := testrig.Class("second", nil)
	class.SecretRef.Name = "second"
	c.Add(second, class)
	expect(t, c.examine(t), 0, "reads (project "+iaasmock.DefaultProjectID+" in eu01): servers: allowed",
		"reads (project "+testrig.OtherProject+" in eu01): servers: allowed")
}
