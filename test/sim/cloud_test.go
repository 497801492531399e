// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	iaas "github.com/stackitcloud/stackit-sdk-go/services/iaas/v2api"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/spi"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

var (
	realClock  = clock.RealClock{}
	ids        = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	errCrashed = errors.New("the process has crashed")
)

// wire carries the requests of a process to the cloud, as long as it lives.
type wire struct {
	*world
	process *process
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.process.ctx.Err() != nil {
		return nil, errCrashed
	}
	c := w.arrives(r)
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders() // else the driver would take a lost answer for a request that was never sent
	}
	random := w.random("request", c.label)
	there, back, late := between(random, time.Millisecond, w.plan.latency), between(random, 0, w.plan.latency),
		between(random, w.plan.late/2, w.plan.late)
	err := spi.Sleep(r.Context(), realClock, there)
	if isCrashed := w.process.ctx.Err() != nil; isCrashed || err == nil && c.meets.late {
		w.carryOutLate(r, c, late) // a crash does not stop a request that is under way
		err = io.ErrUnexpectedEOF
	}
	var response *http.Response
	if err == nil {
		response, err = w.carryOut(r, c)
	}
	if c.meets.crash {
		w.crash(w.process, "after "+c.label)
	}
	if err == nil {
		err = spi.Sleep(r.Context(), realClock, back)
	}
	if w.process.ctx.Err() != nil {
		err = errCrashed
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// call is a request in flight. label is unique in a run, id is that of the server, NIC or volume in the path, meets
// is the fault that hits it.
type call struct {
	operation, id, label string
	meets                planned
}

// arrives counts a request, and finds out what happens to it.
func (w *world) arrives(r *http.Request) *call {
	c := &call{}
	c.operation, c.id = operationOf(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	nth := w.counts[c.operation]
	w.counts[c.operation]++
	c.label = fmt.Sprint(c.operation, " ", nth)
	at := slices.IndexFunc(w.plan.faults, func(f planned) bool {
		return f.operation == c.operation && nth >= f.nth && nth < f.nth+f.times
	})
	if at >= 0 && !w.calm {
		c.meets = w.plan.faults[at]
		w.hits = append(w.hits, c.meets)
	}
	return c
}

// ticket is the context key that marks the one request that a fault of the mock is for.
type ticket struct{}

// carryOut lets the cloud carry out a request.
func (w *world) carryOut(r *http.Request, c *call) (*http.Response, error) {
	if in := c.meets.in; !reflect.ValueOf(in).IsZero() {
		in.Operation, in.Count = c.operation, 1
		in.Match = func(r *http.Request) bool { return r.Context().Value(ticket{}) == c.label }
		defer w.cloud.Inject(in)()
	}
	w.checkRequest(c)
	response, err := serve(w.cloud, r.Clone(context.WithValue(r.Context(), ticket{}, c.label)))
	outcome := fmt.Sprint(err)
	if err == nil {
		outcome = response.Status
	}
	w.logf("   %s %s: %s %s", c.label, c.id, outcome, c.meets.name)
	if r.Method != http.MethodGet {
		w.checkCloud()
	}
	return response, err
}

// carryOutLate lets the cloud carry out a request whose sender has given up.
func (w *world) carryOutLate(r *http.Request, c *call, late time.Duration) {
	w.late.Go(func() {
		<-time.After(late)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
		defer cancel()
		_, _ = w.carryOut(r.Clone(ctx), c)
	})
}

// operationOf names a request by its method and path, and returns the last ID in the path.
func operationOf(r *http.Request) (operation, id string) {
	_, path, isIaaS := strings.Cut(r.URL.Path, "/regions/"+iaasmock.DefaultRegion+"/")
	if !isIaaS {
		return opToken, ""
	}
	path = ids.ReplaceAllStringFunc(path, func(found string) string {
		id = found
		return "*"
	})
	return operations[r.Method+" "+path], id
}

// serve answers in memory, so that a bubble's time can pass. The handler aborts where the connection breaks.
func serve(cloud http.Handler, r *http.Request) (response *http.Response, err error) {
	defer func() {
		switch cause := recover(); {
		case cause == nil:
		case cause != any(http.ErrAbortHandler):
			panic(cause)
		case r.Context().Err() != nil:
			err = r.Context().Err()
		default:
			err = io.ErrUnexpectedEOF
		}
	}()
	if r = r.Clone(r.Context()); r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	cloud.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

const (
	clusterLabel = "kubernetes.io/cluster"
	// fromOpenStack is the name of the Machine from OpenStack, openStackTag the start of the tag that names the cluster
	// of a server there.
	fromOpenStack = "from-openstack"
	openStackTag  = "kubernetes.io-cluster-"
)

type labels = map[string]any

// direct carries another user's requests.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) { return serve(d, r) }

// populate makes resources that look much like ours: of other clusters, other Machines, and of nobody. Then come those
// of the Machine from OpenStack, which the driver is to take over.
func (w *world) populate() {
	sessions := &spi.PluginSPIImpl{Config: config, Transport: direct{w.cloud}}
	session, err := sessions.Session(spi.Credentials{
		ProjectID: iaasmock.DefaultProjectID, ServiceAccountKey: string(simulationKey())})
	if err != nil {
		w.Fatal(err)
	}
	w.api = session.API
	machine, elsewhere := provider.StackitMachineLabel, "shoot-z"
	w.server(name(0), labels{clusterLabel: elsewhere, machine: name(0), provider.StackitMachineClassLabel: class}, nil)
	w.server(name(0), labels{machine: name(0), provider.StackitMachineClassLabel: class, "x/cluster": elsewhere}, nil)
	w.server(name(0), labels{clusterLabel: cluster, machine: "by-hand"}, nil)
	w.server("nobody-s", nil, nil)
	w.server(fromOpenStack, nil, labels{openStackTag + elsewhere: "1"})
	for _, of := range []labels{{clusterLabel: elsewhere}, {machine: "by-hand"}, {openStackTag + elsewhere: "1"}} {
		w.nic(fromOpenStack, of)
		w.volume(fromOpenStack, of)
	}
	<-time.After(w.plan.boot + time.Minute)
	w.foreign = w.things()
	if w.plan.fromOpenStack {
		w.migratedServer = w.server(fromOpenStack, nil, labels{openStackTag + cluster: "1"})
		<-time.After(w.plan.boot + time.Minute)
	}
	w.migrated = w.things()
	maps.DeleteFunc(w.migrated, func(id string, _ any) bool { return w.foreign[id] != nil })
}

// server makes a server with a NIC and a volume of its own, as Gardener's OpenStack provider does.
func (w *world) server(name string, of, tags labels) (id string) {
	request := w.api.CreateServer(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return w.made(request.CreateServerPayload(iaas.CreateServerPayload{
		Name: name, MachineType: iaasmock.DefaultMachineType, Labels: of, Metadata: tags,
		BootVolume: &iaas.BootVolume{Source: &iaas.BootVolumeSource{Id: w.volume(name, nil), Type: "volume"}},
		Networking: iaas.CreateServerPayloadAllOfNetworking{
			CreateServerNetworkingWithNics: &iaas.CreateServerNetworkingWithNics{NicIds: []string{w.nic(name, nil)}}},
	}).Execute())
}

func (w *world) nic(name string, of labels) (id string) {
	request := w.api.CreateNic(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion, iaasmock.DefaultNetworkID)
	return w.made(request.CreateNicPayload(iaas.CreateNicPayload{Name: &name, Labels: of}).Execute())
}

func (w *world) volume(name string, of labels) (id string) {
	size := int64(20)
	request := w.api.CreateVolume(w.Context(), iaasmock.DefaultProjectID, iaasmock.DefaultRegion)
	return w.made(request.CreateVolumePayload(iaas.CreateVolumePayload{
		Name: &name, Size: &size, AvailabilityZone: iaasmock.DefaultAvailabilityZone, Labels: of,
		Source: &iaas.VolumeSource{Type: "image", Id: iaasmock.DefaultImageID},
	}).Execute())
}

func (w *world) made(thing interface{ GetId() string }, err error) (id string) {
	if err != nil {
		w.Fatal(err)
	}
	return thing.GetId()
}

// things returns all servers, NICs and servers' own volumes, by ID. Nobody deletes other volumes.
func (w *world) things() map[string]any {
	things := map[string]any{}
	for _, server := range w.cloud.Servers() {
		things[server.ID] = server
	}
	for _, nic := range w.cloud.NICs() {
		things[nic.ID] = nic
	}
	for _, volume := range w.cloud.Volumes() {
		if volume.MadeByServer {
			things[volume.ID] = volume
		}
	}
	return things
}

// comeOver adds the Machine from OpenStack, as STACKIT's extension for Gardener migrates it.
func (w *world) comeOver() {
	m := machine{name: fromOpenStack, created: time.Now().Add(-time.Minute),
		annotations: map[string]string{"stackit.cloud/migrated-machine": "true"}}
	if w.plan.hasID {
		m.firstID = "openstack:///RegionOne/" + w.migratedServer
		m.providerID = m.firstID
	}
	w.want(m)
}
