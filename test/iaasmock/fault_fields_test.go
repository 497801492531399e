// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/openapi"
)

var times = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]+"`)

// said is what a client sees of a call: the answer, or that there is none, and the time.
func (m *mock) said(method, path string, body any) string {
	m.t.Helper()
	response, raw, err := m.try(method, inRegion+path, body)
	calls := m.cloud.Calls()
	took := calls[len(calls)-1].Duration
	if response == nil {
		return fmt.Sprintf("no answer in %s", took)
	}
	text := times.ReplaceAllString(string(raw), "TIME")
	return fmt.Sprintln(response.StatusCode, response.Header["Content-Type"], response.Header["Retry-After"],
		text, err, took)
}

// faultRow is a field: a fault with it does another thing than the same fault without it.
type faultRow struct {
	with, without iaasmock.Fault
	// see tells what a client sees. The server "old" is ACTIVE.
	see func(m *mock, old string) string
}

// faultRows has a row for each field of a Fault, by its name.
func faultRows() map[string]faultRow {
	type fault = iaasmock.Fault
	list := func(m *mock, _ string) string { return m.said("GET", "/servers", nil) }
	twice := func(m *mock, old string) string { return list(m, old) + list(m, old) + list(m, old) }
	create := func(m *mock, _ string) string {
		body := serverBody(object{"name": "new", "labels": object{"a": "b"}})
		text := m.said("POST", "/servers", body)
		m.clock.Step(time.Hour)
		for _, s := range m.cloud.Servers() {
			text += fmt.Sprintln(s.Name, s.Status, s.ErrorMessage, s.Labels)
			_ = m.said("DELETE", "/servers/"+s.ID, nil)
		}
		m.clock.Step(time.Hour)
		for _, v := range m.cloud.Volumes() {
			text += fmt.Sprintln(v.Name != "", v.Status)
		}
		return text
	}
	shown := func(m *mock, old string) string {
		_, raw, err := m.try("POST", inRegion+"/servers", serverBody(object{"name": "new"}))
		return fmt.Sprint(strings.Contains(string(raw), old), err, len(m.cloud.Servers()))
	}
	read := func(m *mock, old string) string { return m.said("GET", "/servers/"+old, nil) }
	removed := func(m *mock, old string) string {
		_ = m.said("DELETE", "/servers/"+old, nil)
		text := read(m, old)
		m.clock.Step(time.Hour)
		return text + read(m, old)
	}
	token := func(m *mock, _ string) string {
		m.login(iaasmock.DefaultProjectID)
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(m.token, claims); err != nil {
			m.t.Fatal(err)
		}
		expires, _ := claims["exp"].(float64)
		return fmt.Sprint(int64(expires) - m.clock.Now().Unix())
	}
	broken := fault{Operation: "ListServers", Status: 503}
	and := func(f fault, change func(*fault)) fault { change(&f); return f }
	ends := fault{Operation: "CreateServer", FinalStatus: "ERROR"}
	slow := fault{Delay: time.Second, DelayMax: time.Hour}
	rated := and(broken, func(f *fault) { f.Rate = 1 })
	return map[string]faultRow{
		"Name": {and(broken, func(f *fault) { f.Name = "a" }), broken,
			func(m *mock, _ string) string { return m.cloud.Faults()[0].Name }},
		"Operation":   {broken, fault{Status: 503}, read},
		"Match":       {and(broken, func(f *fault) { f.Match = func(*http.Request) bool { return false } }), broken, list},
		"Server":      {fault{Status: 503, Server: "old"}, fault{Status: 503, Server: "other"}, read},
		"MachineType": {and(ends, func(f *fault) { f.MachineType = "m2i.8" }), ends, create},
		"Zone":        {and(ends, func(f *fault) { f.Zone = iaasmock.DefaultAvailabilityZone }), ends, create},
		"Probability": {and(broken, func(f *fault) { f.Probability = 0.01 }), broken, list},
		"Rate":        {rated, broken, list},
		"Burst":       {and(rated, func(f *fault) { f.Burst = 2 }), rated, twice},
		"Count":       {and(broken, func(f *fault) { f.Count = 1 }), broken, twice},
		"After":       {and(broken, func(f *fault) { f.After = time.Minute }), broken, list},
		"Duration": {and(broken, func(f *fault) { f.Duration = time.Minute }), broken, func(m *mock, old string) string {
			m.clock.Step(time.Hour)
			return list(m, old)
		}},
		"Delay":       {fault{Delay: time.Second}, fault{}, list},
		"DelayMax":    {slow, fault{Delay: time.Second}, list},
		"AnswerDelay": {fault{AnswerDelay: time.Second}, fault{}, list},
		"Status":      {broken, fault{}, list},
		"Body":        {and(broken, func(f *fault) { f.Body = "{}" }), broken, list},
		"ContentType": {and(broken, func(f *fault) { f.ContentType = "text/html" }), broken, list},
		"Header":      {fault{Header: http.Header{"Retry-After": {"7"}}}, fault{}, list},
		"Executed": {fault{Operation: "CreateServer", Status: 504, Executed: true},
			fault{Operation: "CreateServer", Status: 504}, shown},
		"DropBefore": {fault{DropBefore: true}, fault{}, shown},
		"DropAfter":  {fault{DropAfter: true}, fault{}, list},
		"HalfAnswer": {fault{HalfAnswer: true}, fault{}, list},
		"NeverAnswers": {fault{NeverAnswers: true}, fault{}, func(m *mock, _ string) string {
			client := http.Client{Timeout: time.Second}
			response, err := client.Get(m.url + inRegion + "/servers")
			if err != nil {
				return "no answer"
			}
			return fmt.Sprint(response.Body.Close())
		}},
		"FinalStatus":          {ends, fault{}, create},
		"ErrorMessage":         {and(ends, func(f *fault) { f.ErrorMessage = "a" }), ends, create},
		"NeverBoots":           {fault{Operation: "CreateServer", NeverBoots: true}, fault{}, create},
		"NeverGone":            {fault{Operation: "DeleteServer", NeverGone: true}, fault{}, removed},
		"Duplicate":            {fault{Operation: "CreateServer", Duplicate: true}, fault{}, create},
		"DropLabels":           {fault{Operation: "CreateServer", DropLabels: true}, fault{}, create},
		"OwnBootVolume":        {fault{Operation: "CreateServer", OwnBootVolume: true}, fault{}, create},
		"OtherServer":          {fault{Operation: "CreateServer", OtherServer: "old"}, fault{}, shown},
		"Stale":                {fault{Operation: "GetServer", Stale: time.Hour}, fault{}, read},
		"ForbiddenAfterDelete": {fault{Operation: "GetServer", ForbiddenAfterDelete: true}, fault{}, removed},
		"EmptyList":            {fault{Operation: "ListServers", EmptyList: true}, fault{}, list},
		"CutOffAt": {fault{Operation: "ListProjectNICs", CutOffAt: 1}, fault{}, func(m *mock, _ string) string {
			return m.said("GET", "/nics", nil)
		}},
		"IgnoreSelector": {fault{Operation: "ListServers", IgnoreSelector: true}, fault{}, func(m *mock, _ string) string {
			return m.said("GET", "/servers?label_selector=none", nil)
		}},
		"EmptyProject":       {fault{EmptyProject: true}, fault{}, read},
		"TokenWithoutExpiry": {fault{Operation: "Token", TokenWithoutExpiry: true}, fault{}, token},
		"TokenSkew":          {fault{Operation: "Token", TokenSkew: -time.Minute}, fault{}, token},
	}
}

// Each field of a Fault changes an answer, a time or what is made: none does nothing.
func TestEveryFieldOfAFault(t *testing.T) {
	rows := faultRows()
	for i := range reflect.TypeFor[iaasmock.Fault]().NumField() {
		name := reflect.TypeFor[iaasmock.Fault]().Field(i).Name
		row, ok := rows[name]
		if !ok {
			t.Errorf("no row for %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if row.with.Match == nil { // each can be written as JSON
				encoded, err := json.Marshal(row.with)
				if err != nil || row.with.UnmarshalJSON(encoded) != nil {
					t.Fatalf("%s: %v, %v", encoded, err, row.with.UnmarshalJSON(encoded))
				}
			}
			see := func(f iaasmock.Fault) string {
				m := instantMock(t, iaasmock.WithSeed(1))
				old := m.create(object{"name": "old", "labels": object{"a": "b"}})
				m.clock.Step(boot)
				m.cloud.Inject(f)
				return row.see(m, old)
			}
			with, without := see(row.with), see(row.without)
			t.Logf("with it:    %s\nwithout it: %s", with, without)
			if with == without {
				t.Errorf("%s does nothing: %s", name, with)
			}
		})
	}
}

// A field is refused with each operation with which it does nothing: fault/validate.go.
func TestAFaultThatDoesNothingIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector needs a minute for it")
	}
	without := map[string]string{} // many fields have the same
	for name, row := range faultRows() {
		if name == "Name" || name == "Operation" || name == "NeverAnswers" {
			// The last takes the client's time, whatever the operation.
			continue
		}
		own := row.with.Operation // TestEveryFieldOfAFault shows what it does
		for _, operation := range append([]string{fault.OperationToken, fault.OperationUnknown}, fault.Operations...) {
			if operation == own || name == "Executed" && !changes.MatchString(operation) {
				// A read that is executed does not show.
				continue
			}
			row.with.Operation, row.without.Operation = operation, operation
			if row.with.Validate() != nil {
				continue
			}
			key := fmt.Sprintf("%+v", row.without)
			if without[key] == "" {
				without[key] = everythingSeen(t, row.without)
			}
			if everythingSeen(t, row.with) == without[key] {
				t.Errorf("%s does nothing with %s, and is not refused", name, operation)
			}
		}
	}
}

// changes are the operations that change something.
var changes = regexp.MustCompile("^(Create|Update|Delete)")

// everythingSeen is what clients see of a few calls of a fault's operation and, when it is over, of the cloud.
func everythingSeen(t *testing.T, f iaasmock.Fault) (text string) {
	t.Helper()
	clock, catalogue := clocktesting.NewFakeClock(time.Unix(1<<31, 0)), iaasmock.DefaultCatalogue()
	for _, only := range catalogue.Resources { // no list has less than two items
		if only.Kind == iaasmock.KindKeypair || only.Kind == iaasmock.KindAffinityGroup {
			only.ID = "second"
			catalogue.Resources = append(catalogue.Resources, only)
		}
	}
	cloud := iaasmock.New(iaasmock.WithClock(instantClock{clock}), iaasmock.WithSeed(1), iaasmock.WithoutAuthentication(),
		iaasmock.WithCatalogue(catalogue))
	ask := func(method, path string, body object) (id string) {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(encoded))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		func() {
			defer func() { text += fmt.Sprint(recover()) }() // http.ErrAbortHandler is the end of a connection
			cloud.ServeHTTP(answer, request)
		}()
		took := cloud.Calls()[len(cloud.Calls())-1].Duration
		text += fmt.Sprintln(answer.Code, answer.Header()["Content-Type"], answer.Header()["Retry-After"], answer.Body, took)
		made := struct{ ID string }{}
		_ = json.Unmarshal(answer.Body.Bytes(), &made)
		return made.ID
	}
	network := inRegion + "/networks/" + iaasmock.DefaultNetworkID
	second := ask("POST", network+"/nics", object{"name": "second"})
	ids := map[string]string{
		"projectId": iaasmock.DefaultProjectID, "region": iaasmock.DefaultRegion, "networkId": iaasmock.DefaultNetworkID,
		"serverId": ask("POST", inRegion+"/servers", serverBody(object{"name": "old", "labels": object{"a": "b"},
			"networking": object{"nicIds": []any{iaasmock.DefaultNICID, second}}, "volumes": []any{iaasmock.DefaultVolumeID}})),
		"nicId": iaasmock.DefaultNICID, "volumeId": iaasmock.DefaultBootVolumeID, "imageId": iaasmock.DefaultImageID,
		"securityGroupId": iaasmock.DefaultSecurityGroupID, "affinityGroupId": iaasmock.DefaultAffinityGroupID,
		"snapshotId": iaasmock.DefaultSnapshotID, "keypairName": iaasmock.DefaultKeypairName,
		"machineType": iaasmock.DefaultMachineType, "volumePerformanceClass": "storage_premium_perf1",
	}
	ask("POST", inRegion+"/servers", serverBody(object{"name": "another"}))
	if f.Operation == "DeleteNetwork" {
		ids["networkId"] = ask("POST", inRegion+"/networks", object{"name": "a", "ipv4": object{"prefixLength": 25}})
	}
	clock.Step(boot)
	cloud.Inject(f)
	text = ""
	method, path := addressOf(f.Operation, ids)
	body := map[string]object{
		"CreateServer": serverBody(object{"name": "old"}), "CreateVolume": {"availabilityZone": "eu01-1", "size": 1},
		"CreateNetwork": {"name": "b", "ipv4": object{"prefixLength": 25}},
	}[f.Operation]
	if body == nil {
		body = object{"name": "b"}
	}
	ask(method, path, body)
	ask(method, path+"?label_selector=none", body)
	ask(method, path, body)
	clock.Step(time.Hour)
	ask(method, path, body)
	cloud.ClearFaults()
	clock.Step(time.Hour)
	for _, collection := range []string{"/servers?details=true", "/nics", "/volumes", "/networks"} {
		ask("GET", inRegion+collection, nil)
	}
	return text
}

// addressOf returns where an operation is asked for.
func addressOf(operation string, ids map[string]string) (method, path string) {
	address := addresses()[operation]
	for name, id := range ids {
		address[1] = strings.ReplaceAll(address[1], "{"+name+"}", id)
	}
	return address[0], address[1]
}

// addresses are the methods and paths of operations.
var addresses = sync.OnceValue(func() map[string][2]string {
	found := map[string][2]string{
		fault.OperationToken: {"POST", tokenPath}, fault.OperationUnknown: {"GET", inRegion + "/backups"},
		"GetProject": {"GET", "/resource-manager/v2/projects/{projectId}"},
	}
	for path, item := range openapi.Load().Paths.Map() {
		for method, described := range item.Operations() {
			found[described.OperationID] = [2]string{method, path}
		}
	}
	return found
})
