// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

const (
	class   = "pool"
	cluster = "shoot-a"
	allowed = "100.64.0.0/12"
)

// machine is a Machine as the API server has it.
type machine struct {
	uid        types.UID
	name       string
	created    time.Time
	deleted    *metav1.Time
	providerID string
	// running means that the manager has seen it complete.
	running bool
	// annotations are those of a Machine from OpenStack, firstID is its first ProviderID.
	annotations map[string]string
	firstID     string
}

// all returns the Machines, sorted by name.
func (w *world) all() (all []machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		all = append(all, *w.machines[name])
	}
	return all
}

// want creates a Machine unless one of its name exists, and gives it to a worker of the manager.
func (w *world) want(m machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.machines[m.name] == nil {
		w.uids++
		m.uid, m.created = types.UID(fmt.Sprint("uid-", w.uids)), m.created.Add(w.plan.skew).Truncate(time.Second)
		w.machines[m.name] = &m
		w.running.Go(func() { w.work(&m) })
	}
}

// unwant requests the deletion of a Machine.
func (w *world) unwant(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.machines[name]; m != nil && m.deleted == nil {
		now := metav1.Now()
		m.deleted = &now
	}
}

// work is the manager's worker for a Machine: it reconciles until the Machine is gone. Now and then it does not
// know its last write yet: the ProviderID, or that the driver has completed the deletion.
func (w *world) work(m *machine) {
	random := w.random("manager", m.uid)
	for w.ctx.Err() == nil {
		p := w.leader()
		w.mu.Lock()
		known, forgets := *m, random.Float64() < w.plan.forgets && !w.calm
		w.mu.Unlock()
		if forgets && known.deleted == nil {
			known.providerID = m.firstID
		}
		retry := w.reconcile(p, m, known)
		switch isDeleted := known.deleted != nil; {
		case p.ctx.Err() != nil: // it has not seen an answer
			retry = time.Second
		case isDeleted && retry == 0:
			w.checkGone(known)
			if retry = 5 * time.Second; forgets {
				break
			}
			w.mu.Lock()
			delete(w.machines, m.name)
			w.mu.Unlock()
			return
		case retry == 0:
			retry = between(random, 5*time.Second, time.Minute)
		}
		w.sleep(retry)
	}
}

// reconcile makes the manager's calls for a Machine as it knows it. It returns how long the manager waits until it
// tries again; 0 means that it is done.
func (w *world) reconcile(p *process, m *machine, known machine) (retry time.Duration) {
	request := driver.CreateMachineRequest{Machine: known.object(), MachineClass: machineClass, Secret: secret()}
	asked, deleted := driver.GetMachineStatusRequest(request), driver.DeleteMachineRequest(request)
	answer, err := p.driver.GetMachineStatus(p.ctx, &asked)
	code, isDeleted := w.told(p, "GetMachineStatus", known, err), known.deleted != nil
	id := known.providerID
	switch {
	case isDeleted && slices.Contains([]codes.Code{codes.OK, codes.NotFound, codes.Uninitialized}, code):
		_, err = p.driver.DeleteMachine(p.ctx, &deleted)
		return retryAfter(w.told(p, "DeleteMachine", known, err), 10*time.Minute)
	case code == codes.OK || code == codes.Uninitialized:
		id = answer.ProviderID
	case code == codes.NotFound && id != "": // the manager takes it for one that exists
	case code == codes.NotFound:
		created, err := p.driver.CreateMachine(p.ctx, &request)
		if code := w.told(p, "CreateMachine", known, err); code != codes.OK {
			return retryAfter(code, 3*time.Minute)
		}
		id = created.ProviderID
	default:
		return retryAfter(code, 3*time.Minute)
	}
	request.Machine.Spec.ProviderID = id
	initialized := driver.InitializeMachineRequest(request)
	_, err = p.driver.InitializeMachine(p.ctx, &initialized)
	if w.told(p, "InitializeMachine", known, err) != codes.OK {
		return 5 * time.Second
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.ctx.Err() == nil {
		m.providerID, m.running = id, true
	}
	return 0
}

// retryAfter returns how long the manager waits after a code: mostly a time that depends on what it does.
func retryAfter(code codes.Code, mostly time.Duration) time.Duration {
	switch code {
	case codes.OK:
		return 0
	case codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable:
		return 5 * time.Second
	case codes.ResourceExhausted:
		return 10 * time.Minute
	default:
		return mostly
	}
}

// told returns the code of a call's error, which it checks.
func (w *world) told(p *process, method string, m machine, err error) codes.Code {
	w.logf("%s of %s, deleted=%v, id=%q: %v", method, m.name, m.deleted != nil, m.providerID, err)
	if err == nil {
		return codes.OK
	}
	decoded, ok := status.FromError(err)
	if p.ctx.Err() == nil {
		w.checkError(method, decoded.Code(), ok, err)
	}
	return decoded.Code()
}

// collectOrphans deletes the servers of the class that no Machine has, as the manager's safety controller does: it
// spares those of Machines that are not complete yet.
func (w *world) collectOrphans() {
	p := w.leader()
	listed, err := p.driver.ListMachines(p.ctx, &driver.ListMachinesRequest{MachineClass: machineClass, Secret: secret()})
	if err != nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(listed.MachineList)) {
		name := listed.MachineList[id]
		w.mu.Lock()
		m := w.machines[name]
		isOrphan := m == nil || m.running && m.providerID != id
		w.mu.Unlock()
		if isOrphan {
			w.logf("%s of %s is an orphan", id, name)
			orphan := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "sim"},
				Spec: v1alpha1.MachineSpec{ProviderID: id}}
			_, err := p.driver.DeleteMachine(p.ctx,
				&driver.DeleteMachineRequest{Machine: orphan, MachineClass: machineClass, Secret: secret()})
			if provider.ReasonIn(fmt.Sprint(err)) == provider.ReasonDriverBug {
				w.violated("the deletion of an orphan ends with %v", err)
			}
		}
	}
}

// object returns the Machine as the manager passes it. No Machine of a run is too old for its creation.
func (m *machine) object() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.name, Namespace: "sim", UID: m.uid, Annotations: m.annotations,
			CreationTimestamp: metav1.NewTime(m.created), DeletionTimestamp: m.deleted,
			OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: class, Controller: new(true)}},
		},
		Spec: v1alpha1.MachineSpec{ProviderID: m.providerID, MachineConfiguration: &v1alpha1.MachineConfiguration{
			MachineCreationTimeout: &metav1.Duration{Duration: 24 * time.Hour}}},
	}
}

var machineClass = &v1alpha1.MachineClass{
	ObjectMeta: metav1.ObjectMeta{Name: class, Namespace: "sim"}, Provider: "stackit",
	ProviderSpec: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"machineType": %q, "imageId": %q, "networking": {"networkId": %q}, "bootVolume": {"size": 20},
		"labels": {%q: %q}, "allowedAddresses": [%q]}`, iaasmock.DefaultMachineType, iaasmock.DefaultImageID,
		iaasmock.DefaultNetworkID, clusterLabel, cluster, allowed)},
}

func secret() *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{
		"projectId": []byte(iaasmock.DefaultProjectID), "region": []byte(iaasmock.DefaultRegion),
		"serviceAccountKey": simulationKey(), "userData": []byte("#cloud-config"),
	}}
}

// serverOf returns the server's ID in a ProviderID.
func serverOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }
