// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package stack

// Cloud is the IaaS API that the controllers of an environment work with.
type Cloud interface {
	// Start makes the API reachable and says how. ended is to be called if it ends by itself
	// before Stop: that fails the environment.
	Start(ended func(error)) (API, error)
	// Stop ends what Start has begun.
	Stop()
}

// API says how the controllers reach an IaaS API. It is the Cloud of an API that is there
// already, such as the real one.
type API struct {
	// Environment holds the sidecar's variables ("NAME=value") for it.
	Environment []string
	// ServiceAccountKey (JSON) goes into the Secrets that ApplyFile applies; nil leaves them
	// as they are.
	ServiceAccountKey []byte
}

// Start implements Cloud: there is nothing to start.
func (a API) Start(func(error)) (API, error) { return a, nil }

// Stop implements Cloud: there is nothing to stop.
func (API) Stop() {}
