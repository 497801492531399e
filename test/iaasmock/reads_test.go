// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestLabelSelector(t *testing.T) {
	m := openMock(t)
	m.create(object{"name": "a", "labels": object{"kubernetes.io/machine": "a", "kubernetes.io/cluster": "one", "x": ""}})
	m.create(object{"name": "b", "labels": object{"kubernetes.io/machine": "b", "kubernetes.io/cluster": "one"}})
	m.create(object{"name": "c", "labels": object{"kubernetes.io/machine": "c", "kubernetes.io/cluster": "two"}})
	for _, row := range []struct {
		selector string
		want     []string
	}{
		{"", []string{"a", "b", "c"}},
		{"kubernetes.io/machine=b", []string{"b"}},
		{"kubernetes.io/cluster=one,kubernetes.io/machine=a", []string{"a"}},
		{"kubernetes.io/cluster=two,kubernetes.io/machine=a", []string{}},
		{"x", []string{"a"}},
		{"!x", []string{"b", "c"}},
		{"kubernetes.io/cluster!=one", []string{"c"}},
		{"kubernetes.io/machine in (a,c)", []string{"a", "c"}},
	} {
		got := names(m.list("/servers?label_selector=" + url.QueryEscape(row.selector)))
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", row.selector, diff)
		}
	}
	for _, broken := range []string{"a=b,", "a in b", "=b"} {
		for _, path := range []string{"/servers", "/nics", "/volumes", "/networks", "/images", "/security-groups"} {
			m.want(400, "GET", inRegion+path+"?label_selector="+url.QueryEscape(broken), nil)
		}
	}
}

func TestDetails(t *testing.T) {
	m := openMock(t)
	id := m.create(object{"userData": "YQ==", "networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	m.create(object{"name": "server2"})
	nicPath := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics/" + iaasmock.DefaultNICID
	m.want(200, "PATCH", nicPath, object{"allowedAddresses": []string{"100.64.0.0/10"}})

	for _, server := range append(m.list("/servers"), m.wantStatus(id, "CREATING")) {
		for _, key := range []string{"nics", "userData", "serviceAccountMails", "networking", "securityGroups"} {
			if value, there := server.(object)[key]; there {
				t.Errorf("without details there is %s: %v", key, value)
			}
		}
	}
	detailed := m.list("/servers?details=true")
	first, second := detailed[0].(object), detailed[1].(object)
	if first["userData"] != "YQ==" || second["userData"] != nil {
		t.Errorf("userData is %v and %v", first["userData"], second["userData"])
	}
	if _, there := second["userData"]; !there {
		t.Error("userData is left out, not null")
	}
	if _, there := first["networking"]; there {
		t.Error("networking in a response breaks clients")
	}
	nic := first["nics"].([]any)[0].(object)
	if nic["nicId"] != iaasmock.DefaultNICID || nic["ipv4"] != "10.0.0.2" || nic["networkName"] != "default" {
		t.Errorf("its NIC is shown as %v", nic)
	}
	if _, there := nic["allowedAddresses"]; there {
		t.Error("details show allowedAddresses")
	}
	if got := m.want(200, "GET", nicPath, nil)["allowedAddresses"]; !cmp.Equal(got, []any{"100.64.0.0/10"}) {
		t.Errorf("the NIC resource has allowedAddresses %v", got)
	}
}

func TestListLag(t *testing.T) {
	const lag = 3 * time.Second
	m := openMock(t, iaasmock.WithListLag(lag))
	id := m.create(nil)
	m.wantStatus(id, "CREATING")
	if got := m.list("/servers"); len(got) > 0 {
		t.Errorf("the new server is listed at once: %v", got)
	}
	m.clock.Step(lag)
	if got := m.list("/servers"); len(got) != 1 {
		t.Errorf("it is not listed after the lag: %v", got)
	}

	m.clock.Step(boot)
	m.want(204, "DELETE", inRegion+"/servers/"+id, nil)
	m.clock.Step(remove)
	m.wantStatus(id, "")
	listed := m.list("/servers?details=true")
	if len(listed) != 1 || listed[0].(object)["status"] != "DELETING" || len(listed[0].(object)["nics"].([]any)) != 1 {
		t.Errorf("just gone, it is listed as %v", listed)
	}
	if got := len(m.cloud.Servers()); got != 0 {
		t.Errorf("Servers shows %d", got)
	}
	m.clock.Step(lag)
	if got := m.list("/servers"); len(got) > 0 {
		t.Errorf("it is still listed: %v", got)
	}
}

func TestProjectsAndRegionsAreApart(t *testing.T) {
	m := openMock(t)
	id := m.create(nil)
	for _, elsewhere := range []string{
		"/v2/projects/" + iaasmock.SecondProjectID + "/regions/eu01",
		"/v2/projects/" + iaasmock.DefaultProjectID + "/regions/eu02",
	} {
		for _, path := range []string{
			"/servers/" + id, "/servers/" + id + "/nics", "/networks/" + iaasmock.DefaultNetworkID,
			"/networks/" + iaasmock.DefaultNetworkID + "/nics", "/nics/" + iaasmock.DefaultNICID,
			"/volumes/" + iaasmock.DefaultVolumeID, "/security-groups/" + iaasmock.DefaultSecurityGroupID,
			"/affinity-groups/" + iaasmock.DefaultAffinityGroupID,
		} {
			m.want(404, "GET", elsewhere+path, nil)
		}
		m.want(404, "DELETE", elsewhere+"/servers/"+id, nil)
		if got := m.want(200, "GET", elsewhere+"/servers", nil)["items"]; len(got.([]any)) > 0 {
			t.Errorf("%s lists %v", elsewhere, got)
		}
	}
	nowhere := "/v2/projects/99999999-0000-4000-8000-000000000001/regions/eu01/servers"
	if answer := m.want(403, "GET", nowhere, nil); answer["msg"] != "Forbidden" {
		t.Errorf("unknown project: %v", answer)
	}
	m.want(404, "GET", "/v2/projects/"+iaasmock.DefaultProjectID+"/regions/eu09/servers", nil)
}

// A PATCH changes the fields that it has; null removes a label; lists are replaced as a whole.
func TestUpdates(t *testing.T) {
	labels := object{"a": "1", "b": "2"}
	const nics = "/networks/" + iaasmock.DefaultNetworkID + "/nics/"
	for _, row := range []struct {
		name, path   string // "" for a server
		change, want object
		option       []iaasmock.Option
	}{
		{"name alone", "", object{"name": "new"}, object{"name": "new", "labels": labels}, nil},
		{"labels and metadata", "", object{"labels": object{"a": nil, "c": "3"}, "metadata": object{"m": "1"}},
			object{"name": "server1", "labels": object{"b": "2", "c": "3"}, "metadata": object{"m": "1"}}, nil},
		{"labels that are replaced", "", object{"labels": object{"c": "3"}}, object{"labels": object{"c": "3"}},
			[]iaasmock.Option{iaasmock.WithReplacedLabels()}},
		{"no labels to replace any", "", object{"name": "new"}, object{"labels": labels},
			[]iaasmock.Option{iaasmock.WithReplacedLabels()}},
		{"a NIC", nics + iaasmock.DefaultNICID,
			object{"allowedAddresses": []any{"10.96.0.0/12", "fd00::/64"}, "labels": labels},
			object{"allowedAddresses": []any{"10.96.0.0/12", "fd00::/64"}, "labels": labels, "name": "spare"}, nil},
		{"a volume", "/volumes/" + iaasmock.DefaultVolumeID,
			object{"name": "new", "description": "text", "bootable": true, "labels": labels},
			object{"name": "new", "description": "text", "bootable": true, "labels": labels}, nil},
	} {
		m := openMock(t, row.option...)
		path := inRegion + row.path
		if row.path == "" {
			path += "/servers/" + m.create(object{"labels": labels})
		}
		m.clock.Step(boot + time.Second)
		m.want(200, "PATCH", path, row.change)
		m.want(400, "PATCH", path, object{"name": "other", "labels": object{"stackit-a": "1"}})
		shown := m.want(200, "GET", path, nil)
		for field, want := range row.want {
			if !cmp.Equal(shown[field], want) {
				t.Errorf("%s: %s is %v, want %v", row.name, field, shown[field], want)
			}
		}
		if at := shown["updatedAt"]; at != nil && at != m.clock.Now().UTC().Format(time.RFC3339Nano) {
			t.Errorf("%s: updated at %v", row.name, at)
		}
	}
	m := openMock(t)
	m.want(404, "PATCH", inRegion+"/networks/"+iaasmock.DefaultDualStackNetworkID+"/nics/"+iaasmock.DefaultNICID, object{})
	m.want(404, "PATCH", inRegion+"/volumes/"+nothing, object{})
}

func TestNullLists(t *testing.T) {
	cloud := iaasmock.New(iaasmock.WithNullLists(), iaasmock.WithoutAuthentication())
	for path, want := range map[string]string{
		"/servers": `{"items":null}`, "/nics?label_selector=none": `{"items":null}`, "/networks": `{"items":[{`,
	} {
		if got := call(t, cloud, http.MethodGet, path, "").Body.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	cloud.Inject(iaasmock.Fault{Operation: "ListNetworks", EmptyList: true})
	if got := call(t, cloud, http.MethodGet, "/networks", "").Body.String(); got != `{"items":null}`+"\n" {
		t.Errorf("empty by mistake it is %s", got)
	}
}

func TestNewRefusesABrokenCatalogue(t *testing.T) {
	for name, change := range map[string]func(*iaasmock.Catalogue){
		"NIC without its network": func(c *iaasmock.Catalogue) { c.Networks = nil },
		"region without a zone":   func(c *iaasmock.Catalogue) { c.Regions[iaasmock.DefaultRegion] = nil },
		"no prefix":               func(c *iaasmock.Catalogue) { c.Networks[0].IPv4Prefix = "10.0.0.0" },
		"no room":                 func(c *iaasmock.Catalogue) { c.Networks[0].IPv4Prefix = "10.0.0.0/32" },
	} {
		catalogue := iaasmock.DefaultCatalogue()
		change(&catalogue)
		func() {
			defer func() { _ = recover() }()
			iaasmock.New(iaasmock.WithCatalogue(catalogue))
			t.Errorf("%s: New took it", name)
		}()
	}
}

func TestAConsoleLogShowsAfterItsDelay(t *testing.T) {
	m := newMock(t)
	m.login(iaasmock.DefaultProjectID)
	path := m.made(201, inRegion+"/servers", bodies[0].body)
	id := path[strings.LastIndex(path, "/")+1:]
	if err := m.cloud.SetConsoleLog(id, "one\ntwo\nthree\n", time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "two\nthree\n"} {
		if got := m.want(200, "GET", path+"/log?length=2", nil)["output"]; got != want {
			t.Errorf("the log is %q, want %q", got, want)
		}
		m.clock.Step(time.Minute)
	}
	if got := m.want(200, "GET", path+"/log?length=0", nil)["output"]; got != "one\ntwo\nthree\n" {
		t.Errorf("the whole log is %q", got)
	}
	m.want(400, "GET", path+"/log?length=-1", nil)
}

// usage is what GET quotas says is used, zeros left out.
func (m *mock) usage() map[string]int {
	m.t.Helper()
	used := map[string]int{}
	for name, quota := range m.want(200, "GET", inRegion+"/quotas", nil)["quotas"].(object) {
		if value := int(quota.(object)["usage"].(float64)); value != 0 {
			used[name] = value
		}
	}
	return used
}

// change is how usage differs from before.
func (m *mock) change(before map[string]int) map[string]int {
	m.t.Helper()
	changed := m.usage()
	for name, value := range before {
		changed[name] -= value
	}
	maps.DeleteFunc(changed, func(_ string, difference int) bool { return difference == 0 })
	return changed
}

func TestQuotasCount(t *testing.T) {
	m := openMock(t)
	if diff := cmp.Diff(map[string]int{"nics": 1, "volumes": 2, "gigabytes": 60}, m.usage()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	for _, row := range []struct {
		name string
		do   func()
		want map[string]int
	}{
		{"a server with its own disk and NIC", func() { m.create(nil) },
			map[string]int{"vcpu": 2, "ram": 4096, "nics": 1, "volumes": 1, "gigabytes": 20}},
		{"a server with what is there", func() {
			m.create(object{
				"machineType": "g2i.4", "networking": object{"nicIds": []string{iaasmock.DefaultNICID}},
				"bootVolume": object{"source": object{"type": "volume", "id": iaasmock.DefaultBootVolumeID}},
			})
		}, map[string]int{"vcpu": 4, "ram": 16384}},
		{"servers that are being deleted", func() {
			for _, server := range m.cloud.Servers() {
				m.want(204, "DELETE", inRegion+"/servers/"+server.ID, nil)
			}
		}, map[string]int{}},
		{"servers that are gone", func() { m.clock.Step(remove) },
			map[string]int{"vcpu": -6, "ram": -20480, "nics": -1, "volumes": -1, "gigabytes": -20}},
	} {
		before := m.usage()
		row.do()
		if diff := cmp.Diff(row.want, m.change(before)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	other := m.want(200, "GET", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu02/quotas", nil)["quotas"].(object)
	if used := other["vcpu"].(object); used["usage"] != float64(0) ||
		used["limit"] != float64(iaasmock.DefaultQuota().VCPUs) {
		t.Errorf("another project's are %v", used)
	}
}

func TestQuotasAreEnforced(t *testing.T) {
	for _, row := range []struct {
		limit   func(*iaasmock.Quota)
		message string // empty if the server is made
	}{
		{func(q *iaasmock.Quota) { q.VCPUs, q.RAM, q.NICs, q.Volumes, q.Gigabytes = 2, 4096, 2, 3, 80 }, ""},
		{func(q *iaasmock.Quota) { q.VCPUs = 1 }, "cores: Requested 2, but already used 0 of 1 cores"},
		{func(q *iaasmock.Quota) { q.RAM = 5 }, "ram: Requested 4096, but already used 0 of 5 ram"},
		{func(q *iaasmock.Quota) { q.NICs = 1 }, "ports: Requested 1, but already used 1 of 1 ports"},
		{func(q *iaasmock.Quota) { q.Volumes = 2 }, "volumes: Requested 1, but already used 2 of 2 volumes"},
		{func(q *iaasmock.Quota) { q.Gigabytes = 79 }, "gigabytes: Requested 20, but already used 60 of 79 gigabytes"},
	} {
		quota := iaasmock.DefaultQuota()
		row.limit(&quota)
		m := openMock(t, iaasmock.WithQuota(quota))
		if row.message == "" {
			m.create(nil)
			m.want(403, "POST", inRegion+"/servers", serverBody(nil))
			m.want(201, "POST", "/v2/projects/"+iaasmock.SecondProjectID+"/regions/eu02/servers", serverBody(nil))
			continue
		}
		before := m.usage()
		if got := m.want(403, "POST", inRegion+"/servers", serverBody(nil))["msg"]; got != "Quota exceeded for "+row.message {
			t.Errorf("said %q\nwant %q", got, row.message)
		}
		if changed := m.change(before); len(changed) > 0 {
			t.Errorf("%s: all the same there is more: %v", row.message, changed)
		}
	}
}

func smallNetwork(prefix string) iaasmock.Option {
	catalogue := iaasmock.DefaultCatalogue()
	catalogue.NICs = nil
	catalogue.Networks = []iaasmock.Network{{
		ID: iaasmock.DefaultNetworkID, ProjectID: iaasmock.DefaultProjectID, Region: iaasmock.DefaultRegion,
		Name: "small", IPv4Prefix: prefix,
	}}
	return iaasmock.WithCatalogue(catalogue)
}

func TestAddressesAreUniqueAndComeBack(t *testing.T) {
	m := openMock(t, smallNetwork("10.9.0.0/29")) // .2 to .6
	var ids []string
	seen := map[string]bool{}
	for range 5 {
		id := m.create(nil)
		ids = append(ids, id)
		nic, _ := m.nic(m.server(id).NICIDs[0])
		if seen[nic.IPv4] || !strings.HasPrefix(nic.IPv4, "10.9.0.") {
			t.Errorf("address %s", nic.IPv4)
		}
		seen[nic.IPv4] = true
	}

	// As on STACKIT, the request succeeds, and the server shows later that the network is
	// full.
	late := m.create(nil)
	m.clock.Step(boot)
	if message := m.wantStatus(late, "ERROR")["errorMessage"].(string); !strings.Contains(
		message, "Failed to allocate the network(s)") {
		t.Errorf("errorMessage is %q", message)
	}
	m.want(409, "POST", inRegion+"/networks/"+iaasmock.DefaultNetworkID+"/nics", object{})

	m.want(204, "DELETE", inRegion+"/servers/"+ids[2], nil)
	m.clock.Step(remove)
	again := m.create(nil)
	m.clock.Step(boot)
	m.wantStatus(again, "ACTIVE")
}

func TestChosenAddresses(t *testing.T) {
	m := openMock(t)
	nics := inRegion + "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	chosen := m.want(201, "POST", nics, object{"ipv4": "10.0.7.7"})
	if chosen["ipv4"] != "10.0.7.7" {
		t.Errorf("created as %v", chosen)
	}
	m.want(409, "POST", nics, object{"ipv4": "10.0.7.7"})
	m.want(204, "DELETE", nics+"/"+chosen["id"].(string), nil)
	m.want(201, "POST", nics, object{"ipv4": "10.0.7.7"})
}

// A client must not take a new server for the one that had its address before.
func TestAReleasedAddressIsUsedAgainAtOnce(t *testing.T) {
	m := openMock(t, smallNetwork("10.9.0.0/29")) // .2 to .6
	create := func() (id, address string) {
		id = m.create(nil)
		nic, _ := m.nic(m.server(id).NICIDs[0])
		return id, nic.IPv4
	}
	first, address := create()
	second, _ := create()
	for _, id := range []string{second, first} {
		if err := m.cloud.RemoveServer(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{address, "10.9.0.3", "10.9.0.4", "10.9.0.5", "10.9.0.6"} {
		if _, got := create(); got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
}

func TestNICDelay(t *testing.T) {
	m := openMock(t, iaasmock.WithNICDelay(time.Minute), iaasmock.WithListLag(time.Second))
	id := m.create(nil)
	m.create(object{"name": "other", "networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	want := func(own, listed int) {
		t.Helper()
		for path, want := range map[string]int{
			"/servers/" + id + "/nics": own, "/nics": 1 + own, "/networks/" + iaasmock.DefaultNetworkID + "/nics": 1 + own,
		} {
			if got := len(m.list(path)); got != want {
				t.Errorf("%s has %d NICs, want %d", path, got, want)
			}
		}
		shown := m.want(200, "GET", inRegion+"/servers/"+id+"?details=true", nil)["nics"].([]any)
		lagging := m.list("/servers?details=true")
		if inList := lagging[0].(object)["nics"].([]any); len(shown) != own || len(inList) != listed {
			t.Errorf("the server shows %v, a list that lags %v; want %d and %d", shown, inList, own, listed)
		}
		if inList := lagging[1].(object)["nics"].([]any); len(inList) != 1 {
			t.Errorf("the other one, with a NIC of its own, shows %v", inList)
		}
	}
	m.clock.Step(time.Minute - time.Nanosecond)
	m.wantStatus(id, "ACTIVE")
	want(0, 0)
	m.clock.Step(time.Nanosecond)
	want(1, 0)
	m.clock.Step(time.Second)
	want(1, 1)
}

func TestAddressDelay(t *testing.T) {
	const lag = time.Second
	m := openMock(t, iaasmock.WithAddressDelay(boot+time.Minute), iaasmock.WithListLag(lag))
	id := m.create(object{"networking": object{"networkId": iaasmock.DefaultDualStackNetworkID}})
	owner := inRegion + "/servers/" + id
	nicID := m.server(id).NICIDs[0]
	wantAddresses := func(ipv4, ipv6 any) {
		t.Helper()
		inServer := m.want(200, "GET", owner+"?details=true", nil)["nics"].([]any)[0].(object)
		for where, nic := range map[string]object{
			"details": inServer, "its NICs": m.list("/servers/" + id + "/nics")[0].(object),
			"NIC": m.want(200, "GET", inRegion+"/nics/"+nicID, nil),
		} {
			if nic["ipv4"] != ipv4 || nic["ipv6"] != ipv6 || nic["mac"] == "" {
				t.Errorf("%s show %v", where, nic)
			}
		}
		seen, _ := m.nic(nicID)
		if want, _ := ipv4.(string); seen.IPv4 != want {
			t.Errorf("NICs shows %+v", seen)
		}
	}
	m.clock.Step(boot + time.Minute - time.Nanosecond)
	m.wantStatus(id, "ACTIVE")
	wantAddresses(nil, nil)
	m.clock.Step(time.Nanosecond)
	wantAddresses("10.1.0.2", "fd00:1::2")
	listed := func() any {
		return m.list("/servers?details=true")[0].(object)["nics"].([]any)[0].(object)["ipv4"]
	}
	if got := listed(); got != nil {
		t.Errorf("a list that lags shows %v at once", got)
	}
	m.clock.Step(lag)
	if got := listed(); got != "10.1.0.2" {
		t.Errorf("a list that lags shows %v in the end", got)
	}
}

func TestAddressDelayIsForNewNICsOnly(t *testing.T) {
	m := openMock(t, iaasmock.WithAddressDelay(time.Minute))
	m.create(object{"networking": object{"nicIds": []string{iaasmock.DefaultNICID}}})
	if nic, _ := m.nic(iaasmock.DefaultNICID); nic.IPv4 != "10.0.0.2" {
		t.Errorf("the NIC of nicIds is %+v", nic)
	}

	// Addresses that are still hidden are released, too.
	full := openMock(t, smallNetwork("10.9.0.0/30"), iaasmock.WithAddressDelay(time.Minute)) // .2
	if err := full.cloud.RemoveServer(full.create(nil)); err != nil {
		t.Fatal(err)
	}
	id := full.create(nil)
	full.clock.Step(time.Minute)
	if nic, _ := full.nic(full.server(id).NICIDs[0]); nic.IPv4 != "10.9.0.2" {
		t.Errorf("the next NIC is %+v", nic)
	}
}

// A seed repeats the order of NICs, which is another one from read to read.
func TestNICsComeInRandomOrder(t *testing.T) {
	const network = "/networks/" + iaasmock.DefaultNetworkID + "/nics"
	run := func() (orders []string) {
		m := openMock(t, iaasmock.WithSeed(3))
		ids := []string{iaasmock.DefaultNICID}
		for range 4 {
			ids = append(ids, m.want(201, "POST", inRegion+network, object{})["id"].(string))
		}
		server := "/servers/" + m.create(object{"networking": object{"nicIds": ids}})
		for _, row := range []struct{ path, field string }{
			{server + "/nics", "items"}, {network, "items"}, {"/nics", "items"}, {server + "?details=true", "nics"},
		} {
			seen := map[string]bool{}
			for range 10 {
				order := ""
				for _, nic := range m.want(200, "GET", inRegion+row.path, nil)[row.field].([]any) {
					id, ok := nic.(object)["id"].(string)
					if !ok {
						id = nic.(object)["nicId"].(string)
					}
					order += fmt.Sprint(slices.Index(ids, id))
				}
				if seen[order] = true; len(order) != len(ids) || strings.Contains(order, "-") {
					t.Errorf("%s shows the NICs %s", row.path, order)
				}
				orders = append(orders, order)
			}
			if len(seen) < 5 {
				t.Errorf("%s: ten reads have only the orders %v", row.path, seen)
			}
		}
		return orders
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("the same seed has other orders (-first +second):\n%s", diff)
	}
}
