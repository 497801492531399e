// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the files of kubernetes/monitoring, and lets promtool, Prometheus'
// own tool, check and evaluate them. Its tests need no cluster: each alert must fire on some
// series made by hand and not on others, the dashboard's queries must parse, and the manifests
// decode as in prometheus-operator. The end-to-end tests use the package to evaluate the alerts
// on series of a real sidecar.
package monitoring
