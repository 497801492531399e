// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// betweenHiccups is from the end of a moment in which the project looks empty to the
// beginning of the next.
const betweenHiccups = time.Minute

// hiccup lets the project look empty for a moment now and then, until the fault period is over.
func (w *world) hiccup() {
	length := w.plan.Hiccup
	if length == 0 {
		return
	}
	first := between(random(w.plan.Seed, "first hiccup"), 0, betweenHiccups)
	for after := first; after+length < w.plan.FaultPeriod; after += length + betweenHiccups {
		w.lookEmpty(after, length)
	}
}

// lookEmpty lets the project look empty: lists are empty, GET and DELETE answer 404. What
// is asked for is made all the same.
func (w *world) lookEmpty(after, length time.Duration) {
	if length == 0 {
		return
	}
	w.cloud.Inject(iaasmock.Fault{Operation: iaasmock.OperationIaaS, EmptyProject: true, After: after, Duration: length})
	w.spawn(func() {
		if w.sleep(after) {
			w.log("THE PROJECT LOOKS EMPTY for %s", length)
		}
	})
}

// anothers is a server of somebody else, which the answer to this CreateServer names. Its
// labels say whose it is: one without a machine label, of the Machine's name, looks like one
// whose labels the cloud has dropped, one without a cluster label like one from before there
// were any.
func (w *world) anothers(c call) string {
	var ids []string
	for _, server := range w.cloud.Servers() {
		labeled := server.Labels[provider.StackitMachineLabel] != "" && server.Labels[clusterLabel] != ""
		if labeled && ownerOf(&server) != (owner{c.cluster, c.subject}) {
			ids = append(ids, server.ID)
		}
	}
	return pick(random(w.plan.Seed, "another's", c.cluster, c.subject, c.repeat), ids...)
}

// anyOther lets a preset that shows any other server show one that is another's for all.
func (w *world) anyOther(fault iaasmock.Fault) iaasmock.Fault {
	if fault.OtherServer == iaasmock.AnyServer {
		fault.OtherServer = w.anothers(call{cluster: "of none"})
	}
	return fault
}
