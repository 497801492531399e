// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"net/http"
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
	for text, want := range map[string]fault.Fault{
		" no-capacity ": capacity,
		` {"preset":"no-capacity","count":3,"server":"m1"}`: three,
		`{"operation":"CreateServer","rate":2.5,"burst":4,"status":429,"after":"1m"}`: {
			Operation: "CreateServer", Rate: 2.5, Burst: 4, Status: 429, After: time.Minute},
		`{"preset":"brown-out","duration":"0s","operation":"","probability":null}`: {
			Name: "brown-out", Delay: 2 * time.Second, DelayMax: 8 * time.Second},
		`{"status":429,"header":{"retry-after":["5"],"X-A":["b"]}}`: {
			Status: 429, Header: http.Header{"Retry-After": {"5"}, "X-A": {"b"}}},
	} {
		got, err := fault.Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":              `preset: unknown ""; known: no-capacity, quota-exceeded,`,
		"no-capacities": `preset: unknown "no-capacities"; known: no-capacity, quota-exceeded,`,
		"slow,count=3":  `preset: unknown "slow,count=3"; known: `,
		`{"status":`:    `a fault is a JSON object such as`,

		`{"preset":3}`:                       "preset: invalid 3; want a string",
		`{"preset":"slow","cuont":3}`:        "cuont: unknown field; known: preset, name, operation,",
		`{"Z":1,"preset":"slow","A":1}`:      "A: unknown field",
		`{"preset":"slow","count":"3"}`:      `count: invalid "3"; want a whole number`,
		`{"preset":"slow","probability":0}`:  "probability: 0 hits no call",
		`{"preset":"slow","probability":""}`: `probability: invalid ""; want a number`,
		`{"preset":"slow","probability":10}`: "probability: invalid 10; want more than 0 and at most 1",
		`{"delay":5}`:                        `delay: invalid 5; want a duration such as "1m30s"`,
		`{"delay":"5"}`:                      `delay: invalid duration "5"; want one such as "1m30s"`,
		`{"delay":"-5s"}`:                    "delay: invalid -5s",
		`{"status":503,"count":-3}`:          "count: invalid -3",
		`{"status":429,"rate":-1}`:           "rate: invalid -1; want the calls a second to let through",
		`{"status":429,"burst":4}`:           "burst: invalid 4; want 0 or more, and 0 without a rate",
		`{"status":99}`:                      "status: invalid 99; want 200 to 599",
		`{"body":"x"}`:                       "body and contentType need a status",
		`{"delay":"2s","delayMax":"1s"}`:     "delayMax: invalid 1s; want the delay of 2s or more",
		`{"duplicate":"maybe"}`:              `duplicate: invalid "maybe"; want true or false`,
		`{"count":3}`:                        "the fault does nothing",
		`{"status":503} {}`:                  "a fault is a JSON object such as",

		`{"operation":"MakeServer","status":503}`:                   `operation: unknown "MakeServer"; known: `,
		`{"operation":"CreateServer","executed":true}`:              "executed needs a status or an otherServer",
		`{"operation":"CreateServer","emptyProject":true}`:          "operation: emptyProject needs IaaS or ListServers or",
		`{"operation":"CreateServer","errorMessage":"x"}`:           "errorMessage needs a finalStatus",
		`{"operation":"ListServers","neverBoots":true}`:             "operation: neverBoots needs CreateServer",
		`{"operation":"ListServers","server":"m1","status":503}`:    "operation: server needs IaaS or CreateServer or",
		`{"operation":"DeleteServer","zone":"eu01-1","status":503}`: "operation: zone needs CreateServer",
		`{"operation":"ListServers","cutOffAt":-1}`:                 "cutOffAt: invalid -1; want the number of items",
		`{"status":429,"header":"Retry-After: 5"}`: `header: invalid "Retry-After: 5"; ` +
			`want {"Retry-After":["5"]}`,
		`{"status":429,"header":{"Retry-After":["5\r\nX-Other: y"]}}`: `header: invalid "Retry-After"; ` +
			`want a name and values without`,
	} {
		if _, err := fault.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
