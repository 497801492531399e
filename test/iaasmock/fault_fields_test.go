// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package iaasmock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
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
	return fmt.Sprintln(response.StatusCode, response.Header["Content-Type"], response.Header["Retry-After"], text, err, took)
}

// faultRow is a field: a fault with it does another thing than the same fault without it.
type faultRow struct {
	with, without iaasmock.Fault
	// see tells what a client sees. The server "old" is ACTIVE.
	see func(m *mock, old string) string
}

// Each field of a Fault changes an answer, a time or what is made: none does nothing.
func TestEveryFieldOfAFault(t *testing.T) {
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
	rows := map[string]faultRow{
		"Name":        {and(broken, func(f *fault) { f.Name = "a" }), broken, func(m *mock, _ string) string { return m.cloud.Faults()[0].Name }},
		"Operation":   {broken, fault{Status: 503}, read},
		"Match":       {and(broken, func(f *fault) { f.Match = func(*http.Request) bool { return false } }), broken, list},
		"Server":      {fault{Status: 503, Server: "other"}, fault{Status: 503}, read},
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
		"Executed":    {fault{Operation: "CreateServer", Status: 504, Executed: true}, fault{Operation: "CreateServer", Status: 504}, shown},
		"DropBefore":  {fault{DropBefore: true}, fault{}, shown},
		"DropAfter":   {fault{DropAfter: true}, fault{}, list},
		"HalfAnswer":  {fault{HalfAnswer: true}, fault{}, list},
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
	for i := range reflect.TypeFor[fault]().NumField() {
		name := reflect.TypeFor[fault]().Field(i).Name
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
			see := func(f fault) string {
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
