// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package image_test

import "os/exec"

// asUser does nothing: the image's program runs on Linux only.
func asUser(*exec.Cmd) {}
