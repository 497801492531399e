// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds calls of the IaaS API against its official OpenAPI
// document: what a client sent and what it was answered.
//
// The document is not part of this project. The environment variable
// IAAS_OPENAPI names it; without the variable Watch lets everything pass, and
// tests run unchecked:
//
//	cloud := iaasmock.New()
//	api := httptest.NewServer(conformance.Watch(t, cloud))
//
// What is checked of each call:
//   - a request that was answered with success fits the document; one that fits
//     may be refused all the same, since the cloud knows more than its document;
//   - a request that was refused with 400, and that the document refuses, was
//     refused in the words of kin-openapi, which are the service's; one that fits
//     was not refused in such words;
//   - the answer has a documented status, and a body as documented for it, down
//     to no property that is not documented;
//   - the call is counted under the document's operationId.
//
// Answers that an iaasmock.Fault replaced are not the API's and pass unchecked.
package conformance
