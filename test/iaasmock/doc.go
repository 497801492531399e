// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package iaasmock is a fake STACKIT cloud for tests: the IaaS API v2 and its token endpoint
// as an http.Handler that keeps state.
//
// Servers go through STACKIT's states (CREATING, ACTIVE, DELETING, gone), get addresses from
// their network, and leave the same resources behind as on STACKIT, such as volumes without
// deleteOnTermination. The API document, in comments also "the document", is STACKIT's
// official OpenAPI document of the IaaS API v2. Requests are checked against it and refused
// with STACKIT's messages; beyond it the mock refuses only requests that STACKIT is known to
// refuse. Nothing runs in the background: each request computes the state from the clock,
// which may be a fake clock.
//
//	cloud := iaasmock.New(iaasmock.WithBootDuration(2 * time.Second))
//	api := httptest.NewServer(cloud)
//	defer api.Close()
//	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
//	// Give the client under test key, api.URL as endpoint, api.URL+"/oauth/v2/token" as token
//	// endpoint, and make the mock lose one answer to CreateServer:
//	cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
//	// ... run it, then check which servers exist and which calls were made:
//	fmt.Println(len(cloud.Servers()), cloud.CallCounts()["CreateServer"])
//
// Servers boot in seconds, so that tests are short; WithLive makes the mock as slow as STACKIT.
//
// Package fault describes faults. WithSeed makes a run repeatable; admin.go serves the state and the
// faults over HTTP. Package openapi has the API document, which the mock uses to route and check
// requests; package conformance also checks answers against it.
//
// http.go serves a call: operations.go finds its handler and checks the request against the
// document, faults.go adds the faults, accounts.go has keys and tokens. servers.go,
// server_create.go, nics.go and volumes.go have the operations that change resources, catalogue.go
// the read-only resources. resources.go finds the resource that a request names; cloud.go is the
// store with its one lock. decisions.md gives the reasons, and the rejected alternatives.
//
// A new field of a Fault goes into fault/fault.go, and takes effect as r.fault where the call is
// answered: in http.go if it changes the answer of any operation, else in the operation's handler.
// A new operation is a handler in operations.go, and a name in fault.Operations.
//
// DefaultCatalogue has the resources of a new Cloud; calls can change them. Calls that the
// mock does not implement are answered with 404 or 405 and counted as "Unknown". All clients
// are treated alike.
package iaasmock
