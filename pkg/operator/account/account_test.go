// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestWhichAccount(t *testing.T) {
	direct := func(project, region, path string) *account.Direct {
		return &account.Direct{ProjectID: project, Region: region, KeyPath: path, Origin: "no Secret, but flags"}
	}
	const ofClass = iaasmock.DefaultProjectID + " %s the Secret of MachineClass shoot--demo/worker"
	for name, row := range map[string]struct {
		secret, region string
		direct         *account.Direct
		// want is the project, region and origin, or the error.
		want string
	}{
		"the classes'":                 {want: fmt.Sprintf(ofClass, "eu01")},
		"the classes', another region": {region: "eu02", want: fmt.Sprintf(ofClass, "eu02")},
		"a Secret": {secret: "other",
			want: testrig.OtherProject + " eu01 Secret shoot--demo/other (--secret)"},
		"a Secret beats flags": {secret: "shoot--demo/other", direct: direct("x", "", ""),
			want: testrig.OtherProject + " eu01 Secret"},
		"a Secret that does not exist": {secret: "nope", want: "Secret shoot--demo/nope does not exist"},
		"flags": {direct: direct(testrig.OtherProject, "eu02", ""),
			want: testrig.OtherProject + " eu02 no Secret, but flags"},
		"flags, another region": {direct: direct(testrig.OtherProject, "eu02", ""), region: "eu01",
			want: testrig.OtherProject + " eu01 "},
		"flags, the key is no file": {direct: direct(testrig.OtherProject, "eu02", "/nowhere"),
			want: "reading the service-account key: open /nowhere: no such file"},
		"a region that is none": {region: "/",
			want: "MachineClass worker: the Secret of MachineClass shoot--demo/worker: region: Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			r.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testrig.Namespace, Name: "other"},
				Data: map[string][]byte{
					"projectId": []byte(testrig.OtherProject), "region": []byte("eu01"),
				}})
			r.MakeClusters()
			r.Access.SecretName, r.Access.Region, r.Access.Direct = row.secret, row.region, row.direct
			accounts, problems := r.Access.Accounts(t.Context(), testrig.Namespace)
			got := ""
			for _, each := range accounts {
				got += each.Session.ProjectID + " " + each.Region + " " + each.Origin
			}
			for _, problem := range problems {
				got += problem.Error()
			}
			if len(accounts)+len(problems) != 1 || !strings.HasPrefix(got, row.want) {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestClusters(t *testing.T) {
	class := func(provider string, labels map[string]any) *account.Class {
		made := testrig.Class("worker", map[string]any{"labels": labels})
		made.Provider = provider
		return account.NewClass(made)
	}
	got := account.Clusters([]*account.Class{
		class("", map[string]any{testrig.ClusterKey: "x", "a": "b"}),
		class("stackit", map[string]any{testrig.ClusterKey: "x"}),
		class("openstack", map[string]any{testrig.ClusterKey: "foreign"}),
		class("", map[string]any{testrig.ClusterKey: "not valid"}), class("", nil),
	})
	if want := []map[string]string{{testrig.ClusterKey: "x"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
