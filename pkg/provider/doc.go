// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider is the driver of machine-controller-manager for STACKIT: it creates,
// finds and deletes one server for each Machine.
//
// Three promises shape it: never two servers for a machine, never a leaked one, never a
// change to one that is not ours. If this process cannot know something (an answer was lost, a
// list lags, a predecessor worked on the machine, the project looks empty for a moment), it
// waits; it never guesses.
//
// core.go has one function for each driver method; instrument.go adds deadline, log line and
// metrics, request.go decodes the request; create.go, delete.go, status.go and nics.go have
// the steps. Package ledger remembers what this process did for each machine. API calls are
// scarce: package coalesce lets callers share reads, and reads.go has the scopes in which
// they do. Three rules have one place each: wait.go says what an error means for a call,
// gone.go what proves an absence, ownership.go which server may be used.
//
// Where to change
//
//   - a poll interval: the numbers of reads.go
//   - how many reads a second: pkg/spi/spi.go; the backoff of HTTP retries: pkg/spi/retry.go;
//     how many writes are sent while the API fails: pkg/spi/pace.go
//   - a wait that takes too long. For a whole call: request.go. Until the next read of a server:
//     reads.go, pkg/spi/spi.go. Until a server counts as gone, or as none: gone.go. Before a POST that
//     may be a second one: DefaultSettle in provider.go. Before a DELETE: delete.go, console.go. For a
//     failed server before the next one: create.go. For NICs and volumes from OpenStack: openstack.go.
//     For a 403 to pass, or for lists of the project to fail: wait.go. Until a request is sent:
//     pkg/spi/doc.go shows the chain
//   - what counts as gone, or as none; when a deletion has failed or is stuck, and is asked for
//     again: gone.go
//   - whether a failed call ends a wait: wait.go
//   - a label, or which server is ours: ownership.go
//   - a rule about Machines that came from OpenStack: openstack.go
//   - what is the API's word: Message in package spi, and sdk_client.go
//   - a reason, its code, or the reason and text for a failed API call, by status or words: errors.go; the text of a
//     decision of the driver's own: where it is made; cause and remedy of a reason:
//     kubernetes/runbooks.md
//   - when a list takes the place of a GET that fails, or the reverse: internal/coalesce for
//     callers who share reads, reads.go for one server
//   - why a server never joined, and what is looked for in console logs: console.go
//   - for how long the machines of a class get no server, because it is exhausted or one showed no
//     labels: create.go
//   - a field of the providerSpec: apis/provider_spec.go; its limit for the schema:
//     apis/validation/patterns.go; its place in the request: helpers.go; samples/machine-class.yaml.
//     fields_test.go is red until these are done, and `make generated` writes the table of
//     apis/README.md and the schemas. Its rule: apis/validation/validation.go, with values on both
//     sides in specValues of core_test.go, without which no test misses the rule. Whether the cloud
//     has what the field names: pkg/operator/validate/online.go
//   - a metric of the driver: metrics.go (meters, newMeters, parts or Collect), fed by the decorator of
//     API calls or by the method that knows; one of a session: pkg/spi/metrics.go. `make generated`
//     writes the table of kubernetes/monitoring/README.md, which also says how to add an alert
//   - what may be shown of the API's messages: request.go
//   - what the driver needs of the API: stackit_client.go, and sdk_client.go over the SDK
//   - when a leader that stood still may go on: cmd/machine-controller/leading.go
package provider
