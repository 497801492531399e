// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package iaasmock_test

// raceDetector makes everything slower, so that times mean nothing.
const raceDetector = false
