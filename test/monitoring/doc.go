// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads what kubernetes/monitoring holds, and has promtool, Prometheus'
// own tool, check and evaluate it. Its tests need no cluster: they let each alert fire and
// not fire on series made by hand, parse the dashboard's queries, and decode the manifests
// as prometheus-operator does. The end-to-end tests use the package to evaluate the alerts
// on series of a real sidecar.
package monitoring
