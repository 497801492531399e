// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package apis holds what an operator writes for the driver: the ProviderSpec of
// a MachineClass and the fields of its Secret, with their defaults. The rules for
// them are in package validation.
package apis
