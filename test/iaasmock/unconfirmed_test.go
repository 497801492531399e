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
	rule := func(change object) object {
		change["direction"] = "egress"
		return change
	}
	rules := securityGroups + "/" + iaasmock.DefaultSecurityGroupID + "/rules"
	for _, row := range []struct {
		name              string
		method, path      string // with {server}, {new-server}, {nic} and {free-ip}
		body              any
		refused, accepted int
		check             func(m *mock, answer object) string
	}{
		{"volume in an unknown zone", "POST", inRegion + "/volumes", volume(object{"availabilityZone": "eu02-1"}), 400, 201, field("status", "ERROR")},
		{"volume from an unknown image", "POST", inRegion + "/volumes", volume(from("image", nothing)), 404, 201, field("status", "ERROR")},
		{"volume from a backup", "POST", inRegion + "/volumes", volume(from("backup", nothing)), 404, 201, field("status", "ERROR")},
		{"volume smaller than its source", "POST", inRegion + "/volumes", volume(object{"size": 19, "source": object{"type": "snapshot", "id": iaasmock.DefaultSnapshotID}}), 400, 201, field("status", "ERROR")},
		{"volume of an unknown class", "POST", inRegion + "/volumes", volume(object{"performanceClass": "storage_slow"}), 404, 201, field("status", "AVAILABLE")},
		{"snapshot of an unknown volume", "POST", inRegion + "/snapshots", object{"volumeId": nothing}, 404, 201, field("status", "ERROR")},
		{"NIC with another network's address", "POST", nics, object{"ipv4": "10.1.0.5"}, 400, 201, field("ipv4", "10.1.0.5")},
		{"NIC with an address of a family that is not there", "POST", nics, object{"ipv6": "fd00:1::7"}, 400, 201, field("ipv6", "fd00:1::7")},
		{"NIC with an unknown security group", "PATCH", spare, object{"securityGroups": []string{nothing}}, 404, 200, field("securityGroups", []any{nothing})},
		{"deletion of an attached NIC", "DELETE", nics + "/{nic}", nil, 409, 204, func(m *mock, _ object) string {
			if s := m.cloud.Servers()[0]; len(s.NICIDs) > 0 {
				return "the server still has it"
			}
			return ""
		}},
		{"second public IP of a NIC", "PATCH", inRegion + "/public-ips/{free-ip}", object{"networkInterface": iaasmock.DefaultNICID}, 400, 200, func(m *mock, answer object) string {
			nic, _ := m.nic(iaasmock.DefaultNICID)
			if nic.PublicIP != answer["ip"] || m.cloud.PublicIPs()[1].NICID != "" {
				return fmt.Sprintf("the NIC has %v, the IPs are %+v", nic.PublicIP, m.cloud.PublicIPs())
			}
			return ""
		}},
		{"public IP to an unknown NIC", "POST", inRegion + "/public-ips", object{"networkInterface": nothing}, 404, 201, field("networkInterface", nil)},
		{"image of a negative size", "POST", inRegion + "/images", object{"name": "a", "diskFormat": "raw", "minDiskSize": -1}, 400, 201, nil},
		{"key of another type", "POST", "/v2/keypairs", object{"name": "a", "publicKey": strings.Replace(sshKey, "ssh-ed25519", "ssh-rsa", 1)}, 400, 201, field("name", "a")},
		{"routing table", "POST", networks, object{"name": "a", "routingTableId": nothing}, 404, 202, field("status", "CREATED")},
		{"VPC", "POST", networks, object{"name": "a", "vpcId": nothing}, 404, 202, field("status", "CREATED")},
		{"VPC network range", "POST", networks, object{"name": "a", "ipv4": object{"prefixLength": 24, "vpcNetworkRangeId": nothing}}, 404, 202, field("status", "CREATED")},
		{"gateway elsewhere", "PATCH", networks + "/" + iaasmock.DefaultNetworkID, object{"ipv4": object{"gateway": "10.99.0.1"}}, 400, 202, func(m *mock, _ object) string {
			network := m.want(200, "GET", networks+"/"+iaasmock.DefaultNetworkID, nil)
			return field("gateway", "10.99.0.1")(m, network["ipv4"].(object))
		}},
		{"gateway at a NIC's address", "PATCH", networks + "/" + iaasmock.DefaultNetworkID, object{"ipv4": object{"gateway": "10.0.0.2"}}, 400, 202, nil},
		{"rule with ports of any protocol", "POST", rules, rule(object{"portRange": object{"min": 1, "max": 2}}), 400, 201, nil},
		{"rule with two ends", "POST", rules, rule(object{"ipRange": "10.0.0.0/8", "remoteSecurityGroupId": iaasmock.DefaultSecurityGroupID}), 400, 201, nil},
		{"rule of another family", "POST", rules, rule(object{"ipRange": "fd00::1"}), 400, 201, field("ipRange", "fd00::1")},
		{"rule for an unknown group", "POST", rules, rule(object{"remoteSecurityGroupId": nothing}), 404, 201, field("remoteSecurityGroupId", nothing)},
		{"resize to the same machine type", "POST", "{server}/resize", object{"machineType": iaasmock.DefaultMachineType}, 400, 202, nil},
		{"rescue with an unknown image", "POST", "{server}/rescue", object{"image": nothing}, 404, 202, func(m *mock, _ object) string {
			m.clock.Step(boot)
			return field("status", iaasmock.StatusError)(m, object{"status": m.cloud.Servers()[0].Status})
		}},
		{"security group that the server lacks", "DELETE", "{server}/security-groups/" + iaasmock.DefaultSecurityGroupID, nil, 404, 204, nil},
		{"console of a server in creation", "GET", "{new-server}/console", nil, 400, 200, nil},
		{"network for a server in creation", "POST", "{new-server}/networks/" + iaasmock.DefaultDualStackNetworkID, nil, 400, 202, func(m *mock, _ object) string {
			return field("NICs", 2)(m, object{"NICs": len(m.cloud.Servers()[1].NICIDs)})
		}},
		{"network of a server in creation", "DELETE", "{new-server}/networks/" + iaasmock.DefaultNetworkID, nil, 400, 204, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := func(m *mock, status int) object {
				t.Helper()
				free, _ := m.newPublicIP(object{})
				m.newPublicIP(object{"networkInterface": iaasmock.DefaultNICID})
				old := m.create(nil)
				m.clock.Step(boot)
				path := strings.NewReplacer(
					"{server}", inRegion+"/servers/"+old, "{new-server}", inRegion+"/servers/"+m.create(nil),
					"{nic}", m.server(old).NICIDs[0], "{free-ip}", free,
				).Replace(row.path)
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
	m := openMock(t)
	snapshot := m.want(201, "POST", inRegion+"/snapshots", object{"volumeId": nothing})
	if snapshot["status"] != iaasmock.SnapshotError {
		t.Fatalf("the snapshot is %v", snapshot)
	}
	source := object{"type": "snapshot", "id": snapshot["id"]}
	volume := m.want(201, "POST", inRegion+"/volumes", object{"availabilityZone": "eu01-1", "size": 20, "source": source})
	if volume["status"] != iaasmock.VolumeError {
		t.Errorf("the volume is %v", volume)
	}
	if again := m.want(201, "POST", inRegion+"/snapshots", object{"volumeId": volume["id"]}); again["status"] != iaasmock.SnapshotError {
		t.Errorf("the snapshot of the volume is %v", again)
	}
	server := m.want(201, "POST", inRegion+"/servers", serverBody(object{"bootVolume": object{"size": 20, "source": source}}))
	m.clock.Step(time.Minute)
	if got := m.want(200, "GET", inRegion+"/servers/"+server["id"].(string), nil); got["status"] != iaasmock.StatusError {
		t.Errorf("the server is %v", got)
	}
}

// A gateway's address is nobody else's, wherever the gateway was before.
func TestAGatewayMovesToANICsAddressAndBack(t *testing.T) {
	m := openMock(t)
	path := m.made(202, networks, object{"name": "mine", "ipv4": object{"prefix": "10.77.0.0/28"}})
	m.want(201, "POST", path+"/nics", object{"ipv4": "10.77.0.7"})
	for _, gateway := range []string{"10.77.0.7", "10.77.0.1"} {
		m.want(202, "PATCH", path, object{"ipv4": object{"gateway": gateway}})
	}
	m.want(409, "POST", path+"/nics", object{"ipv4": "10.77.0.7"})
}

func TestAGroupByNameAndID(t *testing.T) {
	m := openMock(t)
	m.want(201, "POST", inRegion+"/servers", serverBody(object{"securityGroups": []string{"workers", iaasmock.DefaultSecurityGroupID}}))
	if groups := m.cloud.Servers()[0].SecurityGroups; !cmp.Equal(groups, []string{iaasmock.DefaultSecurityGroupID}) {
		t.Errorf("its groups are %v", groups)
	}
}
