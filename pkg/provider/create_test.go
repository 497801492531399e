// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineMakesARunningServer(t *testing.T) {
	r := newRig(t)
	response := r.mustCreate(machine("m1"))

	server := r.onlyServer()
	if server.Status != iaasmock.StatusActive || server.Name != "m1" {
		t.Errorf("server is %s %s, want m1 ACTIVE", server.Name, server.Status)
	}
	wantLabels := map[string]string{
		provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a", clusterLabel: "shoot-a",
	}
	if diff := cmp.Diff(wantLabels, server.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if want := "stackit://" + iaasmock.DefaultProjectID + "/" + server.ID; response.ProviderID != want {
		t.Errorf("ProviderID is %s, want %s", response.ProviderID, want)
	}
	if response.NodeName != "m1" {
		t.Errorf("NodeName is %s, want m1", response.NodeName)
	}
	nic := nicOf(t, r, server)
	if diff := cmp.Diff([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nic.IPv4}}, response.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func nicOf(t *testing.T, r *rig, server iaasmock.Server) iaasmock.NIC {
	t.Helper()
	for _, nic := range r.cloud.NICs() {
		if nic.ServerID == server.ID {
			return nic
		}
	}
	t.Fatalf("server %s has no NIC", server.ID)
	return iaasmock.NIC{}
}

// Once it is known how long the servers of a class boot, they are read seldom until
// then: fifteen times the boot is not three times the reads.
func TestCreateMachineLearnsHowLongServersBoot(t *testing.T) {
	for boot, row := range map[time.Duration]struct{ first, second int }{
		12 * time.Second: {8, 5},
		time.Minute:      {24, 13},
		3 * time.Minute:  {37, 17},
	} {
		r := newRig(t, iaasmock.WithBootDuration(boot))
		r.mustCreate(machine("m1"))
		first := r.cloud.CallCounts()["GetServer"]
		r.cloud.ResetCalls()
		r.mustCreate(machine("m2"))
		second := r.cloud.CallCounts()["GetServer"]
		if first > row.first || second > row.second {
			t.Errorf("with a boot of %s the servers were read %d and %d times, want at most %d and %d", boot, first, second, row.first, row.second)
		}
	}
}

// Once the server runs there is nothing left to read: its NICs had their addresses
// before.
func TestCreateMachineReadsTheNICsWhileTheServerBoots(t *testing.T) {
	r := newRig(t)
	r.cloud.ResetCalls()
	if created := r.mustCreate(machine("m1")); len(created.Addresses) != 1 {
		t.Errorf("the addresses are %v, want one", created.Addresses)
	}
	calls := r.cloud.Calls()
	if last := calls[len(calls)-1]; last.Operation != "GetServer" {
		t.Errorf("the last call is %s, want the GetServer that shows the server ACTIVE", last.Operation)
	}
	if reads := r.cloud.CallCounts()["ListServerNICs"]; reads != 1 {
		t.Errorf("the NICs were read %d times, want once", reads)
	}
}

func TestCreateMachineAgainAdoptsItsOwnServer(t *testing.T) {
	r := newRig(t)
	first := r.mustCreate(machine("m1"))
	second := r.mustCreate(machine("m1"))
	if first.ProviderID != second.ProviderID {
		t.Errorf("the second call answers %s, want %s", second.ProviderID, first.ProviderID)
	}
	r.onlyServer()
}

func TestCreateMachineAfterARestartAdoptsTheServer(t *testing.T) {
	r := newRig(t)
	first := r.mustCreate(machine("m1"))
	r.restart()
	if second := r.mustCreate(machine("m1")); first.ProviderID != second.ProviderID {
		t.Errorf("after the restart the answer is %s, want %s", second.ProviderID, first.ProviderID)
	}
	r.onlyServer()
}

// A predecessor asked for a server and was killed; the list does not show it yet.
func TestCreateMachineWaitsForWhatAPredecessorMayHaveAskedFor(t *testing.T) {
	r := newRig(t, iaasmock.WithListLag(20*time.Second))
	m := machine("m1")
	m.CreationTimestamp = metav1.NewTime(r.clock.Now())
	first := r.mustCreate(m)
	restarted := r.clock.Now().Add(time.Second)
	r.restart(provider.WithActingSince(func() time.Time { return restarted }))
	if second := r.mustCreate(m); first.ProviderID != second.ProviderID {
		t.Errorf("after the restart the answer is %s, want %s", second.ProviderID, first.ProviderID)
	}
	r.onlyServer()
}

// The process stands still, and another one leads meanwhile: what that one may have
// asked for does not show yet.
func TestCreateMachineOfAPausedProcessWaits(t *testing.T) {
	r := newRig(t)
	began, resumed := r.clock.Now().Add(-time.Hour), r.clock.Now().Add(10*time.Second)
	r.restart(provider.WithActingSince(func() time.Time {
		if r.cloud.CallCounts()["ListServers"] > 0 {
			return resumed
		}
		return began
	}))
	m := machine("m1")
	m.CreationTimestamp = metav1.NewTime(r.clock.Now())
	r.mustCreate(m)
	if made, earliest := r.onlyServer().CreatedAt, resumed.Add(provider.DefaultSettle); made.Before(earliest) {
		t.Errorf("the server was asked for %s too early", earliest.Sub(made))
	}
}

func TestCreateMachineWhoseAnswerIsLostMakesOneServer(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"connection reset after the server was made": {DropAfter: true},
		"gateway gave up waiting":                    {Executed: true, Status: http.StatusGatewayTimeout, Body: "<html>timeout</html>", ContentType: "text/html"},
		"internal error although it was made":        {Executed: true, Status: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second))
			fault.Operation, fault.Count = "CreateServer", 1
			r.cloud.Inject(fault)
			if _, err := r.create(machine("m1")); err != nil {
				wantCode(t, err, codes.Unavailable)
				r.mustCreate(machine("m1"))
			}
			r.onlyServer()
		})
	}
}

// The request never reached the cloud, but nobody can tell: no second one is sent
// before an accepted one would have shown.
func TestCreateMachineRepeatsALostRequestOnlyAfterSettling(t *testing.T) {
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropBefore: true})
	start := r.clock.Now()
	_, err := r.create(machine("m1"))
	wantCode(t, err, codes.Unavailable)
	if waited := r.clock.Since(start); waited < provider.DefaultSettle {
		t.Errorf("gave up after %s, want at least %s", waited, provider.DefaultSettle)
	}
	r.mustCreate(machine("m1"))
	r.onlyServer()
}

func TestCreateMachineKeepsOneOfSeveralServers(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.makeServer("m1", nil)
	}
	broken := r.makeServer("m1", nil)
	if err := r.cloud.SetServerStatus(broken, iaasmock.StatusError, "broken"); err != nil {
		t.Fatal(err)
	}
	response := r.mustCreate(machine("m1"))
	if kept := r.onlyServer(); response.ProviderID != "stackit://"+iaasmock.DefaultProjectID+"/"+kept.ID || kept.ID == broken {
		t.Errorf("kept %s, answered %s", kept.ID, response.ProviderID)
	}
}

// makeServer makes a server as the driver would, but by another's hand.
func (r *rig) makeServer(name string, change func(labels map[string]any)) string {
	r.t.Helper()
	labels := map[string]any{
		provider.StackitMachineLabel: name, provider.StackitMachineClassLabel: r.class.Name, clusterLabel: "shoot-a",
	}
	if change != nil {
		change(labels)
	}
	network, image, remove := iaasmock.DefaultNetworkID, iaasmock.DefaultImageID, true
	size := int64(20)
	server, err := r.session().API.CreateServer(r.t.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion).
		CreateServerPayload(iaas.CreateServerPayload{
			Name: name, MachineType: iaasmock.DefaultMachineType, Labels: labels,
			BootVolume: &iaas.BootVolume{Size: &size, DeleteOnTermination: &remove, Source: &iaas.BootVolumeSource{Type: "image", Id: image}},
			Networking: iaas.CreateServerPayloadAllOfNetworking{CreateServerNetworking: &iaas.CreateServerNetworking{NetworkId: &network}},
		}).Execute()
	if err != nil {
		r.t.Fatal(err)
	}
	return server.GetId()
}

func TestCreateMachineLeavesOthersServersAlone(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another cluster's":        func(labels map[string]any) { labels[clusterLabel] = "shoot-b" },
		"another machine's":        func(labels map[string]any) { labels[provider.StackitMachineLabel] = "m2" },
		"one without our labels":   func(labels map[string]any) { clear(labels); labels["made-by"] = "hand" },
		"one of no cluster at all": func(labels map[string]any) { delete(labels, clusterLabel) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			foreign := r.makeServer("m1", change)
			response := r.mustCreate(machine("m1"))
			if response.ProviderID == "stackit://"+iaasmock.DefaultProjectID+"/"+foreign {
				t.Error("a foreign server was adopted")
			}
			if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
				t.Fatal(err)
			}
			if left := r.onlyServer(); left.ID != foreign {
				t.Errorf("server %s is left, want the foreign one, %s", left.ID, foreign)
			}
		})
	}
}

func TestCreateMachineWhoseServerFails(t *testing.T) {
	for name, row := range map[string]struct {
		message string
		want    codes.Code
	}{
		"no capacity":      {"No valid host was found. There are not enough hosts available.", codes.ResourceExhausted},
		"quota at the end": {"Quota exceeded for volumes", codes.ResourceExhausted},
		"anything else":    {"Build of instance aborted: Failed to allocate the network(s)", codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, FinalStatus: iaasmock.StatusError, ErrorMessage: row.message})
			_, err := r.create(machine("m1"))
			wantCode(t, err, row.want)
			r.wantNothingLeft()
		})
	}
}

func TestCreateMachineRemembersExhaustion(t *testing.T) {
	r := newRig(t)
	remove := r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusForbidden,
		Body: `{"code":403,"msg":"Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}`})
	_, err := r.create(machine("m1"))
	wantCode(t, err, codes.ResourceExhausted)
	remove()

	r.cloud.ResetCalls()
	_, err = r.create(machine("m2"))
	wantCode(t, err, codes.ResourceExhausted)
	if posts := r.cloud.CallCounts()["CreateServer"]; posts != 0 {
		t.Errorf("%d requests for a server within the minute, want none", posts)
	}
	r.setSpec(func(spec map[string]any) { spec["machineType"] = "t1.1" })
	r.mustCreate(machine("m3"))

	r.setSpec(nil)
	r.clock.Step(61 * time.Second)
	r.mustCreate(machine("m2"))
}

func TestCreateMachineWhoseServerIsDeletedUnderIt(t *testing.T) {
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, NeverBoots: true})
	done := make(chan error)
	go func() {
		_, err := r.create(machine("m1"))
		done <- err
	}()
	r.eventually(func() bool { return len(r.cloud.Servers()) > 0 })
	if err := r.cloud.RemoveServer(r.onlyServer().ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-done, codes.Aborted)
	r.mustCreate(machine("m1"))
	r.onlyServer()
}

func TestCreateMachineSurvivesFailedReads(t *testing.T) {
	r := newRig(t)
	r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Count: 8, Status: http.StatusServiceUnavailable})
	r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Count: 1, Status: http.StatusNotFound, Body: `{"code":404,"msg":"server not found"}`})
	r.cloud.Inject(iaasmock.Fault{Operation: "ListServerNICs", Count: 5, DropBefore: true})
	r.mustCreate(machine("m1"))
	r.onlyServer()
}

// A failed read says nothing about a server that no list shows yet.
func TestCreateMachineOfAYoungServerSurvivesFailedReads(t *testing.T) {
	for name, fault := range map[string]iaasmock.Fault{
		"forbidden":       {Status: http.StatusForbidden},
		"internal error":  {Status: http.StatusInternalServerError},
		"a gateway's 404": {Status: http.StatusNotFound, Body: "<html>", ContentType: "text/html"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, iaasmock.WithListLag(20*time.Second))
			fault.Operation, fault.Count = "GetServer", 2
			r.cloud.Inject(fault)
			r.mustCreate(machine("m1"))
			r.onlyServer()
		})
	}
}

func TestCreateMachineWithoutAClusterLabelGoesByTheClassToo(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
	foreign := r.makeServer("m1", func(labels map[string]any) {
		delete(labels, clusterLabel)
		labels[provider.StackitMachineClassLabel] = "class-of-another-cluster"
	})
	created := r.mustCreate(machine("m1"))
	if err := r.delete(withID(r.deleted(machine("m1")), created.ProviderID)); err != nil {
		t.Fatal(err)
	}
	if left := r.onlyServer(); left.ID != foreign || left.Status == iaasmock.StatusDeleting {
		t.Errorf("%s %s is left, want the foreign one, %s", left.Status, left.ID, foreign)
	}
}

func TestCreateMachineSendsEveryField(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) {
		delete(spec, "imageId")
		spec["labels"] = map[string]any{clusterLabel: "shoot-a", "team": "a", provider.StackitMachineLabel: "not-overridable", "unset": nil}
		spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
		spec["securityGroups"] = []any{iaasmock.DefaultSecurityGroupName}
		spec["userData"] = "#cloud-config from the class"
		spec["bootVolume"] = map[string]any{"size": 25, "performanceClass": "storage_premium_perf4",
			"source": map[string]any{"type": "image", "id": iaasmock.DefaultImageID}}
		spec["volumes"] = []any{iaasmock.DefaultVolumeID}
		spec["keypairName"] = iaasmock.DefaultKeypairName
		spec["availabilityZone"] = iaasmock.DefaultAvailabilityZone
		spec["affinityGroup"] = iaasmock.DefaultAffinityGroupID
		spec["serviceAccountMails"] = []any{"worker@sa.stackit.cloud"}
		spec["agent"] = map[string]any{"provisioned": false}
		spec["metadata"] = map[string]any{"purpose": "test", "cost-center": 4711, "spot": false, "unset": nil}
	})
	r.mustCreate(machine("m1"))

	got := r.onlyServer()
	boot := *got.BootVolume
	boot.ID = ""
	if diff := cmp.Diff(iaasmock.BootVolume{Size: 25, PerformanceClass: "storage_premium_perf4", DeleteOnTermination: true,
		SourceType: "image", SourceID: iaasmock.DefaultImageID}, boot); diff != "" {
		t.Errorf("boot volume (-want +got):\n%s", diff)
	}
	no := false
	want := iaasmock.Server{
		Labels: map[string]string{clusterLabel: "shoot-a", "team": "a",
			provider.StackitMachineLabel: "m1", provider.StackitMachineClassLabel: "class-a"},
		Metadata: map[string]string{"purpose": "test", "cost-center": "4711", "spot": "false"}, UserData: []byte("#cloud-config from the class"),
		MachineType: iaasmock.DefaultMachineType, AvailabilityZone: iaasmock.DefaultAvailabilityZone,
		AffinityGroup: iaasmock.DefaultAffinityGroupID, KeypairName: iaasmock.DefaultKeypairName,
		SecurityGroups: []string{iaasmock.DefaultSecurityGroupID}, ServiceAccountMails: []string{"worker@sa.stackit.cloud"},
		AgentProvisioned: &no, NICIDs: []string{iaasmock.DefaultNICID},
		VolumeIDs: []string{got.BootVolume.ID, iaasmock.DefaultVolumeID},
	}
	seen := iaasmock.Server{
		Labels: got.Labels, Metadata: got.Metadata, UserData: got.UserData, MachineType: got.MachineType,
		AvailabilityZone: got.AvailabilityZone, AffinityGroup: got.AffinityGroup, KeypairName: got.KeypairName,
		SecurityGroups: got.SecurityGroups, ServiceAccountMails: got.ServiceAccountMails,
		AgentProvisioned: got.AgentProvisioned, NICIDs: got.NICIDs, VolumeIDs: got.VolumeIDs,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
}

func TestCreateMachineFillsInFromTheSecret(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) { delete(spec, "networking") })
	r.secret.Data["region"] = []byte(iaasmock.DefaultAvailabilityZone)
	r.secret.Data["networkId"] = []byte(iaasmock.DefaultNetworkID)
	r.mustCreate(machine("m1"))
	server := r.onlyServer()
	if server.NetworkID != iaasmock.DefaultNetworkID || server.AvailabilityZone != iaasmock.DefaultAvailabilityZone ||
		string(server.UserData) != "#cloud-config from the Secret" {
		t.Errorf("network %q, zone %q, userData %q: want the Secret's", server.NetworkID, server.AvailabilityZone, server.UserData)
	}
}

func TestCreateMachineFromAnExistingVolumeKeepsIt(t *testing.T) {
	r := newRig(t)
	r.setSpec(func(spec map[string]any) {
		delete(spec, "imageId")
		spec["bootVolume"] = map[string]any{"source": map[string]any{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
	})
	response := r.mustCreate(machine("m1"))
	if r.onlyServer().BootVolume.DeleteOnTermination {
		t.Error("the existing volume would be deleted with its server")
	}
	if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
		t.Fatal(err)
	}
	for _, volume := range r.cloud.Volumes() {
		if volume.ID == iaasmock.DefaultBootVolumeID {
			return
		}
	}
	t.Error("the existing volume is gone")
}

// A predecessor asked for a server that failed, and for another one that is slow
// to appear: the first one's removal must not hide the second.
func TestCreateMachineLooksAgainAfterRemovingAFailedServer(t *testing.T) {
	r := newRig(t)
	m := machine("m1")
	m.CreationTimestamp = metav1.NewTime(r.clock.Now())
	if err := r.cloud.SetServerStatus(r.makeServer("m1", nil), iaasmock.StatusError, "broken"); err != nil {
		t.Fatal(err)
	}
	restarted := r.clock.Now().Add(time.Second)
	r.restart(provider.WithActingSince(func() time.Time { return restarted }))
	done := make(chan error)
	go func() {
		_, err := r.create(m)
		done <- err
	}()
	r.eventually(func() bool {
		servers := r.cloud.Servers()
		return len(servers) == 0 || servers[0].Status == iaasmock.StatusDeleting
	})
	late := r.makeServer("m1", nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if kept := r.onlyServer(); kept.ID != late {
		t.Errorf("%s is left, want %s", kept.ID, late)
	}
}

func TestParallelCreateMachineMakesOneServer(t *testing.T) {
	r := newRig(t)
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := r.create(machine("m1"))
			errs <- err
		}()
	}
	for range 5 {
		if err := <-errs; err != nil {
			wantCode(t, err, codes.Aborted)
		}
	}
	r.onlyServer()
}
