// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// Origin is how a Machine comes from OpenStack.
type Origin struct {
	// Class of the Machine.
	Class string
	// Servers of its name: none, one, or two, of which the second is somebody else's. Without a
	// ProviderID nobody can tell two apart.
	Servers int
	// Named is when somebody writes the ProviderID of the first of two, after the mark.
	Named time.Duration
	// Broken says that they are in ERROR.
	Broken bool
	// HasID says that the Machine has the ProviderID of the first of them and runs. Without
	// one its creation had not come to its end.
	HasID bool
	// Marked is when it gets the annotation, from the beginning; 0 is before.
	Marked time.Duration
	// Deleted is when it is deleted, from the beginning; 0 is at the end.
	Deleted time.Duration
	// Elsewhere says that somebody else's server has a NIC and a volume of its name.
	Elsewhere bool
}

// openStackMachine is a Machine that came from OpenStack.
type openStackMachine struct {
	owner
	Origin
	// servers, and all that it has by ID: servers, NICs and volumes.
	servers, leftovers []string
}
