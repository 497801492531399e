// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Each life is a list of steps: a duration steps the clock; "delete" is a call, after "no:" one for a
// server that is not there; "set:" sets a state by hand, "fail:" lets the next deletion end in ERROR;
// "=" checks the state, and after "/" that it has never been ACTIVE.
func TestLivesOfServers(t *testing.T) {
	for name, steps := range map[string]string{
		"from creation to deletion": "=CREATING/new 9.999s =CREATING 1ms =ACTIVE delete =DELETING 4.999s =DELETING 1ms " +
			"=gone no:delete",
		"deleted while CREATING": "9s delete 2s =DELETING/new 3s =gone",
		"deleted twice":          "delete 4s delete 1s =gone",
		"deleted, in vain":       "fail:delete delete 4s delete 1s =ERROR delete =DELETING 5s =gone",
		"set by hand":            "set:ERROR 20s =ERROR delete =DELETING set:ERROR 10s =ERROR delete 5s =gone",
		"set before it boots":    "set:INACTIVE 20s =INACTIVE/new set:ACTIVE =ACTIVE delete 5s =gone",
	} {
		t.Run(name, func(t *testing.T) {
			m := openMock(t)
			id := m.create(nil)
			for _, step := range strings.Fields(steps) {
				m.live(id, step)
			}
		})
	}
}

// live takes one step of TestLivesOfServers.
func (m *mock) live(id, step string) {
	m.t.Helper()
	word, rest, _ := strings.Cut(step, ":")
	state, isNew := strings.CutSuffix(strings.TrimPrefix(step, "="), "/new")
	switch {
	case step == "delete" || step == "no:delete":
		want := map[bool]int{true: 204, false: 404}[step == "delete"]
		if status := m.status("DELETE", inRegion+"/servers/"+id, nil); status != want {
			m.t.Errorf("its deletion is answered with %d, want %d", status, want)
		}
	case word == "set":
		if err := m.cloud.SetServerStatus(id, rest, "broken"); err != nil {
			m.t.Error(err)
		}
	case word == "fail":
		inVain := iaasmock.Fault{Operation: "DeleteServer", Count: 1, FinalStatus: "ERROR", ErrorMessage: "broken"}
		m.cloud.Inject(inVain)
	case step == "=gone":
		m.wantStatus(id, "")
	case step[0] == '=':
		shown := m.wantStatus(id, state)
		if isNew && shown["launchedAt"] != nil || state == "ERROR" && shown["errorMessage"] != "broken" {
			m.t.Errorf("want %s, it is %v", step, shown)
		}
	default:
		d, err := time.ParseDuration(step)
		if err != nil {
			m.t.Fatal(err)
		}
		m.clock.Step(d)
	}
}

func TestHistory(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	m.clock.Step(boot)
	launched := m.wantStatus(id, "ACTIVE")["launchedAt"]
	for _, step := range []string{"set:INACTIVE", "5s", "set:ACTIVE", "5s"} {
		m.live(id, step)
	}
	if again := m.wantStatus(id, "ACTIVE")["launchedAt"]; launched == nil || again != launched {
		t.Errorf("launched at %v, then at %v", launched, again)
	}
	m.live(id, "delete")
	if got := len(m.cloud.Servers()); got != 1 {
		t.Errorf("%d servers while deleting", got)
	}
	m.clock.Step(remove)
	if _, there := m.cloud.Server(id); there || len(m.cloud.Servers()) > 0 ||
		m.cloud.SetServerStatus(id, "ACTIVE", "") == nil {
		t.Error("the gone server is still there")
	}
	if history := m.cloud.History(); history != (iaasmock.Totals{ServersCreated: 1, ServersDeleted: 1}) {
		t.Errorf("history %+v", history)
	}
}

func TestWhatSurvivesDeletion(t *testing.T) {
	bootOf := func(change object) object {
		boot := object{"size": 20, "source": object{"type": "image", "id": iaasmock.DefaultImageID}}
		for key, value := range change {
			boot[key] = value
		}
		return object{"bootVolume": boot}
	}
	fromVolume := object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
	fromVolumeDeleted := object{"source": fromVolume["source"], "deleteOnTermination": true}
	for _, row := range []struct {
		name          string
		change        object
		nics, volumes int // beside the catalogue's
	}{
		{name: "boot volume kept by default", change: bootOf(nil), volumes: 1},
		{name: "boot volume deleted on termination", change: bootOf(object{"deleteOnTermination": true})},
		{name: "existing boot volume kept", change: bootOf(fromVolume)},
		{name: "existing boot volume kept whatever was asked", change: bootOf(fromVolumeDeleted)},
		{name: "data volume kept", change: object{"volumes": []string{iaasmock.DefaultVolumeID}}},
		{name: "NIC of nicIds kept", change: object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}}},
		{name: "ephemeral disk", change: object{"imageId": iaasmock.DefaultImageID, "bootVolume": nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			nics, volumes := m.cloud.NICs(), m.cloud.Volumes()
			id := m.create(row.change)
			m.clock.Step(boot)
			m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
			m.clock.Step(remove)
			m.wantStatus(id, "")
			if got := len(m.cloud.NICs()) - len(nics); got != row.nics {
				t.Errorf("%d NICs are left, want %d", got, row.nics)
			}
			if got := len(m.cloud.Volumes()) - len(volumes); got != row.volumes {
				t.Errorf("%d volumes are left, want %d", got, row.volumes)
			}
			for _, nic := range m.cloud.NICs() {
				if nic.ServerID != "" {
					t.Errorf("NIC %s is still attached", nic.ID)
				}
			}
			for _, volume := range m.cloud.Volumes() {
				if volume.ServerID != "" || volume.Status != iaasmock.VolumeAvailable {
					t.Errorf("volume %s is %s of %q", volume.ID, volume.Status, volume.ServerID)
				}
			}
		})
	}
}

func TestEverythingAskedForArrives(t *testing.T) {
	m := openMock(t)
	id := m.create(object{
		"name": "worker-1", "availabilityZone": "eu01-2", "affinityGroup": iaasmock.DefaultAffinityGroupID,
		"keypairName": iaasmock.DefaultKeypairName, "userData": "I2Nsb3VkLWNvbmZpZwo=",
		"labels": object{"kubernetes.io/machine": "worker-1"}, "metadata": object{"a key": "v"},
		"securityGroups":      []string{iaasmock.DefaultSecurityGroupName},
		"serviceAccountMails": []string{"node@sa.stackit.cloud"},
		"agent":               object{"provisioned": true}, "volumes": []string{iaasmock.DefaultVolumeID},
		"networking": object{"networkId": iaasmock.DefaultDualStackNetworkID},
		"bootVolume": object{
			"size": 50, "performanceClass": "storage_premium_perf2", "deleteOnTermination": true,
			"source": object{"type": "snapshot", "id": iaasmock.DefaultSnapshotID},
		},
	})
	m.clock.Step(boot)
	got := m.server(id)
	yes := true
	want := iaasmock.Server{
		ID: id, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion, Name: "worker-1",
		Status: "ACTIVE", Labels: map[string]string{"kubernetes.io/machine": "worker-1"},
		Metadata: map[string]string{"a key": "v"}, UserData: []byte("#cloud-config\n"),
		MachineType: iaasmock.DefaultMachineType, AvailabilityZone: "eu01-2",
		AffinityGroup: iaasmock.DefaultAffinityGroupID, KeypairName: iaasmock.DefaultKeypairName,
		SecurityGroups: []string{iaasmock.DefaultSecurityGroupID}, ServiceAccountMails: []string{"node@sa.stackit.cloud"},
		AgentProvisioned: &yes, NetworkID: iaasmock.DefaultDualStackNetworkID,
		BootVolume: &iaasmock.BootVolume{
			ID: got.BootVolume.ID, Size: 50, PerformanceClass: "storage_premium_perf2", DeleteOnTermination: true,
			SourceType: "snapshot", SourceID: iaasmock.DefaultSnapshotID,
		},
		VolumeIDs: []string{got.BootVolume.ID, iaasmock.DefaultVolumeID}, NICIDs: got.NICIDs,
		CreatedAt: got.CreatedAt, LaunchedAt: got.CreatedAt.Add(boot), UpdatedAt: got.CreatedAt.Add(boot),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	nic, _ := m.nic(got.NICIDs[0])
	if nic.ServerID != id || !nic.MadeByServer || nic.IPv4 != "10.1.0.2" || nic.IPv6 != "fd00:1::2" ||
		!cmp.Equal(nic.SecurityGroups, want.SecurityGroups) {
		t.Errorf("its NIC is %+v", nic)
	}
	if volume, _ := m.volume(iaasmock.DefaultVolumeID); volume.ServerID != id || volume.Status != iaasmock.VolumeAttached {
		t.Errorf("its data volume is %+v", volume)
	}
}

func TestDeletionsOfRandomLength(t *testing.T) {
	const count = 40
	m := openMock(t, iaasmock.WithDeleteSpread(10*time.Second), iaasmock.WithSeed(3))
	for range count {
		m.want(204, "DELETE", inRegion+"/servers/"+m.create(nil), nil)
	}
	for _, row := range []struct {
		step        time.Duration
		least, most int // servers that are left
	}{{remove - 1, count, count}, {5 * time.Second, 10, 30}, {5*time.Second + 1, 0, 0}} {
		m.clock.Step(row.step)
		if left := len(m.list("/servers")); left < row.least || left > row.most {
			t.Errorf("%d servers are left, want %d to %d", left, row.least, row.most)
		}
	}
}

func TestLoadBalancer(t *testing.T) {
	m := openMock(t, iaasmock.WithLoadBalancer(), iaasmock.WithNICDelay(time.Hour), iaasmock.WithListLag(time.Minute))
	found := m.list("/servers?details=true")[0].(object)
	name := regexp.MustCompile(`^[a-z]+-[0-9a-f]+-[0-9a-f]{5}$`)
	if !name.MatchString(found["name"].(string)) || found["machineType"] != "t1.2" ||
		found["availabilityZone"] != "eu01-1" ||
		found["status"] != "ACTIVE" || len(found["labels"].(object)) > 0 || len(found["nics"].([]any)) != 1 {
		t.Errorf("it is %v", found)
	}
	if used := m.usage(); used["vcpu"] != 2 || used["nics"] != 2 {
		t.Errorf("the quotas count %v", used)
	}
	elsewhere := iaasmock.DefaultCatalogue()
	elsewhere.Resources = nil
	defer func() { _ = recover() }()
	iaasmock.New(iaasmock.WithCatalogue(elsewhere), iaasmock.WithLoadBalancer())
	t.Error("New took a catalogue without its machine type")
}

// The bounds are those that clients of STACKIT have measured.
func TestLive(t *testing.T) {
	m := openMock(t, iaasmock.WithLive(), iaasmock.WithSeed(3))
	if faults := m.cloud.Faults(); len(faults) != 1 || faults[0].Name != "rate-limited-source" {
		t.Errorf("faults are %v, want the limit of calls by its name", faults)
	}
	for range 8 {
		id := m.create(nil)
		nics := func() int { return len(m.list("/servers/" + id + "/nics")) }
		m.clock.Step(100*time.Second - 1)
		if m.wantStatus(id, "CREATING"); nics() > 0 {
			t.Error("it has a NIC after 100 s")
		}
		m.clock.Step(10 * time.Second)
		if m.wantStatus(id, "CREATING"); nics() != 1 {
			t.Error("it has no NIC after 110 s")
		}
		m.clock.Step(20*time.Second + 1)
		m.wantStatus(id, "ACTIVE")
		m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
		m.clock.Step(10*time.Second - 1)
		m.wantStatus(id, "DELETING")
		m.clock.Step(10*time.Second + 1)
		m.wantStatus(id, "")
	}
	left := m.list("/servers")
	if len(left) != 1 || left[0].(object)["machineType"] != "t1.2" ||
		left[0].(object)["labels"].(object)["stackit_project_id"] == nil {
		t.Errorf("in the end there are %v, want a load balancer's server", left)
	}
	m.clock.Step(time.Minute)
	for range 200 {
		m.list("/servers")
	}
	m.want(429, "GET", inRegion+"/servers", nil)
}

// nothing is the ID of nothing.
const nothing = "99999999-0000-4000-8000-000000000001"

// holdings lists the NICs and volumes with their servers and states.
func (m *mock) holdings() []string {
	var found []string
	for _, nic := range m.cloud.NICs() {
		found = append(found, nic.ID+" of "+nic.ServerID)
	}
	for _, volume := range m.cloud.Volumes() {
		found = append(found, volume.ID+" of "+volume.ServerID+" "+volume.Status)
	}
	return found
}

// bootOf is a change of serverBody.
func bootOf(size int, kind, id string) object {
	return object{"bootVolume": object{"size": size, "source": object{"type": kind, "id": id}}}
}

// A CreateServer that names what the server cannot have is accepted. If the server can
// run without it, it runs, otherwise it ends in ERROR; attachments to other servers stay.
func TestOrdersWithFlaws(t *testing.T) {
	const (
		noHost    = "No valid host was found. There are not enough hosts available."
		noNetwork = "aborted: Failed to allocate the network(s), not rescheduling."
		disk      = iaasmock.DefaultVolumeID
		bootDisk  = iaasmock.DefaultBootVolumeID
	)
	networkOf := func(id string) object { return object{"networking": object{"networkId": id}} }
	nicsOf := func(ids ...string) object { return object{"networking": object{"nicIds": ids}} }
	volumes := func(ids ...string) object { return object{"volumes": ids} }
	groups := func(names ...string) object { return object{"securityGroups": names} }
	elsewhere := bootOf(0, "volume", bootDisk)
	elsewhere["availabilityZone"] = "eu01-2"
	slow := bootOf(20, "image", iaasmock.DefaultImageID)
	slow["bootVolume"].(object)["performanceClass"] = "storage_slow"
	slow["bootVolume"].(object)["deleteOnTermination"] = true
	for _, row := range []struct {
		name    string
		change  object
		failure string // the end of errorMessage; "" for a server that runs
	}{
		{"unknown image", bootOf(20, "image", nothing), "image " + nothing + " not found."},
		{"unknown snapshot", bootOf(20, "snapshot", nothing), "snapshot " + nothing + " not found."},
		{"unknown boot volume", bootOf(20, "volume", nothing), "volume " + nothing + " not found."},
		{"boot volume in use", bootOf(0, "volume", bootDisk), "volume " + bootDisk + " is not available."},
		{"boot volume too small", bootOf(9, "image", iaasmock.DefaultImageID), "9 GB is too small for its source."},
		{"data volume as boot volume", bootOf(0, "volume", disk), "is not bootable."},
		{"nothing to boot from", object{"bootVolume": nil}, "boot device is missing."},
		{"unknown ephemeral image", object{"imageId": nothing, "bootVolume": nil}, "image " + nothing + " not found."},
		{"unknown network", networkOf(nothing), noNetwork},
		{"another project's network", networkOf(iaasmock.SecondProjectNetworkID), noNetwork},
		{"another region's network", networkOf(iaasmock.SecondRegionNetworkID), noNetwork},
		{"unknown NIC", nicsOf(nothing), noNetwork},
		{"NIC in use", nicsOf(iaasmock.DefaultNICID), noNetwork},
		{"NIC twice", nicsOf(iaasmock.DefaultNICID, iaasmock.DefaultNICID), ""},
		{"unknown volume", volumes(nothing), "volume " + nothing + " not found."},
		{"volume in use", volumes(disk), "volume " + disk + " is not available."},
		{"volume twice", volumes(disk, disk), ""},
		{"unknown zone", object{"availabilityZone": "eu02-1"}, noHost},
		{"not the boot volume's zone", elsewhere, noHost},
		{"unknown security group", groups("mine", "workers"), ""},
		{"security group twice", groups("workers", "workers", iaasmock.DefaultSecurityGroupID), ""},
		{"unknown affinity group", object{"affinityGroup": nothing}, ""},
		{"unknown performance class", slow, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			if strings.HasSuffix(row.name, "in use") {
				other := bootOf(0, "volume", bootDisk)
				other["networking"], other["volumes"] = object{"nicIds": []string{iaasmock.DefaultNICID}}, []string{disk}
				m.create(other)
			}
			before := m.holdings()
			id := m.create(row.change)
			m.clock.Step(boot)
			status := map[bool]string{true: iaasmock.StatusActive, false: iaasmock.StatusError}[row.failure == ""]
			shown, _ := m.wantStatus(id, status)["errorMessage"].(string)
			if !strings.HasSuffix(shown, row.failure) || row.failure == "" && shown != "" {
				t.Errorf("it failed with %q, want %q", shown, row.failure)
			}
			if got := m.server(id).SecurityGroups; len(got) > 1 {
				t.Errorf("its groups are %v", got)
			}
			m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
			m.clock.Step(remove)
			if diff := cmp.Diff(before, m.holdings()); diff != "" {
				t.Errorf("after it has gone (-before +after):\n%s", diff)
			}
		})
	}
}

// Volumes and NICs that cannot be as they were asked for are made nevertheless.
func TestVolumesAndNICsWithFlaws(t *testing.T) {
	const nics = "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	catalogue := iaasmock.DefaultCatalogue()
	for _, r := range catalogue.Resources {
		if r.Kind == iaasmock.KindSnapshot {
			r.Fields["status"] = "ERROR"
		}
	}
	broken := iaasmock.WithCatalogue(catalogue)
	volume := func(zone string, size int, source, id string) object {
		body := object{"availabilityZone": zone, "size": size}
		if source != "" {
			body["source"] = object{"type": source, "id": id}
		}
		return body
	}
	for _, row := range []struct {
		name, path  string
		body        object
		field, want string
		option      []iaasmock.Option
	}{
		{"volume in an unknown zone", "/volumes", volume("eu02-1", 20, "", ""), "status", "ERROR", nil},
		{"volume from an unknown image", "/volumes", volume("eu01-1", 20, "image", nothing), "status", "ERROR", nil},
		{
			"volume from a volume", "/volumes",
			volume("eu01-1", 20, "volume", iaasmock.DefaultVolumeID), "status", "ERROR", nil,
		},
		{
			"volume smaller than its source", "/volumes",
			volume("eu01-1", 19, "snapshot", iaasmock.DefaultSnapshotID), "status", "ERROR", nil,
		},
		{
			"volume from a broken snapshot", "/volumes",
			volume("eu01-1", 20, "snapshot", iaasmock.DefaultSnapshotID), "status", "ERROR", []iaasmock.Option{broken},
		},
		{
			"server from a broken snapshot", "/servers",
			serverBody(bootOf(20, "snapshot", iaasmock.DefaultSnapshotID)), "status", "ERROR", []iaasmock.Option{broken},
		},
		{"NIC with an address of another network", nics, object{"ipv4": "10.1.0.5"}, "ipv4", "10.1.0.5", nil},
		{"NIC with an address of no family of it", nics, object{"ipv6": "fd00:1::7"}, "ipv6", "fd00:1::7", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t, row.option...)
			id := m.want(201, "POST", inRegion+row.path, row.body)["id"].(string)
			m.clock.Step(boot)
			if got := m.want(200, "GET", inRegion+row.path+"/"+id, nil)[row.field]; got != row.want {
				t.Errorf("%s is %v, want %s", row.field, got, row.want)
			}
		})
	}
}

func TestZoneOfAServer(t *testing.T) {
	m := openMock(t)
	disk := func() object {
		volume := object{"availabilityZone": "eu01-3", "bootable": true, "size": 20}
		id := m.want(201, "POST", inRegion+"/volumes", volume)["id"].(string)
		return object{"source": object{"type": "volume", "id": id}}
	}
	for _, row := range []struct {
		name, want string
		change     object
	}{
		{"none asked for", "eu01-m", nil},
		{"asked for", "eu01-2", object{"availabilityZone": "eu01-2"}},
		{"the existing boot volume's", "eu01-3", object{"bootVolume": disk()}},
		{"the same as the existing boot volume's", "eu01-3", object{"bootVolume": disk(), "availabilityZone": "eu01-3"}},
	} {
		id := m.create(row.change)
		m.clock.Step(boot)
		if shown := m.wantStatus(id, "ACTIVE")["availabilityZone"]; shown != row.want {
			t.Errorf("%s: it is in %v, want %s", row.name, shown, row.want)
		}
	}
}

func TestImageBesideBootVolume(t *testing.T) {
	m := openMock(t)
	server := m.server(m.create(object{"imageId": iaasmock.DefaultImageID, "bootVolume": object{"size": 20}}))
	if boot := server.BootVolume; server.ImageID != "" || boot == nil || boot.SourceID != iaasmock.DefaultImageID {
		t.Errorf("it boots from %+v (image %q)", boot, server.ImageID)
	}
}

// listed is the status that a list shows of the only server.
func (m *mock) listed() any {
	m.t.Helper()
	servers := m.list("/servers")
	if len(servers) != 1 {
		m.t.Fatalf("%d servers are listed", len(servers))
	}
	return servers[0].(object)["status"]
}

// A list that lags shows what was true then, whatever happened since.
func TestLaggingListsShowThePast(t *testing.T) {
	const lag = 3 * time.Second
	for _, row := range []struct{ name, before, change, then, now string }{
		{"set by hand", "10s", "set:ERROR", "ACTIVE", "ERROR"},
		{"set by hand twice", "set:INACTIVE", "set:ERROR", "INACTIVE", "ERROR"},
		{"set by hand while deleting", "delete", "set:ERROR", "DELETING", "ERROR"},
		{"deleted again after a failure", "set:ERROR", "delete", "ERROR", "DELETING"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t, iaasmock.WithListLag(lag))
			id := m.create(nil)
			m.live(id, row.before)
			m.clock.Step(lag)
			m.live(id, row.change)
			m.wantStatus(id, row.now)
			for _, look := range []struct {
				later time.Duration
				want  string
			}{{0, row.then}, {lag - 1, row.then}, {1, row.now}} {
				m.clock.Step(look.later)
				if got := m.listed(); got != look.want {
					t.Errorf("after %s more it is listed as %v, want %s", look.later, got, look.want)
				}
			}
		})
	}
}

func TestLaggingListsKeepTheOrder(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	gone := m.create(object{"name": "a"})
	m.create(object{"name": "b"})
	m.clock.Step(lag)
	if err := m.cloud.RemoveServer(gone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names(m.list("/servers"))); diff != "" {
		t.Errorf("not in order of creation (-want +got):\n%s", diff)
	}
}

// shown counts in how many of 40 lists the only server is.
func (m *mock) shown() (times int) {
	m.t.Helper()
	for range 40 {
		times += len(m.list("/servers"))
	}
	return times
}

func TestListsOfReplicasOfDifferentAge(t *testing.T) {
	const young, old = 2 * time.Second, 20 * time.Second
	m := openMock(t, iaasmock.WithListReplicas(young, old), iaasmock.WithSeed(3))
	want := func(when string, least, most int) {
		t.Helper()
		if times := m.shown(); times < least || times > most {
			t.Errorf("%s: %d of 40 lists show the server, want %d to %d", when, times, least, most)
		}
	}
	m.clock.Step(time.Minute)
	id := m.create(nil)
	m.clock.Step(young - time.Nanosecond)
	want("before the younger replica knows it", 0, 0)
	m.clock.Step(time.Nanosecond)
	want("once the younger one knows it", 5, 35)
	m.clock.Step(old - young - time.Nanosecond)
	want("before the older one knows it", 5, 35)
	m.clock.Step(time.Nanosecond)
	want("once both know it", 40, 40)

	if err := m.cloud.RemoveServer(id); err != nil {
		t.Fatal(err)
	}
	want("just gone", 40, 40)
	m.clock.Step(young)
	want("once the younger one knows that it is gone", 5, 35)
	m.clock.Step(old - young)
	want("once both know that it is gone", 0, 0)
}
