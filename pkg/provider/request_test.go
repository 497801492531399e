// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// A name that cannot be a label: no server can carry it, and the Machine must go.
func TestMachineWithANameThatIsTooLongSaysSoAndCanBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := machine(strings.Repeat("m", 64))
		wantCode(t, r.statusErr(m), codes.NotFound)
		_, err := r.create(m)
		wantCode(t, err, codes.InvalidArgument)
		wantSaid(t, err.Error(), "machine.metadata.name")
		// Nor is there a reason to wait for what a predecessor may have asked for.
		m.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
		r.restart(provider.WithActingSince(time.Now))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := r.driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: r.deleted(m), MachineClass: r.class,
			Secret: r.secret}); err != nil {
			t.Error(err)
		}
		r.wantNoCalls()
	})
}

func TestDeleteMachineWithAWrongDefaultNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		response := r.mustCreate(machine("m1"))
		r.secret.Data["networkId"] = []byte("my-network")
		r.mustDelete(withID(r.deleted(machine("m1")), response.ProviderID))
		r.wantNothingLeft()
	})
}

// nilCall calls a method of the driver without a request.
func nilCall[Q, A any](method func(driver.Driver, context.Context, *Q) (*A, error)) func(*rig) error {
	return func(r *rig) error { _, err := method(r.driver, r.t.Context(), nil); return err }
}

// Wrong inputs are told at once, each field by its name and none by its value.
func TestWrongInputs(t *testing.T) {
	create := func(r *rig) error { return r.createErr(machine("m1")) }
	status := func(r *rig) error { return r.statusErr(machine("m1")) } // the manager asks for it first
	allWrong := func(r *rig, spec map[string]any) {
		spec["machineType"], spec["imageId"] = "", "no-uuid"
		spec["networking"], spec["bootVolume"] = map[string]any{"networkId": "net"}, map[string]any{"size": 0}
		r.secret.Data["projectId"], r.secret.Data["serviceAccountKey"] = []byte("my-project"), []byte("{}")
		delete(r.secret.Data, "region")
	}
	all := []string{"providerSpec.region", "providerSpec.machineType", "providerSpec.imageId", "providerSpec.networking",
		"providerSpec.bootVolume.size", "secret.projectId", "secret.serviceAccountKey"}
	for name, row := range map[string]struct {
		change func(r *rig, spec map[string]any)
		call   func(*rig) error
		says   []string
	}{
		"CreateMachine(nil)":     {nil, nilCall(driver.Driver.CreateMachine), nil},
		"InitializeMachine(nil)": {nil, nilCall(driver.Driver.InitializeMachine), nil},
		"GetMachineStatus(nil)":  {nil, nilCall(driver.Driver.GetMachineStatus), nil},
		"DeleteMachine(nil)":     {nil, nilCall(driver.Driver.DeleteMachine), nil},
		"ListMachines(nil)":      {nil, nilCall(driver.Driver.ListMachines), nil},

		"no class":           {nil, func(r *rig) error { r.class = nil; return create(r) }, nil},
		"no Secret":          {nil, func(r *rig) error { r.secret = nil; return create(r) }, nil},
		"an empty Secret":    {nil, func(r *rig) error { r.secret.Data = nil; return create(r) }, nil},
		"no name":            {nil, func(r *rig) error { return r.createErr(machine("")) }, nil},
		"all fields":         {allWrong, create, all},
		"all fields, status": {allWrong, status, all},
		"no region to delete in": {func(r *rig, _ map[string]any) { delete(r.secret.Data, "region") },
			func(r *rig) error { return r.remove(withID(machine("m1"), providerIDOf(someServerID))) },
			[]string{"providerSpec.region", "Secret"}},
		"a wrong type, and nothing else": {func(_ *rig, spec map[string]any) {
			spec["userData"], spec["imageId"] = 81726354, "no-uuid"
		}, create, []string{"InvalidInput: providerSpec.userData: Invalid value: json: cannot unmarshal number"}},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.change != nil {
				r.setSpec(func(spec map[string]any) { row.change(r, spec) })
			}
			err := row.call(r)
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), row.says...)
			if strings.Contains(err.Error(), "81726354") {
				t.Errorf("%v shows a value", err)
			}
			r.wantNoCalls()
		})
	}
}

// What a request asks for is what the class says: the API would keep the disk by default, and
// refuses an image beside the source of a disk.
func TestWhatAServerBootsFrom(t *testing.T) {
	const image, volume = iaasmock.DefaultImageID, iaasmock.DefaultBootVolumeID
	for name, row := range map[string]struct{ spec, want string }{
		"an image alone":                    {`{"imageId":"` + image + `"}`, `{"imageId":"` + image + `"}`},
		"an image, and a disk that is null": {`{"imageId":"` + image + `","bootVolume":null}`, `{"imageId":"` + image + `"}`},
		"a disk of an image": {`{"imageId":"` + image + `","bootVolume":{"size":20}}`,
			`{"bootVolume":{"deleteOnTermination":true,"size":20,"source":{"id":"` + image + `","type":"image"}}}`},
		"a disk that stays": {
			`{"bootVolume":{"size":20,"deleteOnTermination":false,"source":{"type":"image","id":"` + image + `"}}}`,
			`{"bootVolume":{"deleteOnTermination":false,"size":20,"source":{"id":"` + image + `","type":"image"}}}`},
		"a disk that exists": {`{"bootVolume":{"source":{"type":"volume","id":"` + volume + `"}}}`,
			`{"bootVolume":{"source":{"id":"` + volume + `","type":"volume"}}}`},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			sent := r.watchCreate()
			r.setBoot(row.spec)
			r.mustCreate(machine("m1"))
			var payload map[string]any
			if err := json.Unmarshal(<-sent, &payload); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(payload, func(name string, _ any) bool { return name != "imageId" && name != "bootVolume" })
			if got, err := json.Marshal(payload); err != nil || string(got) != row.want {
				t.Errorf("sent %s (%v), want %s", got, err, row.want)
			}
		})
	}
}

// The API refuses such a disk each time.
func TestADiskNeedsASize(t *testing.T) {
	const image, snapshot = iaasmock.DefaultImageID, iaasmock.DefaultSnapshotID
	for name, spec := range map[string]string{
		"of imageId":        `{"imageId":"` + image + `","bootVolume":{"performanceClass":"storage_premium_perf1"}}`,
		"with nothing":      `{"imageId":"` + image + `","bootVolume":{}}`,
		"null":              `{"imageId":"` + image + `","bootVolume":{"size":null}}`,
		"of a source":       `{"bootVolume":{"source":{"type":"image","id":"` + image + `"}}}`,
		"of a snapshot":     `{"bootVolume":{"source":{"type":"snapshot","id":"` + snapshot + `"}}}`,
		"of both, the same": `{"imageId":"` + image + `","bootVolume":{"source":{"type":"image","id":"` + image + `"}}}`,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.setBoot(spec)
			err := r.createErr(machine("m1"))
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "providerSpec.bootVolume.size")
			r.wantNoCalls()
		})
	}
}

// setBoot sets imageId and bootVolume of the class, to what the JSON has of them.
func (r *rig) setBoot(text string) {
	r.t.Helper()
	r.setSpec(func(spec map[string]any) {
		delete(spec, "imageId")
		delete(spec, "bootVolume")
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			r.t.Fatal(err)
		}
	})
}

// watchCreate returns where the body of the first request for a server will come.
func (r *rig) watchCreate() <-chan []byte {
	sent, network := make(chan []byte, 1), r.transport
	r.transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/servers") {
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			sent <- body
		}
		return network.RoundTrip(request)
	})
	r.restart()
	return sent
}

// The class, or the Secret, was edited after the server was made.
func TestAnEditedClassLosesNoServer(t *testing.T) {
	for name, row := range map[string]struct {
		edit      func(r *rig, spec map[string]any)
		restarted bool
		byID      bool
		want      codes.Code
	}{
		// In the Secret's region the server would count as gone.
		"a region of a wrong type": {func(r *rig, spec map[string]any) {
			r.secret.Data["region"] = []byte("eu02")
			spec["machineType"], spec["region"] = 5, 7
		}, true, true, codes.InvalidArgument},
		"a region in another case": {func(r *rig, spec map[string]any) {
			r.secret.Data["region"], spec["Region"] = []byte("eu02"), iaasmock.DefaultRegion
		}, true, true, codes.InvalidArgument},
		"a cluster in another case": {func(_ *rig, spec map[string]any) {
			spec["Labels"] = spec["labels"]
			delete(spec, "labels")
		}, true, false, codes.InvalidArgument},
		// One wrong type hides no other: where a field cannot be read by which servers are found, nothing is
		// concluded from it.
		"a cluster of a wrong type, too": {func(_ *rig, spec map[string]any) {
			spec["machineType"], spec["labels"] = 5, map[string]any{clusterLabel: 1}
		}, true, false, codes.InvalidArgument},
		// The class says "no cluster", the server says "shoot-a".
		"no cluster": {func(_ *rig, spec map[string]any) { delete(spec, "labels") }, true, true, codes.FailedPrecondition},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := machine("m1")
			if response := r.mustCreate(m); row.byID {
				m = withID(m, response.ProviderID)
			}
			if row.restarted {
				r.restartNow()
			}
			r.setSpec(func(spec map[string]any) { row.edit(r, spec) })
			wantCode(t, r.remove(m), row.want)
			if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
				t.Errorf("the server is %s", left.Status)
			}
			r.makeInputs()
			r.mustRemove(m)
			r.wantNothingLeft()
		})
	}
}

func TestAnotherProvidersClassIsRefused(t *testing.T) {
	for name, call := range everyCall {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.class.Provider = "openstack"
			err := call(r)
			r.wantNoCalls()
			if name == "ListMachines" { // an error would end the manager's orphan run
				wantCode(t, err, codes.OK)
				return
			}
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "openstack")
		})
	}
}

// To drop such a key would make a server without its key pair, its labels or its cluster. A server
// that is there, perhaps made by STACKIT's own driver, can still be read, listed and deleted, by
// region and labels in the right case.
func TestKeysInAnotherCase(t *testing.T) {
	for name, row := range map[string]struct {
		change func(spec map[string]any)
		says   string
		listed int // of the one server that there is
	}{
		"keyPairName": {func(spec map[string]any) { spec["keyPairName"] = "k" }, "providerSpec.keypairName", 1},
		"networking beside": {func(spec map[string]any) { spec["Networking"] = map[string]any{} },
			"providerSpec.networking", 1},
		"networkID": {func(spec map[string]any) { spec["networking"] = map[string]any{"networkID": "n"} },
			"providerSpec.networking.networkId", 1},
		"bootVolume.Size": {func(spec map[string]any) { spec["bootVolume"] = map[string]any{"Size": 20} },
			"providerSpec.bootVolume.size", 1},
		"Labels, and no own": {func(spec map[string]any) { spec["Labels"] = spec["labels"]; delete(spec, "labels") },
			"providerSpec.labels", 0},
		"Labels beside": {func(spec map[string]any) { spec["Labels"] = map[string]any{} }, "providerSpec.labels", 0},
		"Labels beside null": {func(spec map[string]any) { spec["Labels"], spec["labels"] = spec["labels"], nil },
			"providerSpec.labels", 0},
		"Region beside": {func(spec map[string]any) { spec["Region"], spec["region"] = "eu02", "eu01" },
			"providerSpec.region", 0},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			m := withID(machine("m1"), r.mustCreate(machine("m1")).ProviderID)
			r.restart()
			r.setSpec(row.change)
			r.cloud.ResetCalls()
			for _, err := range []error{r.createErr(machine("m2")), r.initErr(m)} {
				wantCode(t, err, codes.InvalidArgument)
				wantSaid(t, err.Error(), row.says+": Invalid value: is spelled")
				if strings.Contains(err.Error(), "Required") {
					t.Errorf("%v asks for a field that is there", err)
				}
			}
			r.wantNoCalls()
			if got := r.list(); len(got) != row.listed {
				t.Errorf("listed %v, want %d", got, row.listed)
			}
			if row.listed == 0 { // in the class's cluster and region: which they are nothing says
				wantReason(t, r.remove(m), provider.ReasonInvalidInput)
				r.setSpec(nil)
			}
			wantCode(t, r.statusErr(m), codes.OK)
			r.mustRemove(m)
			r.wantNothingLeft()
		})
	}
}

// An error would end the manager's orphan run for all later classes.
func TestNoServerIsListed(t *testing.T) {
	for name, change := range map[string]func(r *rig, spec map[string]any){
		"of another provider's class": func(r *rig, _ map[string]any) { r.class.Provider = "openstack" },
		"of one with its Secret": func(r *rig, spec map[string]any) {
			r.class.Provider, r.secret.Data, spec["region"] = "openstack", map[string][]byte{"userData": nil, "username": nil},
				"RegionOne"
		},
		"of a cluster in another case": func(_ *rig, spec map[string]any) {
			spec["Labels"] = spec["labels"]
			delete(spec, "labels")
		},
		"in the Secret's region for another case": func(_ *rig, spec map[string]any) { spec["Region"] = "eu02" },
		"in the Secret's region for a number":     func(_ *rig, spec map[string]any) { spec["region"] = 7 },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.mustCreate(machine("m1"))
			r.setSpec(func(spec map[string]any) { change(r, spec) })
			r.cloud.ResetCalls()
			if got := r.list(); len(got) > 0 {
				t.Errorf("listed %v", got)
			}
			r.wantNoCalls()
		})
	}
}

func TestStrictModeRefusesUnknownFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		r.restart(provider.WithStrictProviderSpec(true))
		r.setSpec(func(spec map[string]any) { spec["machinType"] = "c2i.2" })
		r.cloud.ResetCalls()
		m := withID(machine("m1"), created.ProviderID)
		for _, err := range []error{r.createErr(machine("m2")), r.initErr(m)} {
			wantCode(t, err, codes.InvalidArgument)
			wantSaid(t, err.Error(), "machinType")
		}
		r.wantNoCalls()
		// What is there already can still be found and deleted.
		wantCode(t, r.statusErr(m), codes.OK)
		r.mustRemove(m)
	})
}

func TestDeadlineOfACreation(t *testing.T) {
	flags := provider.WithCreationTimeout
	own := func(timeout time.Duration) *v1alpha1.MachineConfiguration {
		return &v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: timeout}}
	}
	for name, row := range map[string]struct {
		flags         provider.Option
		configuration *v1alpha1.MachineConfiguration
		age           time.Duration
		want          time.Duration
	}{
		"a young Machine":                   {want: 10 * time.Minute},
		"8 of 20 minutes are left":          {age: 12 * time.Minute, want: 8 * time.Minute},
		"seconds are left":                  {age: 19*time.Minute + 50*time.Second, want: time.Minute},
		"nothing is left, without a target": {flags: provider.WithTargetCluster(false), age: time.Hour, want: time.Minute},
		"made in the future, by its clock":  {age: -time.Hour, want: 10 * time.Minute},
		"a shorter timeout":                 {flags: flags(5 * time.Minute), want: 5 * time.Minute},
		"a longer timeout of the Machine": {flags: flags(2 * time.Minute), configuration: own(time.Hour),
			want: 10 * time.Minute},
		"a configuration that has no timeout": {configuration: &v1alpha1.MachineConfiguration{}, want: 10 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			if row.flags != nil {
				r.restart(row.flags)
			}
			m := machine("m1")
			m.CreationTimestamp = metav1.NewTime(time.Now().Add(-row.age))
			m.Spec.MachineConfiguration = row.configuration
			r.cloud.Inject(iaasmock.Fault{Operation: "CreateServer", NeverBoots: true})
			began := time.Now()
			wantCode(t, r.createErr(m), codes.DeadlineExceeded)
			if took := time.Since(began).Round(time.Second); took != row.want {
				t.Errorf("it waited for %s, want %s", took, row.want)
			}
		})
	}
}
