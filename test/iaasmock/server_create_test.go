// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

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
		{"unknown key pair", object{"keypairName": "mine"}, ""},
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
		{"volume from a backup", "/volumes", volume("eu01-1", 20, "backup", nothing), "status", "ERROR", nil},
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
	for _, row := range []struct{ name, asked, bootVolume, want string }{
		{"none asked for", "", "", "eu01-m"},
		{"asked for", "eu01-2", "", "eu01-2"},
		{"the existing boot volume's", "", "eu01-3", "eu01-3"},
		{"the same as the existing boot volume's", "eu01-3", "eu01-3", "eu01-3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := openMock(t)
			change := object{}
			if row.asked != "" {
				change["availabilityZone"] = row.asked
			}
			if row.bootVolume != "" {
				disk := object{"availabilityZone": row.bootVolume, "bootable": true, "size": 20}
				id := m.want(201, "POST", inRegion+"/volumes", disk)["id"].(string)
				change["bootVolume"] = object{"source": object{"type": "volume", "id": id}}
			}
			id := m.create(change)
			m.clock.Step(boot)
			if shown := m.wantStatus(id, "ACTIVE")["availabilityZone"]; shown != row.want {
				t.Errorf("it is in %v, want %s", shown, row.want)
			}
		})
	}
}

func TestImageBesideBootVolume(t *testing.T) {
	const image, second = iaasmock.DefaultImageID, iaasmock.SecondImageID
	other := object{"type": "image", "id": second}
	for _, row := range []struct {
		name, image string
		boot        object
		source      string
	}{
		{"the image is the source", image, object{"size": 20}, image},
		{"the volume's own source wins", image, object{"size": 20, "source": other}, second},
		{"a source alone", "", object{"size": 20, "source": other}, second},
	} {
		t.Run(row.name, func(t *testing.T) {
			fields := object{"bootVolume": row.boot, "imageId": row.image}
			if row.image == "" {
				delete(fields, "imageId")
			}
			m := openMock(t)
			made := m.want(201, "POST", inRegion+"/servers", serverBody(fields))
			server, _ := m.cloud.Server(made["id"].(string))
			if server.ImageID != "" || server.BootVolume == nil || server.BootVolume.SourceID != row.source {
				t.Errorf("it boots from %+v (image %q), want a volume from %s", server.BootVolume, server.ImageID, row.source)
			}
		})
	}
}
