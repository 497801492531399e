// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Call is a call of the API as faults see it.
type Call struct {
	// Operation is an operationId of the API document, OperationToken or
	// OperationUnknown.
	Operation string
	Request   *http.Request
	// Now is when it began.
	Now time.Time
	// Subject returns the server that the call is about, if there is one. It is called
	// only if a fault selects servers.
	Subject func() (Subject, bool)
}

// Subject is a server that a call is about.
type Subject struct {
	// ID is empty for a server that the call is to create.
	ID, Name string
	Labels   labels.Set
}
