// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks each request and answer of the IaaS API against the official
// OpenAPI document.
//
// The document is not part of this project. The environment variable IAAS_OPENAPI names its
// file; without the variable Watch checks nothing:
//
//	cloud := iaasmock.New()
//	api := httptest.NewServer(conformance.Watch(t, cloud))
//
// These rules are checked for each call:
//   - A request that was answered with success matches the document. One that matches may
//     still be refused: STACKIT has rules that are not in the document.
//   - A request that was refused with 400 and does not match the document was refused with
//     kin-openapi's message, which is STACKIT's. One that matches was not refused with such
//     a message.
//   - The answer has a documented status, the documented body and no undocumented property.
//   - The call is counted under the document's operationId.
//
// Answers that an iaasmock.Fault replaced are not checked.
package conformance
