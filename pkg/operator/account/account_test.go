// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestWhichAccount(t *testing.T) {
	direct := func(project, region, path string) *account.Direct {
		return &account.Direct{ProjectID: project, Region: region, KeyPath: path, Origin: "no Secret, but flags"}
	}
	const ofClass = iaasmock.DefaultProjectID + " %s Secret shoot--demo/credentials of MachineClass worker"
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
			want: "MachineClass worker: Secret shoot--demo/credentials of MachineClass worker: region: Invalid"},
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

const serverID = "20000000-0000-4000-8000-000000000001"

func TestWhoseIs(t *testing.T) {
	own := []map[string]string{{"other.io/cluster": "x"}, {testrig.ClusterKey: testrig.OwnCluster}}
	with := func(labels map[string]string, key, value string) map[string]string {
		labels[key] = value
		return labels
	}
	ownLabels := func() map[string]string { return testrig.Labels("lost", "worker", testrig.OwnCluster) }
	named := func(providerID string) []v1alpha1.Machine {
		machine := testrig.Machine("another", "worker", "")
		machine.Spec.ProviderID = providerID
		return []v1alpha1.Machine{*machine}
	}
	lost := []v1alpha1.Machine{*testrig.Machine("lost", "worker", "")}
	for name, row := range map[string]struct {
		server   provider.Server
		machines []v1alpha1.Machine
		want     account.Whose
	}{
		"no Machine":    {provider.Server{Labels: ownLabels()}, nil, account.Orphan},
		"being deleted": {provider.Server{Labels: ownLabels(), Status: "DELETING"}, nil, account.Orphan},
		"the same value under two keys": {provider.Server{Labels: with(ownLabels(), "a.io/cluster", testrig.OwnCluster)}, nil,
			account.Orphan},
		"another value under two keys": {provider.Server{Labels: with(ownLabels(), "a.io/cluster", "x")}, nil,
			account.OtherCluster},
		"an empty value under two keys": {provider.Server{Labels: with(ownLabels(), "a.io/cluster", "")}, nil,
			account.OtherCluster},
		"another cluster": {provider.Server{Labels: testrig.Labels("lost", "worker", "x")}, nil, account.OtherCluster},
		"no cluster":      {provider.Server{Labels: testrig.Labels("lost", "worker", "")}, nil, account.OtherCluster},
		"no machine label": {provider.Server{Labels: with(ownLabels(), provider.StackitMachineLabel, "")}, nil,
			account.Unmanaged},
		"no class label": {provider.Server{Labels: with(ownLabels(), provider.StackitMachineClassLabel, "")}, nil,
			account.Unmanaged},
		"named by the label": {provider.Server{Labels: ownLabels()}, lost, account.OfMachine},
		"named by the server's own name": {
			provider.Server{Name: "lost", Labels: with(ownLabels(), provider.StackitMachineLabel, "x")}, lost,
			account.OfMachine},
		"named by ID": {provider.Server{ID: serverID, Labels: ownLabels()},
			named("stackit://" + iaasmock.DefaultProjectID + "/" + serverID), account.OfMachine},
		"named by OpenStack's ID": {provider.Server{ID: serverID, Labels: ownLabels()},
			named("openstack:///eu01/" + serverID), account.OfMachine},
		"named in no form that is known": {provider.Server{ID: serverID, Labels: ownLabels()}, named("x-" + serverID + "/y"),
			account.OfMachine},
		"named, and unmanaged": {provider.Server{ID: serverID}, named("stackit://" + serverID), account.OfMachine},
	} {
		t.Run(name, func(t *testing.T) {
			if got := account.WhoseIs(&row.server, own, account.NewOwners(row.machines)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestNobodyIsAnOrphanWhereNotAllMachinesWereRead(t *testing.T) {
	owners := account.NewOwners([]v1alpha1.Machine{*testrig.Machine("known", "worker", "")})
	owners.Incomplete = true
	for name, want := range map[string]account.Whose{"known": account.OfMachine, "lost": account.Undetermined} {
		server := &provider.Server{Labels: testrig.Labels(name, "worker", testrig.OwnCluster)}
		clusters := []map[string]string{{testrig.ClusterKey: testrig.OwnCluster}}
		if got := account.WhoseIs(server, clusters, owners); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
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
