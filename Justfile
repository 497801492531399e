# SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
# SPDX-License-Identifier: Apache-2.0

# The same as the Makefile, for those who like `just`. Whatever follows a recipe's
# name goes on to make: just start CONTROL_KUBECONFIG=…
set positional-arguments

# Local environment with the samples applied, until Ctrl-C.
dev *args:
    @make dev "$@"

# The sidecar: beside `just dev SIDECAR=none`, or for the clusters that are named.
start *args:
    @make start "$@"

# All tests.
test *args:
    @make test "$@"
