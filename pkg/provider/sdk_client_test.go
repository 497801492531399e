// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestWhatWasOnlyAttachedIsKept(t *testing.T) {
	for name, change := range map[string]func(spec map[string]any){
		"a NIC and a volume": func(spec map[string]any) {
			spec["networking"] = map[string]any{"nicIds": []any{iaasmock.DefaultNICID}}
			spec["volumes"] = []any{iaasmock.DefaultVolumeID}
		},
		"the volume that it boots from": func(spec map[string]any) {
			delete(spec, "imageId")
			spec["bootVolume"] = map[string]any{"source": map[string]any{"type": "volume", "id": iaasmock.DefaultBootVolumeID}}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			nics, volumes := len(r.cloud.NICs()), len(r.cloud.Volumes())
			r.setSpec(change)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			if disk := r.onlyServer().BootVolume; disk.SourceType == "volume" && disk.DeleteOnTermination {
				t.Error("the server takes along the volume that it boots from")
			}
			r.mustRemove(m)
			r.wantNothingLeft()
			if len(r.cloud.NICs()) != nics || len(r.cloud.Volumes()) != volumes {
				t.Errorf("of %d NICs and %d volumes are left: %+v %+v", nics, volumes, r.cloud.NICs(), r.cloud.Volumes())
			}
		})
	}
}

// The API may repeat userData in a message, and so may a server that fails: in which forms is TestRedactedMessage.
func TestUserDataStaysOutOfErrors(t *testing.T) {
	const userData = "password: s3cr3t\ntoken: abc123.0123456789abcdef"
	const fromMiddle = "cannot read line 2: token: abc123.0123456789abcdef"
	broken := iaasmock.Fault{Operation: "CreateServer", FinalStatus: iaasmock.StatusError,
		ErrorMessage: fromMiddle}
	answered := func(status int, body string) iaasmock.Fault {
		return iaasmock.Fault{Operation: "CreateServer", Status: status, Body: body}
	}
	whole := "cannot read " + strings.ReplaceAll(userData, "\n", `\n`)
	for name, row := range map[string]struct {
		fault iaasmock.Fault
		call  func(r *rig, m *v1alpha1.Machine) error
		want  codes.Code
	}{
		"CreateMachine, refused": {answered(400, `{"code":400,"msg":"`+fromMiddle+`"}`), (*rig).createErr,
			codes.InvalidArgument},
		"CreateMachine, all of it": {answered(400, `{"code":400,"msg":"`+whole+`"}`), (*rig).createErr,
			codes.InvalidArgument},
		"CreateMachine, accepted": {
			answered(201, `{"id":"`+someServerID+`","name":"m1","machineType":"a","createdAt":"`+fromMiddle+`"}`),
			(*rig).createErr, codes.Unavailable},
		"CreateMachine, in ERROR": {broken, (*rig).createErr, codes.Internal},
		"InitializeMachine, in ERROR": {broken, func(r *rig, m *v1alpha1.Machine) error {
			m.Spec.ProviderID = providerIDOf(r.makeServer("m1", nil))
			<-time.After(bootDuration)
			return r.initErr(m)
		}, codes.Internal},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
			r.secret.Data["userData"] = []byte(userData)
			r.cloud.Inject(row.fault)
			var err error
			log := logAt(t, "4", func() { err = row.call(r, machine("m1")) })
			wantCode(t, err, row.want)
			wantSaid(t, err.Error(), "(withheld: it repeats userData)")
			for _, secret := range []string{"s3cr3t", "abc123.", "0123456789"} {
				if strings.Contains(err.Error(), secret) || strings.Contains(log, secret) {
					t.Errorf("%q or the log shows %q", err, secret)
				}
			}
		})
	}
}

// What is not shown of a message decides all the same, of a POST's answer and of a server in ERROR.
func TestCodesAreDecidedOnTheWholeMessage(t *testing.T) {
	for name, message := range map[string]string{
		"the words are in userData": "Quota exceeded for 4 cores",
		"the words come late":       strings.Repeat("x", 5000) + " quota exceeded",
	} {
		for how, fault := range map[string]iaasmock.Fault{
			"POST":  {Status: http.StatusBadRequest, Body: `{"code":400,"msg":"` + message + `"}`},
			"ERROR": {FinalStatus: iaasmock.StatusError, ErrorMessage: message},
		} {
			bubble(t, how+", "+name, func(t *testing.T) {
				r := newRig(t)
				r.secret.Data["userData"] = []byte("Quota exceeded for 4 cores")
				fault.Operation = "CreateServer"
				r.cloud.Inject(fault)
				_, err := r.create(machine("m1"))
				wantReason(t, err, provider.ReasonQuotaExceeded)
				if strings.Contains(err.Error(), "for 4 cores") {
					t.Errorf("%q shows userData", err)
				}
			})
		}
	}
}

// The manager writes names into userData: a message must still say which thing is wrong.
func TestNamesThatAreSentStayInErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.secret.Data["userData"] = []byte("hostname: shoot--demo--worker-1\nimage: " + iaasmock.DefaultImageID + "\n")
		message := "server shoot--demo--worker-1: image " + iaasmock.DefaultImageID + " is not bootable"
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusBadRequest,
			Body: `{"code":400,"msg":"` + message + `"}`})
		_, err := r.create(machine("shoot--demo--worker-1"))
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v does not say %q", err, message)
		}
	})
}
