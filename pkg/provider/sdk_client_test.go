// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// The API may repeat userData in a message, and so may a server that fails.
func TestUserDataStaysOutOfErrors(t *testing.T) {
	const userData = "password: s3cr3t of mine"
	encoded := base64.StdEncoding.EncodeToString([]byte(userData))
	answered := func(status int, body string) iaasmock.Fault {
		return iaasmock.Fault{Operation: "CreateServer", Status: status, Body: body}
	}
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		call  func(r *rig, m *v1alpha1.Machine) error
		want  codes.Code
	}{
		"CreateMachine, refused": {answered(400, `{"code":400,"msg":"cannot read `+userData+`"}`), (*rig).createErr,
			codes.InvalidArgument},
		"CreateMachine, accepted": {
			answered(201, `{"id":"`+someServerID+`","name":"m1","machineType":"a","createdAt":"`+userData+`"}`),
			(*rig).createErr, codes.Unavailable},
		"CreateMachine, in ERROR": {iaasmock.Fault{Operation: "CreateServer", FinalStatus: iaasmock.StatusError,
			ErrorMessage: "cannot read " + userData}, (*rig).createErr, codes.Internal},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.secret.Data["userData"] = []byte(userData)
			r.cloud.Inject(row.fault)
			var err error
			log := logAt(t, "4", func() { err = row.call(r, machine("m1")) })
			wantCode(t, err, row.want)
			wantSaid(t, err.Error(), "(redacted)")
			for _, secret := range []string{"s3cr3t", encoded} {
				if strings.Contains(err.Error(), secret) || strings.Contains(log, secret) {
					t.Errorf("%q or the log shows %q", err, secret)
				}
			}
		})
	}
}

// showServer lets the API's reads of servers show m1 as change returns it.
func (r *rig) showServer(change func(server map[string]any) map[string]any) {
	network := r.transport
	r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := network.RoundTrip(request)
		if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusOK ||
			!strings.Contains(request.URL.Path, "/servers") || strings.HasSuffix(request.URL.Path, "/nics") {
			return response, err
		}
		defer func() { _ = response.Body.Close() }()
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return nil, err
		}
		items, isList := answer["items"].([]any)
		for i := range items {
			if server := items[i].(map[string]any); server["name"] == "m1" {
				items[i] = change(server)
			}
		}
		var shown any = answer
		if !isList && answer["name"] == "m1" {
			shown = change(answer)
		}
		body, err := json.Marshal(shown)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return response, err
	})
	r.restart()
}

func with(field string, value any) func(map[string]any) map[string]any {
	return func(server map[string]any) map[string]any { server[field] = value; return server }
}

func without(field string) func(map[string]any) map[string]any {
	return func(server map[string]any) map[string]any { delete(server, field); return server }
}

// The SDK refuses a whole list for one unexpected field of one server. The list is used all the same, and shows that
// server, too: otherwise its Machine would get a second one.
func TestAServerWithAnOddFieldIsShown(t *testing.T) {
	for name, odd := range map[string]func(map[string]any) map[string]any{
		"no machine type":              without("machineType"),
		"no name":                      without("name"),
		"an unknown status":            with("status", "HIBERNATING"),
		"a status that is a number":    with("status", 7),
		"a time that is none":          with("createdAt", "yesterday"),
		"a number that is a string":    with("bootVolume", map[string]any{"size": "20"}),
		"a message that is an object":  with("errorMessage", map[string]any{"code": 5}),
		"a maintenance without an end": with("maintenanceWindow", map[string]any{"status": "PLANNED"}),
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			r.showServer(odd)
			if listed := r.list(); len(listed) != 1 || listed[m.Spec.ProviderID] != "m1" && name != "no name" {
				t.Errorf("ListMachines: %v, want m1", listed)
			}
			began := time.Now()
			r.mustCreate(machine("m2"))
			wantWithin(t, began, bootDuration+10*time.Second)
			if err := r.statusErr(m); !strings.Contains(name, "status") {
				wantCode(t, err, codes.OK)
				if again := r.mustCreate(machine("m1")).ProviderID; again != m.Spec.ProviderID {
					t.Errorf("CreateMachine makes a second server %s beside %s", again, m.Spec.ProviderID)
				}
			}
			began = time.Now()
			r.mustRemove(machine("m1")) // without its ProviderID
			wantWithin(t, began, deleteDuration+time.Minute)
			r.wantNamed("m1", 0, 0)
			r.onlyServer()
		})
	}
}

// ID, name, labels and metadata determine whose a server is. If one of them has another type, no call guesses.
func TestAServerOfUnknownIdentityMakesAListUnreadable(t *testing.T) {
	for name, odd := range map[string]func(map[string]any) map[string]any{
		"no object":                  func(map[string]any) map[string]any { return nil },
		"no ID":                      without("id"),
		"an ID that is none":         with("id", "server-5"),
		"a name that is a number":    with("name", 5),
		"labels that are a list":     with("labels", []any{"kubernetes.io/machine=m1"}),
		"metadata that are a string": with("metadata", "kubernetes.io-cluster-shoot--a--b=1"),
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			id := r.onlyServer().ID
			r.showServer(odd)
			for method, err := range map[string]error{
				"ListMachines": r.listErr(), "CreateMachine": r.createErr(machine("m1")), "DeleteMachine": r.remove(machine("m1")),
			} {
				wantCode(t, err, codes.Unavailable)
				wantSaid(t, method+": "+err.Error(), "the answer cannot be read")
			}
			if r.statusErr(m) == nil {
				t.Error("GetMachineStatus succeeds")
			}
			r.wantOnly(id)
		})
	}
}
