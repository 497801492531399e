// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo knows the version of the program that it is linked into.
package buildinfo

import "runtime/debug"

// version overrides the build's own, for builds without a git checkout:
// -ldflags "-X <this package>.version=v1.2.3".
var version string

// Version is the module's version, which names the commit in a build from a checkout.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
