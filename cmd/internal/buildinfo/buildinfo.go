// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo provides the version of the program it is linked into.
package buildinfo

import "runtime/debug"

// version overrides the module's version, for builds without a git checkout:
// -ldflags "-X <this package>.version=v1.2.3".
var version string

// Version returns the version that the linker set, else the module's version, which contains the
// commit in a build from a git checkout. It is "devel" or "unknown" if the build recorded neither.
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
