// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock/fault"
)

// What the driver makes of answers: of the API, and of a gateway before it.

// gatewaysPage is what nginx answers with any status.
const gatewaysPage = "<html>\r\n<head><title>403 Forbidden</title></head>\r\n" +
	"<body><center><h1>403 Forbidden</h1></center></body></html>"

// jwks is how the gateway answers while it does not know the key that a token was signed with.
const jwks = "Jwks doesn't have key to match kid or alg from Jwt"

// comesBackSoon checks that the manager calls again within seconds, if the call failed.
func comesBackSoon(t *testing.T, err error) {
	t.Helper()
	decoded, _ := status.FromError(err)
	if err != nil && !slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted},
		decoded.Code()) {
		t.Errorf("%v, want a code after which the manager comes back in seconds", err)
	}
}

// One page, whatever its status and the call that it answers, decides nothing about the class, the key or the
// server, even if the gateway had passed the call on.
func TestAGatewaysPageIsNotTheAPIsWord(t *testing.T) {
	creating := []string{"CreateServer", "ListServers", "GetServer", "UpdateNic", "ListNics", "ListServerNICs"}
	deleting := []string{"DeleteServer", "ListServers", "GetServer"}
	statuses := []int{401, 403, 404, 200, 202, 400, 409, 410, 422}
	if testing.Short() {
		statuses = statuses[:2]
	}
	for _, code := range statuses {
		for _, executed := range []bool{false, true} {
			for operation, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
				"create": (*rig).createErr, "delete": (*rig).remove,
				"list":   func(r *rig, _ *v1alpha1.Machine) error { return r.listErr() },
				"status": (*rig).statusErr, "initialize": (*rig).initErr,
			} {
				hit := map[string][]string{"create": creating, "delete": deleting, "list": {"ListServers"}}[operation]
				for _, asked := range append(hit, fault.OperationIaaS) {
					bubble(t, fmt.Sprintf("%s, %s, %d, executed %t", operation, asked, code, executed), func(t *testing.T) {
						r := newRig(t)
						r.setSpec(func(s map[string]any) { s["allowedAddresses"] = []string{"10.96.0.0/11"} })
						m := machine("m1")
						if operation != "create" {
							m = withID(m, r.mustCreate(m).ProviderID)
						}
						r.cloud.Inject(iaasmock.Fault{Operation: asked, Status: code, Body: gatewaysPage, ContentType: "text/html",
							Count: 1, Executed: executed})
						began := time.Now()
						for err := call(r, m); err != nil; err = call(r, m) {
							comesBackSoon(t, err)
							if code == http.StatusUnauthorized && strings.Contains(err.Error(), "Authentication failed") {
								t.Errorf("%v blames the key", err)
							}
							wantWithin(t, began, 10*time.Minute)
							<-time.After(5 * time.Second)
						}
						if servers := len(r.cloud.Servers()); servers != 1 && operation != "delete" ||
							operation == "delete" && servers != 0 {
							t.Errorf("there are %d servers", servers)
						}
					})
				}
			}
		}
	}
}

// While a gateway answers all calls, the text says so, and with which status.
func TestAGatewayThatAnswersForMinutes(t *testing.T) {
	for body, code := range map[string]int{
		gatewaysPage: http.StatusForbidden, jwks: http.StatusUnauthorized, "<html>maintenance</html>": http.StatusOK,
		"": http.StatusNotFound, `{"error":"Forbidden"}`: http.StatusBadRequest,
	} {
		bubble(t, body, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			m = withID(m, r.mustCreate(m).ProviderID)
			r.cloud.ResetCalls()
			r.cloud.Inject(iaasmock.Fault{Operation: fault.OperationIaaS, Status: code, Body: body, ContentType: "text/html",
				Duration: 6 * time.Minute})
			for _, call := range []func() error{r.listErr, func() error { return r.createErr(machine("m2")) },
				func() error { return r.statusErr(m) }} {
				err := call()
				wantReason(t, err, provider.ReasonAPIFailed)
				wantSaid(t, err.Error(), fmt.Sprintf("status %d, not the API's answer", code))
				isHinted := strings.Contains(err.Error(), "belong to the same environment")
				if isHinted != (code == http.StatusUnauthorized) {
					t.Errorf("%v: a hint at the credentials: %t", err, isHinted)
				}
			}
			if tokens := r.cloud.CallCounts()["Token"]; code == http.StatusUnauthorized && tokens > 15 {
				t.Errorf("%d tokens for 3 calls of 30 s and more: reads are to pause", tokens)
			}
			comesBackSoon(t, r.remove(m))
			<-time.After(6 * time.Minute)
			r.mustRemove(m)
		})
	}
}

// A 404 that the IaaS API did not write in its own form about the server is no sign that it is gone, nor is
// a page an acceptance of a DELETE.
func TestAForeign404ProvesNoServerGone(t *testing.T) {
	for _, body := range []string{
		gatewaysPage, "", "404 page not found", `{"code":404}`,
		`{"status":404,"error":"Not Found","message":"No message available"}`,
		`{"code":404,"msg":"resource not found: project"}`, `{"code":404,"msg":"project not found"}`,
		`{"code":404,"msg":"The requested region could not be found"}`,
	} {
		bubble(t, body, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			m = withID(m, r.mustCreate(m).ProviderID)
			for _, operation := range []string{"GetServer", "DeleteServer"} {
				r.cloud.Inject(iaasmock.Fault{Operation: operation, Status: http.StatusNotFound, Body: body,
					ContentType: "text/html", Duration: time.Minute})
			}
			r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", EmptyList: true, Duration: time.Minute})
			if r.remove(m) == nil && len(r.cloud.Servers()) > 0 {
				t.Error("the server is taken for gone, and runs")
			}
		})
	}
}

// A DELETE is accepted with no body. Whatever else has a status of success is a gateway's: the server is asked to go
// again.
func TestOnlyAnEmptyAnswerAcceptsADELETE(t *testing.T) {
	for body, deletes := range map[string]int{
		" ": 1, "{}": 1, "[]": 2, "null": 1, `"OK"`: 2, "123": 2, `{"message":"maintenance"}`: 2, `{"error":"Forbidden"}`: 2,
		gatewaysPage: 2,
	} {
		bubble(t, body, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			m = withID(m, r.mustCreate(m).ProviderID)
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusOK, Body: body, Count: 1,
				Executed: deletes == 1})
			if err := insist(func() error { return r.remove(m) }); err != nil {
				t.Error(err)
			}
			r.wantNothingLeft()
			r.wantCalls("DeleteServer", deletes)
		})
		bubble(t, "an orphan, "+body, func(t *testing.T) {
			r := newRig(t)
			r.mustCreate(machine("m1"))
			r.cloud.Inject(iaasmock.Fault{Operation: "DeleteServer", Status: http.StatusOK, Body: body})
			if err := r.delete(orphan("m1", r.onlyServer().ID)); (err == nil) != (deletes == 1) {
				t.Errorf("the manager is told %v", err)
			}
		})
	}
}

// A project or region that does not exist stays so, and needs somebody to correct it: it is told once it has
// lasted for 30 s. Shorter outages end no call.
func TestAProjectOrRegionThatDoesNotExist(t *testing.T) {
	missing := func(message string) iaasmock.Fault {
		return iaasmock.Fault{Operation: fault.OperationIaaS, Status: http.StatusNotFound,
			Body: `{"code":404,"msg":"` + message + `"}`}
	}
	regionEU99 := func(r *rig) { r.secret.Data["region"] = []byte("eu99") }
	for name, prepare := range map[string]func(*rig){
		"a region":                 regionEU99,
		"the project":              func(r *rig) { r.cloud.Inject(missing("project not found")) },
		"in the form of key pairs": func(r *rig) { r.cloud.Inject(missing("resource not found: project")) },
		"in words of its own":      func(r *rig) { r.cloud.Inject(missing("nothing here")) },
	} {
		bubble(t, "create, "+name, func(t *testing.T) {
			r := newRig(t)
			prepare(r)
			began := time.Now()
			err := r.createErr(machine("m1"))
			wantReason(t, err, provider.ReasonResourceMissing)
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "secret.projectId", "providerSpec.region", iaasmock.DefaultProjectID)
			wantWithin(t, began, time.Minute)
			if time.Since(began) < 30*time.Second {
				t.Errorf("it is told after %s", time.Since(began))
			}
		})
		bubble(t, "delete, "+name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			m = withID(m, r.mustCreate(m).ProviderID)
			server := r.onlyServer().ID
			r.restartNow()
			prepare(r)
			began := time.Now()
			wantReason(t, r.remove(m), provider.ReasonResourceMissing)
			wantWithin(t, began, time.Minute)
			r.wantOnly(server)
		})
	}
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"create": (*rig).createErr,
		"delete": func(r *rig, m *v1alpha1.Machine) error { return r.remove(withID(m, providerIDOf(someServerID))) },
	} {
		bubble(t, name+", one Machine after the other", func(t *testing.T) { // the first ones' lists delay the others'
			r := newRig(t)
			regionEU99(r)
			var told []<-chan error
			for i := range 6 {
				<-time.After(9 * time.Second)
				told = append(told, start(func() error {
					defer wantWithin(t, time.Now(), 2*time.Minute)
					return call(r, machine(fmt.Sprint("m", i)))
				}))
			}
			for _, err := range told {
				wantReason(t, <-err, provider.ReasonResourceMissing)
			}
		})
	}
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{"status": (*rig).statusErr,
		"initialize": (*rig).initErr} {
		bubble(t, name+", and reads of single servers are refused", func(t *testing.T) {
			r := newRig(t)
			regionEU99(r)
			r.cloud.Inject(iaasmock.Fault{Operation: "GetServer", Status: http.StatusForbidden})
			began := time.Now()
			err := call(r, withID(machine("m1"), providerIDOf(someServerID)))
			if got := reasonOf(err); got != provider.ReasonResourceMissing && got != provider.ReasonNoPermission {
				t.Errorf("the manager is told %v", err)
			}
			wantWithin(t, began, time.Minute)
		})
	}
	bubble(t, "a 404 of the gateway", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(iaasmock.Fault{Operation: fault.OperationIaaS, Status: http.StatusNotFound, Duration: 2 * time.Minute,
			Body: `{"status":404,"error":"Not Found","message":"No message available","path":"/v2"}`})
		wantReason(t, r.createErr(machine("m1")), provider.ReasonAPIFailed)
	})
	bubble(t, "of lists alone", func(t *testing.T) {
		r := newRig(t)
		m := machine("m1")
		m = withID(m, r.mustCreate(m).ProviderID)
		r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusNotFound, Duration: time.Minute,
			Body: `{"code":404,"msg":"label not found"}`})
		r.mustRemove(m)
	})
	bubble(t, "status without a ProviderID", func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		r.cloud.Inject(missing("project not found"))
		wantReason(t, r.statusErr(machine("m1")), provider.ReasonResourceMissing)
	})
	for name, call := range map[string]func(r *rig, m *v1alpha1.Machine) error{
		"create": func(r *rig, _ *v1alpha1.Machine) error { return r.createErr(machine("m2")) }, "status": (*rig).statusErr,
		"delete": (*rig).remove,
	} {
		bubble(t, name+", for 10 s", func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			m = withID(m, r.mustCreate(m).ProviderID)
			moment := missing("project not found")
			moment.Duration = 10 * time.Second
			r.cloud.Inject(moment)
			if err := call(r, m); err != nil {
				t.Error(err)
			}
		})
	}
}

// An account that may do nothing in the project is told which one, and which fields to look at.
func TestAForeignProjectIsNamed(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		r := newRig(t)
		const foreign = "abcdef00-0000-4000-8000-000000000001"
		r.secret.Data["projectId"] = []byte(foreign)
		r.cloud.Inject(iaasmock.Fault{Operation: fault.OperationIaaS, Status: http.StatusForbidden})
		err := r.createErr(machine("m1"))
		wantReason(t, err, provider.ReasonNoPermission)
		wantSaid(t, err.Error(), foreign, "secret.projectId", "secret.serviceAccountKey")
	})
}

// Where the class names no NIC and no volume, 409 is the cloud's own business, and passes.
func TestAConflictPassesUnlessTheClassNamesWhatIsInUse(t *testing.T) {
	for _, body := range []string{`{"status":"CONFLICT","message":"Request failed"}`,
		`{"code":409,"msg":"the network is being updated"}`, ""} {
		bubble(t, body, func(t *testing.T) {
			r := newRig(t)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusConflict, Body: body, Count: 1})
			wantReason(t, r.createErr(machine("m1")), provider.ReasonServerBusy)
			r.mustCreate(machine("m1"))
		})
	}
	bubble(t, "with volumes", func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(s map[string]any) { s["volumes"] = []string{iaasmock.DefaultVolumeID} })
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusConflict, Count: 1})
		wantReason(t, r.createErr(machine("m1")), provider.ReasonResourceInUse)
	})
}

// A second server of the class that fails in a row lets the autoscaler try another pool, for this Machine only.
func TestServersThatFailInARow(t *testing.T) {
	broken := iaasmock.Fault{Operation: "CreateServer", FinalStatus: iaasmock.StatusError,
		ErrorMessage: "Unexpected vif_type=binding_failed"}
	failing := func(t *testing.T, r *rig, name string, want provider.Reason) {
		t.Helper()
		wantReason(t, r.createErr(machine(name)), want)
	}
	bubble(t, "one after the other", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(broken)
		failing(t, r, "m1", provider.ReasonServerFailed)
		failing(t, r, "m2", provider.ReasonServersFail)
		failing(t, r, "m1", provider.ReasonServersFail)
		wantCode(t, r.createErr(machine("m1")), codes.ResourceExhausted)
		r.cloud.ClearFaults()
		r.mustCreate(machine("m3")) // the class is not exhausted
		r.cloud.Inject(broken)
		failing(t, r, "m4", provider.ReasonServerFailed)
	})
	bubble(t, "at a time", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(broken)
		for _, err := range together(machines(5), r.createErr) {
			wantReason(t, err, provider.ReasonServerFailed)
		}
	})
	bubble(t, "by a limit of one server", func(t *testing.T) {
		r := newRig(t)
		broken := broken
		broken.ErrorMessage = "The maximum allowed number of disk devices (26) " +
			"to attach to a single instance has been exceeded."
		r.cloud.Inject(broken)
		failing(t, r, "m1", provider.ReasonRequestRefused)
		failing(t, r, "m2", provider.ReasonRequestRefused)
	})
	bubble(t, "of another class", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(broken)
		failing(t, r, "m1", provider.ReasonServerFailed)
		r.class.Name = "class-b"
		failing(t, r, "m2", provider.ReasonServerFailed)
	})
	bubble(t, "of a class that was corrected", func(t *testing.T) {
		r := newRig(t)
		r.cloud.Inject(broken)
		failing(t, r, "m1", provider.ReasonServerFailed)
		r.setSpec(func(s map[string]any) { s["metadata"] = map[string]any{"corrected": "yes"} })
		failing(t, r, "m2", provider.ReasonServerFailed)
	})
}

// What net/http answers before it has written anything: a proxy that cannot be asked or refuses, or TLS that fails.
// Nothing can have been made: the next call does not wait for settle.
func TestAPOSTThatWasNeverWrittenIsNotInDoubt(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, failure := range map[string]error{
		"no connection":            dial,
		"no connection to a proxy": &net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial},
		"the proxy refuses":        errors.New("Service Unavailable"),
		"a wrong certificate":      errors.New("tls: failed to verify certificate: x509: certificate has expired"),
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			fails := r.failPOSTs(failure)
			fails.Store(true)
			wantCode(t, r.createErr(machine("m1")), codes.Unavailable)
			fails.Store(false)
			began := time.Now()
			r.mustCreateAsManager(machine("m1"))
			wantWithin(t, began, bootDuration+25*time.Second) // POSTs pause after failures
			r.onlyServer()
		})
	}
}
