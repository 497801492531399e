// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package provider is machine-controller-manager's driver for STACKIT: it creates, finds and deletes
// one server for each Machine.
//
// Three promises shape it: never two servers for a machine, never a leaked one, never a change to a
// server that is not ours. If something is uncertain (an answer was lost, a list lags, a predecessor
// worked on the machine, the project looks empty for a moment), the driver waits; it never guesses.
//
// core.go has one function for each driver method; instrument.go adds deadline, log line and metrics. A
// request becomes a call (call.go, from the inputs in inputs.go). create.go, delete.go, status.go and
// nics.go have the steps, openstack.go the steps for Machines from OpenStack. README.md has diagrams of
// the methods and the rules, decisions.md the reasons and the rejected alternatives.
//
// Below the steps, each file answers one question:
//
//   - memory.go: what has this process done for the Machine, and may it send a POST?
//   - lookup.go: which servers does the Machine have, and when is it certain that there are no others?
//   - server.go: what is a server's state, and when is it proved gone?
//   - lists.go: which callers share a read? API calls are scarce.
//   - ownership.go: which server is the Machine's?
//   - wait.go: does an error end the call?
//   - errors.go: which code and text does the manager get?
//
// # Where to change
//
//   - a poll interval: firstPoll, minPoll, maxPoll, minPollGap, firstDeletionPoll, minDeletionPoll, polls in server.go;
//     TestThePagesHaveTheNumbersOfTheCode prints each sentence of README.md and decisions.md that is then out of date;
//     the tables of TestWhatACallDoesStepByStep and TestFigures change, too
//   - the reads per second: readsPerSecond in pkg/spi/limits.go; their retries: mayRetry, backoff in pkg/spi/retry.go;
//     the writes in flight while the API fails: paced, kind in pkg/spi/pace.go
//   - a wait that takes too long. For one read: readTimeout in lists.go. For an earlier POST's server to appear in
//     lists, before the next POST: DefaultSettle in provider.go. For a whole call: DefaultCreationWait, deleteTimeout
//     in call.go. For the deletion of a failed server to begin: discardTimeout in create.go. For refusals (401, 403,
//     404) to pass: refusedFor in wait.go, refusedRepeat in server.go. Before a DELETE: lookupTimeout,
//     longLookupTimeout in delete.go
//   - when a server counts as gone: gone in server.go; when a machine counts as having no server: none in lookup.go
//   - when a deletion counts as failed or stuck, so that its DELETE is repeated: deletionTimeout, deletionRepeat,
//     advanceDeletion in server.go
//   - when a list replaces a GET, or the reverse: lister in lists.go, nextRead in server.go
//   - whether a failed call ends a wait: afterRead, afterStep in wait.go
//   - a label, or which server is ours: checkOwned, missingLabel in ownership.go
//   - a rule about Machines that came from OpenStack: takeOver, leftovers in openstack.go
//   - which answers are the API's own: Message in pkg/spi/errors.go, exchange in sdk_client.go
//   - a reason, its code and its text: reasonCodes, rules in errors.go, with a row in TestClassify. The text of the
//     driver's own decisions is where they are made; code, cause and remedy of each reason: a row in
//     kubernetes/runbooks.md (go test ./pkg/operator/list -run Reason)
//   - how long the machines of an exhausted class get no server: exhaustedFor in create.go
//   - a field of the providerSpec: ProviderSpec in apis/provider_spec.go; its limit for the schema: SpecLimits in
//     apis/validation/patterns.go; its place in the request: serverPayload in helpers.go; samples/machine-class.yaml.
//     fields_test.go fails until these are done, and `make generated` writes the table of apis/README.md and the
//     schemas. Its rule: ValidateProviderSpec in apis/validation/validation.go; TestEveryLimitIsChecked fails until
//     ValidateProviderSpec refuses every value that the schema refuses; other rules need rows in
//     TestValidateProviderSpec. Whether the field's value exists in the cloud: pkg/operator/validate/online.go. A field
//     that is not sent under its own name: sentElsewhere in fields_test.go, and a test of how its value is sent
//   - a metric of the driver: meters, newMeters, Collect in metrics.go, fed by the method that sees the event, and
//     tested (metrics_test.go); a counter whose labels have few values starts with beginWithZero; a metric of a
//     session: pkg/spi/metrics.go. `make generated` writes the table of kubernetes/monitoring/README.md, which also
//     explains how to add an alert. TestEveryMetricOfTheDriverIsInUse of test/monitoring fails until an alert, a panel
//     or a page uses the metric
//   - which parts of the API's messages may be shown: redacted in redact.go
//   - which API calls the driver needs: StackitClient in stackit_client.go, sdkClient in sdk_client.go
//   - when a leader that was paused may go on: cmd/machine-controller/leading.go
package provider
