// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

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

func TestUserDataThatTheAPIRepeatsStaysOutOfErrors(t *testing.T) {
	const userData = "password: s3cr3t\ntoken: abc123.0123456789abcdef"
	for name, repeated := range map[string]string{
		"plain": strings.ReplaceAll(userData, "\n", `\n`), "base64": base64.StdEncoding.EncodeToString([]byte(userData)),
		"quoted": `\"password: s3cr3t\\ntoken: abc123.0123456789abcdef\"`, "quoted and cut off": `\"password: s3cr3t\\ntoken: abc123.01234567`,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.secret.Data["userData"] = []byte(userData)
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusBadRequest,
				Body: `{"code":400,"msg":"wrong userData: ` + repeated + `"}`})
			_, err := r.create(machine("m1"))
			wantCode(t, err, codes.InvalidArgument)
			for _, secret := range []string{"s3cr3t", "abc123.01234567", base64.StdEncoding.EncodeToString([]byte(userData))[:20]} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q shows userData", err)
				}
			}
		})
	}
}

// A server that fails may say of what: its errorMessage is a message of the API, too.
func TestUserDataThatAFailedServerRepeatsStaysOutOfErrors(t *testing.T) {
	for _, operation := range []string{"CreateMachine", "InitializeMachine"} {
		bubble(t, operation, func(t *testing.T) {
			r := newRig(t)
			r.secret.Data["userData"] = []byte("password: s3cr3t\ntoken: abc123.0123456789abcdef")
			const message = "cannot read password: s3cr3t\ntoken: abc123.0123456789abcdef"
			m := machine("m1")
			var err error
			if operation == "CreateMachine" {
				r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", FinalStatus: iaasmock.StatusError, ErrorMessage: message})
				_, err = r.create(m)
			} else {
				m.Spec.ProviderID = r.mustCreate(m).ProviderID
				r.setStatus(r.onlyServer().ID, iaasmock.StatusError, message)
				r.restart()
				_, err = r.initialize(m)
			}
			wantCode(t, err, codes.Internal)
			wantSaid(t, err.Error(), "cannot read (userData)")
		})
	}
}

// What is not shown of a message decides all the same, of a POST's answer and of a server in ERROR.
func TestCodesAreDecidedOnTheWholeMessage(t *testing.T) {
	for name, message := range map[string]string{
		"the words are in userData":             "Quota exceeded for cores",
		"the words come late":                   strings.Repeat("x", 5000) + " quota exceeded",
		"the words are not shown as they stand": "SnapshotLimitExceeded",
	} {
		for how, fault := range map[string]iaasmock.Fault{
			"POST":  {Status: http.StatusBadRequest, Body: `{"code":400,"msg":"` + message + `"}`},
			"ERROR": {FinalStatus: iaasmock.StatusError, ErrorMessage: message},
		} {
			bubble(t, how+", "+name, func(t *testing.T) {
				r := newRig(t)
				r.secret.Data["userData"] = []byte("Quota exceeded for cores")
				fault.Operation = "CreateServer"
				r.cloud.Inject(fault)
				_, err := r.create(machine("m1"))
				wantReason(t, err, provider.ReasonQuotaExceeded)
				if strings.Contains(err.Error(), "for cores") || strings.Contains(err.Error(), "LimitExceeded") {
					t.Errorf("%q shows userData, or a word that Gardener searches for", err)
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
		r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Status: http.StatusBadRequest, Body: `{"code":400,"msg":"` + message + `"}`})
		_, err := r.create(machine("shoot--demo--worker-1"))
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v does not say %q", err, message)
		}
	})
}
