// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"errors"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/provider"
)

// silence is how long a Machine may be without a word of the manager: a call of the driver
// ends within 10 minutes (provider.DefaultCreationWait), and its end is noted.
const silence = 10 * time.Minute

// silent is what stands for the reason of a Machine without a word.
const silent = "nothing at all"

// stuckNotes says whether a Machine is stuck: its last operation failed, or the manager says
// nothing of it.
func (s *observation) stuckNotes(machine *machineView) []Note {
	state := machine.Status
	phase := state.CurrentStatus.Phase
	if phase == "" && state.LastOperation.Description == "" {
		if len(machine.servers) > 0 || machine.DeletionTimestamp != nil || s.now.Sub(machine.CreationTimestamp.Time) < silence {
			return nil
		}
		return []Note{stuckNote(silent, "the manager has said nothing since the Machine was made", remedyForSilence())}
	}
	if state.LastOperation.State != v1alpha1.MachineStateFailed || phase == v1alpha1.MachineRunning || phase == v1alpha1.MachineAvailable {
		return nil
	}
	code, text, decoded := lastFailure(&state.LastOperation)
	if !decoded {
		return []Note{stuckNote(state.LastOperation.ErrorCode, text, nil)}
	}
	return []Note{stuckNote(cmp.Or(string(provider.ReasonIn(text)), code.String()), text, remedyFor(text))}
}

func stuckNote(about, text string, remedy *Remedy) Note {
	note := Note{Kind: NoteStuck, About: about, Reason: text}
	if remedy != nil {
		note.Cause, note.Remedy = remedy.Cause, remedy.Remedy
	}
	return note
}

// lastFailure returns the code and text of a failed operation, which stand between brackets
// in its description (v0.62.1 machinecodes/status/status.go). If there are none, the text is
// the description.
func lastFailure(operation *v1alpha1.LastOperation) (code codes.Code, text string, decoded bool) {
	failure, decoded := status.FromError(errors.New(operation.Description))
	if !decoded {
		return codes.Unknown, report.OneLine(operation.Description), false
	}
	return failure.Code(), report.OneLine(failure.Message()), true
}
