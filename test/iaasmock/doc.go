// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package iaasmock is a STACKIT cloud that fits into a test: the IaaS API v2
// with its token endpoint as an http.Handler that keeps state.
//
// Servers live as in the cloud (CREATING, ACTIVE, DELETING, gone), take
// addresses from their network, and leave behind what the cloud leaves behind.
// Requests are checked against the rules of the official API document and
// refused in the service's words; beyond them only what the cloud is known to
// refuse is (but see WithUnconfirmedRefusals). Nothing runs in the background: the state
// and what goes wrong follow from the clock, which may be a fake one.
//
//	cloud := iaasmock.New(iaasmock.WithBootDuration(2 * time.Second))
//	api := httptest.NewServer(cloud)
//	defer api.Close()
//	key, err := cloud.NewServiceAccountKey(iaasmock.DefaultProjectID)
//	// Give the client under test key, api.URL as endpoint, api.URL+"/token" as
//	// token endpoint, and let one answer to CreateServer get lost:
//	cloud.Inject(iaasmock.Fault{Operation: "CreateServer", Count: 1, DropAfter: true})
//	// ... run it, then look at what exists and what was called:
//	fmt.Println(len(cloud.Servers()), cloud.CallCounts()["CreateServer"])
//
// Quotas count (WithQuota), machine types run out (WithCapacity), and both can be
// changed while the cloud runs (SetQuota, SetCapacity).
//
// Package fault has all that can go wrong and the usual cases of it (Presets); WithSeed makes
// what is random happen again. Package console is the page at /, which shows what there is
// and can break it. The rules of requests are in internal/schema, keys and tokens in
// internal/token; the resources and their handlers are here, under one lock.
//
// What a fresh cloud holds is in DefaultCatalogue; calls can change it. Package
// conformance holds what a test and the mock say to each other against the
// official API document. Calls the mock does not know are answered with 404 or
// 405 and counted as "Unknown". No client is treated specially.
package iaasmock
