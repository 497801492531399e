// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
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
				if volume.ServerID != "" || volume.Status != "AVAILABLE" {
					t.Errorf("volume %s is %s of %q", volume.ID, volume.Status, volume.ServerID)
				}
			}
		})
	}
}

// The times are those that clients of STACKIT have measured.
func TestLive(t *testing.T) {
	m := openMock(t, iaasmock.WithLive())
	id := m.create(nil)
	nics := func() int { return len(m.list("/servers/" + id + "/nics")) }
	m.clock.Step(100*time.Second - 1)
	if nics() > 0 {
		t.Error("it has a NIC before 100 s")
	}
	m.clock.Step(20 * time.Second)
	if m.wantStatus(id, "CREATING"); nics() != 1 {
		t.Error("it has no NIC before it is ACTIVE")
	}
	m.clock.Step(1)
	m.wantStatus(id, "ACTIVE")
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(15*time.Second - 1)
	m.wantStatus(id, "DELETING")
	m.clock.Step(1)
	m.wantStatus(id, "")
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
	elsewhere := bootOf(0, "volume", bootDisk)
	elsewhere["availabilityZone"] = "eu01-2"
	for _, row := range []struct {
		name    string
		change  object
		failure string // the end of errorMessage; "" for a server that runs
	}{
		{"unknown image", bootOf(20, "image", nothing), "image " + nothing + " not found."},
		{"boot volume in use", bootOf(0, "volume", bootDisk), "volume " + bootDisk + " is not available."},
		{"boot volume too small", bootOf(9, "image", iaasmock.DefaultImageID), "9 GB is too small for its source."},
		{"data volume as boot volume", bootOf(0, "volume", disk), "is not bootable."},
		{"nothing to boot from", object{"bootVolume": nil}, "boot device is missing."},
		{"another project's network", networkOf(iaasmock.SecondProjectNetworkID), noNetwork},
		{"NIC in use", nicsOf(iaasmock.DefaultNICID), noNetwork},
		{"unknown volume", volumes(nothing), "volume " + nothing + " not found."},
		{"volume in use", volumes(disk), "volume " + disk + " is not available."},
		{"unknown zone", object{"availabilityZone": "eu02-1"}, noHost},
		{"not the boot volume's zone", elsewhere, noHost},
		{"unknown security group", object{"securityGroups": []string{"mine", "workers"}}, ""},
		{"unknown affinity group", object{"affinityGroup": nothing}, ""},
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
			m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
			m.clock.Step(remove)
			if diff := cmp.Diff(before, m.holdings()); diff != "" {
				t.Errorf("after it has gone (-before +after):\n%s", diff)
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

// A list that lags shows what was true then, whatever happened since.
func TestLaggingListsShowThePast(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	id := m.create(nil)
	m.wantStatus(id, "CREATING")
	wantListed := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, server := range m.list("/servers?details=true") {
			nics := len(server.(object)["nics"].([]any))
			got = append(got, fmt.Sprintf("%v with %d NIC", server.(object)["status"], nics))
		}
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
	wantListed()
	m.clock.Step(lag)
	wantListed("CREATING with 1 NIC")
	m.clock.Step(boot)
	m.live(id, "set:ERROR")
	wantListed("ACTIVE with 1 NIC")
	m.clock.Step(lag)
	wantListed("ERROR with 1 NIC")
	if err := m.cloud.RemoveServer(id); err != nil {
		t.Fatal(err)
	}
	m.wantStatus(id, "")
	wantListed("ERROR with 1 NIC")
	m.clock.Step(lag)
	wantListed()
}
