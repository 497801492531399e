# SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
# SPDX-License-Identifier: Apache-2.0

# For those who build with docker. `make image` needs none: .ko.yaml.
# The builder runs on the machine's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS builder

WORKDIR /src

# The dependencies first: they change less often than the code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY cmd/ cmd/
COPY pkg/ pkg/

ARG TARGETOS
ARG TARGETARCH
# There is no .git here to take a version from, so it is handed in:
#   docker build --build-arg VERSION="$(git describe --tags --always --dirty)" .
ARG VERSION
ENV CGO_ENABLED=0 GOCACHE=/cache/go-build
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo.version=$VERSION" \
    -o /machine-controller ./cmd/machine-controller

# No shell, no package manager, user 65532; CA certificates for the cloud's API.
# Renovate adds the digest, and renews it with the certificates.
FROM gcr.io/distroless/static-debian13:nonroot

COPY --from=builder /machine-controller /machine-controller
# Where ko puts it.
COPY cmd/machine-controller/kodata/ /var/run/ko/

# Gardener passes arguments only.
ENTRYPOINT ["/machine-controller"]
