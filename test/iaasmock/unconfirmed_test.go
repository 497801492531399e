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

// A CreateServer that names what the server cannot have is accepted. If the server can
// run without it, it runs, otherwise it ends in ERROR; attachments to other servers stay.
func TestOrdersWithFlaws(t *testing.T) {
	const noHost, noNetwork = "No valid host was found. There are not enough hosts available.", "aborted: Failed to allocate the network(s), not rescheduling."
	bootOf := func(size int, kind, id string) object {
		return object{"bootVolume": object{"size": size, "source": object{"type": kind, "id": id}}}
	}
	useAll := object{
		"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}, "volumes": []string{iaasmock.DefaultVolumeID},
		"bootVolume": object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}},
	}
	for _, row := range []struct {
		name    string
		inUse   bool // another server has the catalogue's NIC and volumes
		change  object
		code    int
		refusal string
		failure string // "" if it runs
	}{
		{"unknown image", false, bootOf(20, "image", nothing), 404, "image not found", "image " + nothing + " not found."},
		{"unknown snapshot", false, bootOf(20, "snapshot", nothing), 404, "snapshot not found", "snapshot " + nothing + " not found."},
		{"unknown boot volume", false, bootOf(20, "volume", nothing), 404, "volume not found", "volume " + nothing + " not found."},
		{"boot volume in use", true, object{"bootVolume": useAll["bootVolume"]}, 409, "Conflict", "volume " + iaasmock.DefaultBootVolumeID + " is not available."},
		{"boot volume too small", false, bootOf(9, "image", iaasmock.DefaultImageID), 400, "boot device size is not valid or missing", "a volume of 9 GB is too small for its source."},
		{"data volume as boot volume", false, bootOf(0, "volume", iaasmock.DefaultVolumeID), 400, "not bootable", "is not bootable."},
		{"nothing to boot from", false, object{"bootVolume": nil}, 400, "boot device is missing", "boot device is missing."},
		{"unknown ephemeral image", false, object{"imageId": nothing, "bootVolume": nil}, 404, "image not found", "image " + nothing + " not found."},
		{"unknown network", false, object{"networking": object{"networkId": nothing}}, 404, "network not found", noNetwork},
		{"another project's network", false, object{"networking": object{"networkId": iaasmock.SecondProjectNetworkID}}, 404, "network not found", noNetwork},
		{"another region's network", false, object{"networking": object{"networkId": iaasmock.SecondRegionNetworkID}}, 404, "network not found", noNetwork},
		{"unknown NIC", false, object{"networking": object{"nicIds": []string{nothing}}}, 404, "network interface not found", noNetwork},
		{"NIC in use", true, object{"networking": useAll["networking"]}, 409, "Conflict", noNetwork},
		{"NIC twice", false, object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID, iaasmock.DefaultNICID}}}, 400, "Duplicate items in the list: '" + iaasmock.DefaultNICID + "'", ""},
		{"unknown volume", false, object{"volumes": []string{nothing}}, 404, "volume not found", "volume " + nothing + " not found."},
		{"volume in use", true, object{"volumes": useAll["volumes"]}, 409, "Conflict", "volume " + iaasmock.DefaultVolumeID + " is not available."},
		{"volume twice", false, object{"volumes": []string{iaasmock.DefaultVolumeID, iaasmock.DefaultVolumeID}}, 400, "Duplicate items", ""},
		{"unknown zone", false, object{"availabilityZone": "eu02-1"}, 400, "availability zone is not available", noHost},
		{"not the boot volume's zone", false, object{"availabilityZone": "eu01-2", "bootVolume": useAll["bootVolume"]}, 400, "does not match", noHost},
		{"unknown key pair", false, object{"keypairName": "mine"}, 404, "keypair not found", ""},
		{"unknown security group", false, object{"securityGroups": []string{"mine", "workers"}}, 400, "Security group mine not found", ""},
		{"security group twice", false, object{"securityGroups": []string{"workers", "workers"}}, 400, "Duplicate items in the list: 'workers'", ""},
		{"unknown affinity group", false, object{"affinityGroup": nothing}, 404, "affinity group not found", ""},
		{"unknown performance class", false, object{"bootVolume": object{
			"size": 20, "performanceClass": "storage_slow", "deleteOnTermination": true, "source": object{"type": "image", "id": iaasmock.DefaultImageID},
		}}, 404, "volume performance class not found", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			strict, m := strictMock(t), openMock(t)
			if row.inUse {
				strict.create(useAll)
				m.create(useAll)
			}
			before, servers := strict.holdings(), len(strict.cloud.Servers())
			answer := strict.want(row.code, "POST", inRegion+"/servers", serverBody(row.change))
			if message := answer["msg"].(string); !strings.Contains(message, row.refusal) || answer["code"] != float64(row.code) {
				t.Errorf("refused with %v, want %q", answer, row.refusal)
			}
			if diff := cmp.Diff(before, strict.holdings()); diff != "" || len(strict.cloud.Servers()) != servers {
				t.Errorf("something was made all the same (-before +after):\n%s", diff)
			}

			before = m.holdings()
			id := m.create(row.change)
			m.clock.Step(boot)
			status := map[bool]string{true: iaasmock.StatusActive, false: iaasmock.StatusError}[row.failure == ""]
			if shown, _ := m.wantStatus(id, status)["errorMessage"].(string); !strings.HasSuffix(shown, row.failure) || row.failure == "" && shown != "" {
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

// What STACKIT is not known to refuse is carried out as far as possible.
func TestAcceptedUnlessUnconfirmedRefusals(t *testing.T) {
	const nics = inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	const spare = nics + "/" + iaasmock.DefaultNICID
	field := func(name string, want any) func(*mock, object) string {
		return func(_ *mock, answer object) string {
			if got := answer[name]; !cmp.Equal(got, want) {
				return fmt.Sprintf("%s is %v, want %v", name, got, want)
			}
			return ""
		}
	}
	volume := func(change object) object {
		body := object{"availabilityZone": "eu01-1", "size": 20}
		for name, value := range change {
			body[name] = value
		}
		return body
	}
	from := func(kind, id string) object { return object{"source": object{"type": kind, "id": id}} }
	for _, row := range []struct {
		name              string
		method, path      string // with {nic}
		body              any
		refused, accepted int
		check             func(m *mock, answer object) string
	}{
		{"volume in an unknown zone", "POST", inRegion + "/volumes", volume(object{"availabilityZone": "eu02-1"}), 400, 201, field("status", "ERROR")},
		{"volume from an unknown image", "POST", inRegion + "/volumes", volume(from("image", nothing)), 404, 201, field("status", "ERROR")},
		{"volume from a backup", "POST", inRegion + "/volumes", volume(from("backup", nothing)), 404, 201, field("status", "ERROR")},
		{"volume smaller than its source", "POST", inRegion + "/volumes", volume(object{"size": 19, "source": object{"type": "snapshot", "id": iaasmock.DefaultSnapshotID}}), 400, 201, field("status", "ERROR")},
		{"volume of an unknown class", "POST", inRegion + "/volumes", volume(object{"performanceClass": "storage_slow"}), 404, 201, field("status", "AVAILABLE")},
		{"NIC with another network's address", "POST", nics, object{"ipv4": "10.1.0.5"}, 400, 201, field("ipv4", "10.1.0.5")},
		{"NIC with an address of a family that is not there", "POST", nics, object{"ipv6": "fd00:1::7"}, 400, 201, field("ipv6", "fd00:1::7")},
		{"NIC with an unknown security group", "PATCH", spare, object{"securityGroups": []string{nothing}}, 404, 200, field("securityGroups", []any{nothing})},
		{"deletion of an attached NIC", "DELETE", nics + "/{nic}", nil, 409, 204, func(m *mock, _ object) string {
			if s := m.cloud.Servers()[0]; len(s.NICIDs) > 0 {
				return "the server still has it"
			}
			return ""
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := func(m *mock, status int) object {
				t.Helper()
				old := m.create(nil)
				m.clock.Step(boot)
				path := strings.ReplaceAll(row.path, "{nic}", m.server(old).NICIDs[0])
				return m.want(status, row.method, path, row.body)
			}
			call(strictMock(t), row.refused)
			m := openMock(t)
			answer := call(m, row.accepted)
			if row.check == nil {
				return
			}
			if wrong := row.check(m, answer); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// What is made from something in ERROR is in ERROR.
func TestBrokenSources(t *testing.T) {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.Snapshots[0].Status = iaasmock.SnapshotError
	m := openMock(t, iaasmock.WithCatalogue(catalogue))
	source := object{"type": "snapshot", "id": iaasmock.DefaultSnapshotID}
	volume := m.want(201, "POST", inRegion+"/volumes", object{"availabilityZone": "eu01-1", "size": 20, "source": source})
	if volume["status"] != iaasmock.VolumeError {
		t.Errorf("the volume is %v", volume)
	}
	server := m.want(201, "POST", inRegion+"/servers", serverBody(object{"bootVolume": object{"size": 20, "source": source}}))
	m.clock.Step(time.Minute)
	if got := m.want(200, "GET", inRegion+"/servers/"+server["id"].(string), nil); got["status"] != iaasmock.StatusError {
		t.Errorf("the server is %v", got)
	}
}

func TestAGroupByNameAndID(t *testing.T) {
	m := openMock(t)
	m.want(201, "POST", inRegion+"/servers", serverBody(object{"securityGroups": []string{"workers", iaasmock.DefaultSecurityGroupID}}))
	if groups := m.cloud.Servers()[0].SecurityGroups; !cmp.Equal(groups, []string{iaasmock.DefaultSecurityGroupID}) {
		t.Errorf("its groups are %v", groups)
	}
}
