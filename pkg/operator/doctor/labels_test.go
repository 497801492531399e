// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/internal/testrig"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// examine lets a Doctor look at the rig, and returns what it found of a subject.
func examine(t *testing.T, r *testrig.Rig, subject string) report.Findings {
	t.Helper()
	r.MakeClusters()
	r.Access.Target = nil // fakes cannot be compared with each other
	doctor := &Doctor{Access: r.Access}
	doctor.Config.NoAuth = true
	return findingsOf(subject, doctor.Examine(t.Context()))
}

// examineServers is examine without the reads of the API that are not of servers: they wait
// for their turn.
func examineServers(t *testing.T, r *testrig.Rig, subject string) report.Findings {
	t.Helper()
	r.MakeClusters()
	doctor := &Doctor{Access: r.Access, servers: map[*account.Account][]provider.Server{}}
	var problems []error
	if doctor.accounts, problems = doctor.Accounts(t.Context()); len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, in := range doctor.accounts {
		(&accountCheck{Doctor: doctor, Account: in}).examineServers(t.Context())
	}
	doctor.examineClasses(t.Context())
	doctor.examineMachines(t.Context())
	doctor.examineClusterLabels(t.Context())
	doctor.examineOpenStack(t.Context())
	return findingsOf(subject, doctor.findings)
}

func findingsOf(subject string, all report.Findings) (some report.Findings) {
	for _, found := range all {
		if strings.HasPrefix(found.Subject, subject) {
			some = append(some, found)
		}
	}
	return some
}

const labelSubject = "cluster label " + testrig.ClusterKey + "=" + testrig.OwnCluster

// Which servers are orphans is account's to say; doctor groups them.
func TestServersWithoutMachines(t *testing.T) {
	labels := func(machine, class string) map[string]string {
		return testrig.Labels(machine, class, testrig.OwnCluster)
	}
	const fine = "no other namespace uses it in this project, and no server of another cluster carries it"
	for name, row := range map[string]struct {
		add  func(*testrig.Rig)
		want string
	}{
		"none":             {func(*testrig.Rig) {}, fine},
		"of a class":       {func(r *testrig.Rig) { r.Server("lost", labels("lost", "worker")) }, "on 1 server of a MachineClass here but no Machine: lost"},
		"of no class here": {func(r *testrig.Rig) { r.Server("theirs", labels("theirs", "large")) }, `on 1 server of no MachineClass and no Machine here: theirs (class "large")`},
		"on its way": {func(r *testrig.Rig) {
			if err := r.Cloud.SetServerStatus(r.Server("old", labels("old", "large")), iaasmock.StatusDeleting, ""); err != nil {
				r.T.Fatal(err)
			}
		}, "on 1 server of no Machine, being deleted already: old"},
		"not the manager's": {func(r *testrig.Rig) { r.Server("bastion", map[string]string{testrig.ClusterKey: testrig.OwnCluster}) }, fine},
		"of another cluster by a second label": {func(r *testrig.Rig) {
			all := labels("other", "worker")
			all["other.io/cluster"] = "another"
			r.Server("other", all)
		}, fine},
		"of a Machine by its own name": {func(r *testrig.Rig) {
			r.Server("worker-1", labels("another", "worker"))
			r.Add(testrig.Machine("worker-1", "worker", ""))
		}, fine},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			row.add(r)
			got := examineServers(t, r, labelSubject)
			if len(got) != 1 || got[0].Found != row.want || got[0].ProjectID != iaasmock.DefaultProjectID {
				t.Errorf("got %+v, want %q", got, row.want)
			}
		})
	}
}

func TestMachinesThatNameTheirServersOtherwise(t *testing.T) {
	for name, row := range map[string]struct {
		providerID func(id string) string
		managed    bool
		want       string
	}{
		"as the driver":      {func(id string) string { return "stackit://" + iaasmock.DefaultProjectID + "/" + id }, true, ""},
		"as OpenStack":       {func(id string) string { return "openstack:///" + id }, true, `1 server named by a ProviderID of another form than the driver's: shoot--demo/worker-1 ("openstack:///<id>")`},
		"in one part":        {func(id string) string { return "stackit://" + id }, true, `1 server named by a ProviderID of another form than the driver's: shoot--demo/worker-1 ("stackit://<id>")`},
		"that is not listed": {func(id string) string { return "openstack:///" + id }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := testrig.New(t)
			labels := testrig.Labels("worker-1", "worker", testrig.OwnCluster)
			if !row.managed {
				labels = map[string]string{testrig.ClusterKey: testrig.OwnCluster}
			}
			id := r.Server("worker-1", labels)
			machine := testrig.Machine("worker-1", "worker", "")
			machine.Spec.ProviderID = row.providerID(id)
			r.Add(machine)
			got := examineServers(t, r, "Machines")
			switch {
			case row.want == "" && len(got) > 0:
				t.Errorf("got %+v, want nothing", got)
			case row.want == "":
			case len(got) != 1 || got[0].Verdict != report.Wrong || strings.ReplaceAll(got[0].Found, id, "<id>") != row.want ||
				got[0].Remedy != account.RemedyListedOtherwise || got[0].Region != iaasmock.DefaultRegion:
				t.Errorf("got %+v, want %q", got, row.want)
			}
		})
	}
}

func TestManyMachinesThatNameTheirServersOtherwise(t *testing.T) {
	r := testrig.New(t)
	for _, name := range []string{"worker-1", "worker-2", "worker-3", "worker-4", "worker-5"} {
		machine := testrig.Machine(name, "worker", "")
		machine.Spec.ProviderID = "openstack:///" + r.Server(name, testrig.Labels(name, "worker", testrig.OwnCluster))
		r.Add(machine)
	}
	got := examineServers(t, r, "Machines")
	if len(got) != 1 || !strings.HasPrefix(got[0].Found, "5 servers named") || !strings.HasSuffix(got[0].Found, "and 2 more") {
		t.Errorf("got %+v, want one finding that names some", got)
	}
}

// Servers that were not read are no proof that nobody else uses the label.
func TestServersThatCannotBeRead(t *testing.T) {
	r := testrig.New(t)
	r.Cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusForbidden})
	got := examineServers(t, r, labelSubject)
	if len(got) != 1 || got[0].Verdict != report.Unknown || !strings.Contains(got[0].Found, "was not looked at") {
		t.Errorf("got %+v, want that it is unknown", got)
	}
}

// What a program reads says of which account it is.
func TestFindingsOfSeveralAccounts(t *testing.T) {
	r := testrig.New(t)
	r.Add(&corev1.Secret{ObjectMeta: testrig.Class("elsewhere", nil).ObjectMeta, Data: map[string][]byte{
		"projectId": []byte(testrig.OtherProject), "region": []byte(iaasmock.DefaultRegion), "networkId": []byte(iaasmock.DefaultNetworkID), "userData": nil,
	}}, classWithSecret("large", "elsewhere"))
	accounts := 0
	for _, found := range examine(t, r, "") {
		where := strings.Contains(found.Subject, "(project "+found.ProjectID+", "+found.Region+")")
		switch name, _, _ := strings.Cut(found.Subject, " "); name {
		case "credentials":
			accounts++
			fallthrough
		case "service-account", "token", "endpoint", "clock", "project", "region", "reads:":
			if !where {
				t.Errorf("%+v: want the account", found)
			}
		case "manager", "sidecar", "lease", "CRD":
			if found.ProjectID != "" || found.Region != "" {
				t.Errorf("%+v: want no account", found)
			}
		case "MachineClass":
			if want := map[string]string{"MachineClass shoot--demo/worker": iaasmock.DefaultProjectID, "MachineClass shoot--demo/large": testrig.OtherProject}; found.ProjectID != want[found.Subject] {
				t.Errorf("%+v: want project %s", found, want[found.Subject])
			}
		}
	}
	if accounts != 2 {
		t.Errorf("got %d accounts, want 2", accounts)
	}
}

func classWithSecret(name, secret string) *v1alpha1.MachineClass {
	class := testrig.Class(name, nil)
	class.SecretRef.Name = secret
	return class
}
