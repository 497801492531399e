// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

func TestParse(t *testing.T) {
	capacity := fault.Fault{
		Name: "no-capacity", Operation: "CreateServer", FinalStatus: "ERROR",
		ErrorMessage: "No valid host was found. There are not enough hosts available.",
	}
	three := capacity
	three.Count, three.Server = 3, "m1"
	for _, row := range []struct {
		text string
		want fault.Fault
	}{
		{"no-capacity", capacity},
		{"no-capacity,count=3,server=m1", three},
		{" no-capacity, count=3 ,server=m1", three},
		{`{"preset":"no-capacity","count":3,"server":"m1"}`, three},
		{"operation=ListServers,status=503,probability=0.1,duration=1m", fault.Fault{
			Operation: "ListServers", Status: 503, Probability: 0.1, Duration: time.Minute}},
		{"operation=CreateServer,rate=2.5,burst=4,status=429", fault.Fault{Operation: "CreateServer", Rate: 2.5, Burst: 4, Status: 429}},
		{`status=503,"body=a,b"`, fault.Fault{Status: 503, Body: "a,b"}},
		{`{"preset":"brown-out","duration":"0s","operation":"","probability":null}`, fault.Fault{
			Name: "brown-out", Delay: 2 * time.Second, DelayMax: 8 * time.Second}},
		{"status=429,header=retry-after: 5,header=X-A:b", fault.Fault{
			Status: 429, Header: http.Header{"Retry-After": {"5"}, "X-A": {"b"}}}},
	} {
		got, err := fault.Parse(row.text)
		if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", row.text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":                                "is not a fault such as no-capacity,count=3",
		`slow,"count=3`:                   "is not a fault such as",
		"no-capacities":                   `preset: unknown "no-capacities"; known: no-capacity, quota-exceeded,`,
		"slow,fast":                       "fast: a field needs a value, as in count=3",
		"slow,cuont=3":                    "cuont: unknown field; known: preset, name, operation,",
		"slow,count=many":                 `count: invalid "many"; want a whole number`,
		"slow,probability=0":              "probability: 0 would hit nothing",
		"slow,probability=NaN":            `probability: invalid "NaN"; want a number`,
		"slow,probability=10":             "probability: invalid 10; want more than 0 up to 1",
		"slow,duration=5":                 `duration: invalid duration "5"; want one such as "1m30s"`,
		`{"delay":5}`:                     `delay: invalid 5; want a duration such as "1m30s"`,
		"delay=-5s":                       "delay: invalid -5s",
		"status=503,count=-3":             "count: invalid -3",
		"status=429,rate=-1":              "rate: invalid -1; want the calls a second to let through",
		"status=429,burst=4":              "burst: invalid 4; want the calls to let through at once, with a rate",
		"status=503,operation=MakeServer": `operation: unknown "MakeServer"; known: `,
		"status=99":                       "status: invalid 99; want 200 to 599",
		"body=x":                          "body and contentType need a status",
		"operation=CreateServer,neverBoots=true,executed=true": "executed needs a status or an otherServer",
		"operation=CreateServer,emptyProject=true":             "operation: emptyProject needs IaaS or ListServers or",
		"operation=CreateServer,errorMessage=x":                "errorMessage needs a finalStatus",
		"operation=ListServers,neverBoots=true":                "operation: neverBoots needs CreateServer",
		"delay=2s,delayMax=1s":                                 "delayMax: 1s is less than the delay of 2s",
		"duplicate=maybe":                                      `duplicate: invalid "maybe"; want true or false`,
		"status=429,header=Retry":                              "header: invalid Retry; want",
		"count=3":                                              "the fault does nothing",
		`{"status":503} {}`:                                    "a fault is a JSON object such as",
		`{"preset":3}`:                                         "preset: invalid 3; want a text",
		`{"delay":"5"}`:                                        `delay: invalid duration "5"; want one such as "1m30s"`,
		`{"status":429,"header":"Retry-After: 5"}`:             `header: invalid "Retry-After: 5"; want {"Retry-After":["5"]}`,
		`{"Z":1,"preset":"slow","A":1}`:                        "A: unknown field",
	} {
		if _, err := fault.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseScenario(t *testing.T) {
	const written = `[{"preset":"slow","after":"1m","name":"later"}, {"status":503,"count":2}]`
	const asYAML = "- preset: slow\n  after: 1m\n  name: later\n# then\n- {status: 503, count: 2}\n"
	want := []fault.Fault{
		{Name: "later", After: time.Minute, Operation: "IaaS", Delay: 500 * time.Millisecond, DelayMax: 3 * time.Second},
		{Status: 503, Count: 2},
	}
	for _, text := range []string{written, asYAML} {
		got, err := fault.ParseScenario([]byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"preset: slow":                   "a scenario is a list of faults",
		"- preset: slow\n- count: 3":     "fault 2: the fault does nothing",
		"- slow":                         `fault 1: a fault is a JSON object such as`,
		"- preset: slow\n  after: 10":    `fault 1: after: invalid 10; want a duration`,
		"- {preset: slow, preset: slow}": "a scenario is a list of faults",
		"\t":                             "a scenario is a list of faults",
	} {
		if _, err := fault.ParseScenario([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Every field can be written, under its own name.
func TestEveryFieldOfAFaultIsInJSON(t *testing.T) {
	kind := reflect.TypeFor[fault.Fault]()
	for i := range kind.NumField() {
		field := kind.Field(i)
		if field.Name == "Match" {
			continue
		}
		var f fault.Fault
		switch value := reflect.ValueOf(&f).Elem().Field(i); value.Interface().(type) {
		case string:
			value.SetString("x")
		case bool:
			value.SetBool(true)
		case int, time.Duration:
			value.SetInt(1)
		case float64:
			value.SetFloat(1)
		case http.Header:
			value.Set(reflect.ValueOf(http.Header{"A": {"b"}}))
		default:
			t.Fatalf("%s has a type that this test does not know", field.Name)
		}
		encoded, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var shown map[string]any
		if err := json.Unmarshal(encoded, &shown); err != nil {
			t.Fatal(err)
		}
		name := strings.ToLower(field.Name[:1]) + field.Name[1:]
		if _, ok := shown[name]; !ok || len(shown) != 1 {
			t.Errorf("%s is shown as %s, want %s", field.Name, encoded, name)
		}
	}
}
