// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules for what package apis decodes. They are the
// IaaS API's own schema rules (document version 2), not narrower ones: machine
// types, zones and regions that the cloud will have tomorrow must pass.
package validation
