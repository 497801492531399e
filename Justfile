# SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
# SPDX-License-Identifier: Apache-2.0

# The same as the Makefile, for those who like `just`. Whatever follows a recipe's
# name goes on to make: just start CONTROL_KUBECONFIG=…
set positional-arguments

# Show what there is.
help *args:
    @make help "$@"

# Local environment with the samples applied, until Ctrl-C.
dev *args:
    @make dev "$@"

# The tour: 3 machines, 5, a rolling update, 0.
demo *args:
    @make demo "$@"

# The sidecar: beside `just dev SIDECAR=none`, or for the clusters that are named.
start *args:
    @make start "$@"

# The mock of the IaaS API alone.
mock *args:
    @make mock "$@"

# What local environments run.
localenv *args:
    @make localenv "$@"

# Build the sidecar.
build *args:
    @make build "$@"

# Build the operator's command.
mcm-stackit *args:
    @make mcm-stackit "$@"

# What to run while you edit.
check *args:
    @make check "$@"

# All tests.
test *args:
    @make test "$@"

# Tests that need no control plane.
test-unit *args:
    @make test-unit "$@"

# Tests that run built programs.
test-programs *args:
    @make test-programs "$@"

# End-to-end tests.
test-e2e *args:
    @make test-e2e "$@"

# The integration suite of machine-controller-manager.
test-integration *args:
    @make test-integration "$@"

# gofmt, go vet, golangci-lint and actionlint.
lint *args:
    @make lint "$@"

# Format the code.
fmt *args:
    @make fmt "$@"

# Everything that has to hold before a merge.
verify *args:
    @make verify "$@"

# Known vulnerabilities.
vulncheck *args:
    @make vulncheck "$@"

# The benchmarks.
bench *args:
    @make bench "$@"

# Measure many machines: just scale N=200
scale *args:
    @make scale "$@"

# Remove everything built.
clean *args:
    @make clean "$@"
