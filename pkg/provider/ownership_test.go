// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

func TestCreateMachineLeavesOthersServersAlone(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another cluster's":        func(labels map[string]any) { labels[clusterLabel] = "shoot-b" },
		"another machine's":        func(labels map[string]any) { labels[provider.StackitMachineLabel] = "m2" },
		"one without our labels":   func(labels map[string]any) { clear(labels); labels["made-by"] = "hand" },
		"one of no cluster at all": func(labels map[string]any) { delete(labels, clusterLabel) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			foreign := r.makeServer("m1", change)
			response := r.mustCreate(machine("m1"))
			if response.ProviderID == "stackit://"+iaasmock.DefaultProjectID+"/"+foreign {
				t.Error("a foreign server was adopted")
			}
			if err := r.delete(withID(r.deleted(machine("m1")), response.ProviderID)); err != nil {
				t.Fatal(err)
			}
			if left := r.onlyServer(); left.ID != foreign {
				t.Errorf("server %s is left, want the foreign one, %s", left.ID, foreign)
			}
		})
	}
}

func TestCreateMachineWithoutAClusterLabelGoesByTheClassToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { delete(spec, "labels") })
		foreign := r.makeServer("m1", func(labels map[string]any) {
			delete(labels, clusterLabel)
			labels[provider.StackitMachineClassLabel] = "class-of-another-cluster"
		})
		created := r.mustCreate(machine("m1"))
		if err := r.delete(withID(r.deleted(machine("m1")), created.ProviderID)); err != nil {
			t.Fatal(err)
		}
		if left := r.onlyServer(); left.ID != foreign || left.Status == iaasmock.StatusDeleting {
			t.Errorf("%s %s is left, want the foreign one, %s", left.Status, left.ID, foreign)
		}
	})
}

func TestDeleteMachineRefusesWhatIsNotTheMachines(t *testing.T) {
	for name, row := range map[string]struct {
		change func(map[string]any)
		says   string
	}{
		"another machine's": {func(labels map[string]any) { labels[provider.StackitMachineLabel] = "m2" }, `"m2"`},
		"another cluster's": {func(labels map[string]any) { labels[clusterLabel] = "shoot-b" }, `"shoot-b"`},
		"another name":      {func(labels map[string]any) { delete(labels, provider.StackitMachineLabel) }, "missing"},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			foreign := r.makeServer("other", row.change)
			err := r.delete(withID(r.deleted(machine("m1")), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
			wantCode(t, err, codes.FailedPrecondition)
			if !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), foreign) {
				t.Errorf("%q does not name the server and %s", err, row.says)
			}
			if left := r.onlyServer(); left.Status == iaasmock.StatusDeleting {
				t.Error("the foreign server is being deleted")
			}
		})
	}
}

func TestDeleteMachineWithoutALabelCountsByNameAndID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", func(labels map[string]any) { clear(labels) })
		if err := r.delete(withID(r.deleted(machine("m1")), "openstack:///"+id)); err != nil {
			t.Fatal(err)
		}
		r.wantNothingLeft()
	})
}

func TestDeleteMachineRefusesAnotherProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.makeServer("m1", nil)
		wantCode(t, r.delete(withID(machine("m1"), "stackit://"+iaasmock.SecondProjectID+"/"+id)), codes.InvalidArgument)
		r.onlyServer()
	})
}

// Only the server that the request itself names may be touched where the cluster is
// unknown, and nothing found by name may be told from another cluster's.
func TestDeleteMachineWithABrokenClass(t *testing.T) {
	for name, spec := range map[string]string{
		"no JSON":     `{"machineType"`,
		"null":        `null`,
		"wrong types": `{"machineType": 5, "labels": "none", "bootVolume": []}`,
		"wrong label": `{"machineType": "c2i.2", "labels": {"team": 5, "` + clusterLabel + `": "shoot-a"}}`,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			second := r.makeServer("m1", nil)
			r.restart()
			r.class.ProviderSpec = runtime.RawExtension{Raw: []byte(spec)}
			m := withID(r.deleted(machine("m1")), created.ProviderID)
			_, err := r.status(m)
			wantCode(t, err, codes.OK)
			if err := r.delete(m); err != nil {
				t.Fatal(err)
			}
			if left := r.onlyServer(); left.ID != second || left.Status == iaasmock.StatusDeleting {
				t.Errorf("%s %s is left, want %s untouched", left.Status, left.ID, second)
			}
			if listed := r.list(); len(listed) > 0 { // an error would end the manager's orphan run
				t.Errorf("ListMachines lists %v, which cannot be known", listed)
			}
		})
	}
}

// The class now says "no cluster", the server says "shoot-a".
func TestDeleteMachineOfAClassThatLostItsClusterLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		created := r.mustCreate(machine("m1"))
		r.restart()
		r.class.ProviderSpec = runtime.RawExtension{Raw: []byte(`{}`)}
		wantCode(t, r.delete(withID(r.deleted(machine("m1")), created.ProviderID)), codes.FailedPrecondition)
		if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
			t.Errorf("the server is %s", left.Status)
		}
	})
}

func TestCreateMachineOfAServerThatWasGivenToAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.mustCreate(machine("m1"))
		r.relabel(r.onlyServer().ID, map[string]any{provider.StackitMachineLabel: "m2"})
		_, err := r.create(machine("m1"))
		wantCode(t, err, codes.FailedPrecondition)
		if r.onlyServer().Status != iaasmock.StatusActive {
			t.Error("the other machine's server was touched")
		}
	})
}

// Lists may hold what was never asked for.
func TestWhatAListShowsIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign := r.makeServer("m1", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		body := fmt.Sprintf(`{"items":[{"id":%q,"name":"m1","machineType":"t1.1","status":"ACTIVE","labels":{%q:"m1",%q:"class-a"}}]}`,
			foreign, provider.StackitMachineLabel, provider.StackitMachineClassLabel)
		remove := r.cloud.Inject(iaasmock.Fault{Operation: "ListServers", Status: http.StatusOK, Body: body})
		if listed := r.list(); len(listed) != 0 {
			t.Errorf("lists %v", listed)
		}
		created := r.mustCreate(machine("m1"))
		remove()
		if strings.HasSuffix(created.ProviderID, foreign) || len(r.cloud.Servers()) != 2 {
			t.Errorf("the machine got %s, which is another cluster's", created.ProviderID)
		}
	})
}

func TestInitializeMachineTouchesNoForeignServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.setSpec(func(spec map[string]any) { spec["allowedAddresses"] = []any{"100.64.0.0/12"} })
		foreign := r.makeServer("m1", func(labels map[string]any) { labels[clusterLabel] = "shoot-b" })
		_, err := r.initialize(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
		wantCode(t, err, codes.FailedPrecondition)
		if nic := nicOf(t, r, r.onlyServer()); len(nic.AllowedAddresses) != 0 {
			t.Errorf("the foreign server's NIC carries %v", nic.AllowedAddresses)
		}
	})
}

func TestGetMachineStatusOfAnothersServerIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		foreign := r.makeServer("conflict-1", func(labels map[string]any) { labels[provider.StackitMachineLabel] = "conflict-1" })
		_, err := r.status(withID(machine("m1"), "stackit://"+iaasmock.DefaultProjectID+"/"+foreign))
		wantCode(t, err, codes.FailedPrecondition)
		if !strings.Contains(err.Error(), `"conflict-1"`) || !strings.Contains(err.Error(), `"m1"`) {
			t.Errorf("%q does not name the label as it is and as it must be", err)
		}
	})
}

// No server can carry such a label, but those that were made before it was edited carry
// the old one.
func TestAnInvalidClusterLabelHidesNoServer(t *testing.T) {
	for name, value := range map[string]any{"no label": "not a label!", "too long": strings.Repeat("c", 64), "no text": 5, "empty": ""} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			created := r.mustCreate(machine("m1"))
			r.setSpec(func(spec map[string]any) { spec["labels"] = map[string]any{clusterLabel: value} })
			r.restart()
			if listed := r.list(); len(listed) > 0 { // an error would end the manager's orphan run
				t.Errorf("ListMachines lists %v, which cannot be known", listed)
			}
			if err := r.delete(r.deleted(machine("m1"))); err == nil {
				t.Error("DeleteMachine by name is a success")
			}
			if left := r.onlyServer(); left.Status != iaasmock.StatusActive {
				t.Errorf("the server is %s", left.Status)
			}
			if err := r.delete(withID(r.deleted(machine("m1")), created.ProviderID)); err != nil {
				t.Errorf("DeleteMachine of the server that the request names: %v", err)
			}
			r.wantNothingLeft()
		})
	}
}
