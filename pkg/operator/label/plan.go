// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package label

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/account"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// Outcome is what became, or would become, of a Machine's server.
type Outcome string

// The outcomes.
const (
	// Complete means that the server carries the labels already.
	Complete Outcome = "complete"
	// Missing means that labels are missing, and would be put there.
	Missing Outcome = "missing"
	// Labelled means that they were put there.
	Labelled Outcome = "labelled"
	// Refused means that the server is left alone: Reason says why.
	Refused Outcome = "refused"
	// Wrong means that the API's answer does not show the labels that the server should have.
	Wrong Outcome = "wrong"
	// Unknown means that it could not be told, or that nobody knows what became of the request.
	Unknown Outcome = "unknown"
)

// Server is the server of a Machine.
type Server struct {
	Namespace  string `json:"namespace"`
	Machine    string `json:"machine"`
	Class      string `json:"class"`
	ProviderID string `json:"providerID,omitempty"`
	// ID is the server's, as the ProviderID has it; "" if it has none.
	ID        string `json:"id,omitempty"`
	ProjectID string `json:"projectId,omitempty"`
	Region    string `json:"region,omitempty"`
	// Labels are those that are, or were, missing.
	Labels  map[string]string `json:"labels,omitempty"`
	Outcome Outcome           `json:"outcome"`
	// Reason says why, in one line; "" for what needs no reason.
	Reason string `json:"reason,omitempty"`

	machine *v1alpha1.Machine
	// class is nil if it does not exist; at, where the driver works for it, if its credentials
	// cannot be used.
	class *account.Class
	at    *account.Account
}

// Plan is what Make found: the servers of the namespace's Machines, sorted by Machine. Those of
// Machines that are being deleted, or wait for their first server, are not among them.
type Plan struct {
	Servers []Server `json:"servers"`

	access *account.Access
	// owners are the Machines of all namespaces that may be read.
	owners *account.Owners
}

func (s *Server) end(outcome Outcome, reason string) {
	s.Outcome, s.Reason = outcome, report.OneLine(reason)
}
