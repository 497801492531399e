// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager uses Alertmanager's own library to test which alerts are inhibited while
// others fire. It is a separate module.
package alertmanager
