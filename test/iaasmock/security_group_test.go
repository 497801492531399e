// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const securityGroups = inRegion + "/security-groups"

func TestSecurityGroupsAreMadeAndUsed(t *testing.T) {
	m := openMock(t)
	group := m.want(201, "POST", securityGroups, object{"name": "mine", "description": "d", "stateful": false, "labels": object{"a": "b"}})
	path := securityGroups + "/" + group["id"].(string)
	if !cmp.Equal([]any{group["stateful"], group["description"]}, []any{false, "d"}) || len(group["rules"].([]any)) != 2 {
		t.Errorf("made as %v", group)
	}
	if got := names(m.list("/security-groups?label_selector=a%3Db")); !cmp.Equal(got, []string{"mine"}) {
		t.Errorf("listed %v", got)
	}
	m.want(200, "PATCH", path, object{"name": "renamed"})
	if got := m.want(200, "GET", path, nil); !cmp.Equal([]any{got["name"], got["description"], got["stateful"]}, []any{"renamed", "d", false}) {
		t.Errorf("renamed to %v", got)
	}
	m.want(400, "PATCH", path, object{"name": "other", "labels": object{"a": 1}})
	m.want(404, "GET", securityGroups+"/"+iaasmock.DefaultImageID, nil)

	id := m.create(object{"securityGroups": []string{"renamed"}}) // by its name
	if got := m.server(id).SecurityGroups; !cmp.Equal(got, []string{group["id"].(string)}) {
		t.Errorf("the server has %v", got)
	}
	m.want(409, "DELETE", path, nil)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(boot)
	m.want(204, "DELETE", path, nil)
	m.want(404, "GET", path, nil)
}

func TestSecurityGroupRules(t *testing.T) {
	m := openMock(t)
	path := securityGroups + "/" + iaasmock.DefaultSecurityGroupID
	rules := func() []any { return m.want(200, "GET", path+"/rules", nil)["items"].([]any) }
	ssh := m.want(201, "POST", path+"/rules", object{"direction": "ingress", "protocol": "tcp", "portRange": object{"min": 22, "max": 22}})
	want := object{
		"direction": "ingress", "ethertype": "IPv4", "protocol": object{"name": "tcp", "number": 6.0},
		"portRange": object{"min": 22.0, "max": 22.0}, "securityGroupId": iaasmock.DefaultSecurityGroupID,
		"id": ssh["id"], "createdAt": ssh["createdAt"], "updatedAt": ssh["updatedAt"],
	}
	if diff := cmp.Diff(want, ssh); diff != "" {
		t.Errorf("the rule (-want +got):\n%s", diff)
	}
	numbered := m.want(201, "POST", path+"/rules", object{"direction": "egress", "protocol": 250})
	if diff := cmp.Diff(object{"number": 250.0}, numbered["protocol"]); diff != "" {
		t.Errorf("a protocol without name (-want +got):\n%s", diff)
	}
	other := m.made(201, securityGroups, object{"name": "other"})
	m.want(201, "POST", path+"/rules", object{"direction": "ingress", "remoteSecurityGroupId": other[len(securityGroups)+1:]})
	if got := len(rules()); got != 3 {
		t.Errorf("%d rules", got)
	}

	if rules := m.cloud.SecurityGroups()[0].Rules; len(rules) != 3 || *rules[0].Ports != [2]int64{22, 22} || *rules[0].Protocol != 6 {
		t.Errorf("rules are %+v", rules)
	}

	m.want(204, "DELETE", path+"/rules/"+ssh["id"].(string), nil)
	m.want(404, "GET", path+"/rules/"+ssh["id"].(string), nil)
	m.want(404, "DELETE", other+"/rules/"+numbered["id"].(string), nil) // another group's
	m.want(204, "DELETE", other, nil)
	if left := rules(); len(left) != 1 || left[0].(object)["id"] != numbered["id"] {
		t.Errorf("rules left: %v", left)
	}
}

func TestSecurityGroupRuleRefusals(t *testing.T) {
	m := strictMock(t)
	path := securityGroups + "/" + iaasmock.DefaultSecurityGroupID + "/rules"
	for _, row := range []struct {
		name    string
		body    object
		code    int
		message string
	}{
		{"direction", object{"direction": "up"}, 400, `direction "up"`},
		{"ethertype", object{"direction": "egress", "ethertype": "IPX"}, 400, `ethertype "IPX"`},
		{"protocol", object{"direction": "egress", "protocol": "tpc"}, 400, `protocol "tpc"`},
		{"ports of no protocol", object{"direction": "egress", "portRange": object{"min": 1, "max": 2}}, 400, "protocol with ports"},
		{"ports of icmp", object{"direction": "egress", "protocol": "icmp", "portRange": object{"min": 1, "max": 2}}, 400, "protocol with ports"},
		{"ports backwards", object{"direction": "egress", "protocol": "tcp", "portRange": object{"min": 2, "max": 1}}, 400, "min"},
		{"icmp of tcp", object{"direction": "egress", "protocol": 6, "icmpParameters": object{"type": 1, "code": 1}}, 400, "icmp"},
		{"family", object{"direction": "egress", "ethertype": "IPv6", "ipRange": "10.0.0.0/8"}, 400, "IPv6 range"},
		{"the other family", object{"direction": "egress", "ipRange": "fd00::1"}, 400, "IPv4 range"},
		{"two ends", object{"direction": "egress", "ipRange": "10.0.0.0/8", "remoteSecurityGroupId": iaasmock.DefaultSecurityGroupID}, 400, "exclude"},
		{"unknown group", object{"direction": "egress", "remoteSecurityGroupId": iaasmock.DefaultImageID}, 404, "security group not found"},
	} {
		if answer := m.want(row.code, "POST", path, row.body); !strings.Contains(answer["msg"].(string), row.message) {
			t.Errorf("%s: %v, want %q", row.name, answer, row.message)
		}
	}
	if got := m.want(200, "GET", path, nil)["items"].([]any); len(got) != 0 {
		t.Errorf("rules %v", got)
	}
}
