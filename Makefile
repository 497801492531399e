# SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
# SPDX-License-Identifier: Apache-2.0

# Needs Go and make, and ps for test-integration and check; uses a C compiler if
# it is there. Works with the GNU make 3.81 that macOS has.
# Everything built lands in bin/, which git ignores.

SHELL := /bin/sh
.DEFAULT_GOAL := help

GO  ?= go
BIN := bin

# Recipes are shell text, and the VERSION of a release is a tag's name, which whoever may push tags
# chooses. So these are taken as they are, and refused with anything that a shell or a linker's flags
# could take for more than text. VERSION overrides the version that Go takes from git: make build
# VERSION=v1.2.3
TEXTS   := VERSION IMAGE BASE_IMAGE SOURCE_URL
is_text  = $(shell case '$(subst ','\'',$($(1)))' in (*[!0-9A-Za-z._~:/@%+-]*) ;; (*) echo yes;; esac)
$(foreach name,$(TEXTS),$(eval override $(name) := $$(value $(name))))
$(foreach name,$(TEXTS),$(if $($(name)),$(if $(call is_text,$(name)),,$(error \
	$(name) is '$($(name))': must be made of letters, digits and ._~:/@%+- (a version is such as v1.2.3)))))

# etcd and kube-apiserver are downloaded in this version, from where the index of a mirror says, or
# built: test/localenv/controlplane.sh. CONTROLPLANE=source only builds. The folder
# KUBEBUILDER_ASSETS has them already.
ENVTEST_VERSION := 1.36.2
ENVTEST_INDEX   ?=
CONTROLPLANE    ?=

# The nested modules under hack/tools are modules of their own, also where somebody keeps a go.work
# above this folder.
export GOWORK := off

# Compilers that collect less garbage are a little faster, and so is the linter.
GO_BUILD := GOGC=800 $(GO) build

# The race detector needs a C compiler on Linux. Without one the tests still run,
# and say so. Go takes a compiler that is there but does not run for one, and could build nothing.
CGO  := $(shell $(GO) env CGO_ENABLED)
ifeq ($(CGO),1)
ifeq ($(shell $$($(GO) env CC) --version >/dev/null 2>&1 && echo runs),)
CGO := 0
export CGO_ENABLED := 0
endif
endif
RACE ?= $(if $(filter 1,$(CGO)),-race)

LDFLAGS := -s -w $(if $(VERSION),-X github.com/stackitcloud/machine-controller-manager-provider-stackit/cmd/internal/buildinfo.version=$(VERSION))

GO_DIRS := $(wildcard cmd pkg test hack)
MODULES := $(patsubst %/,%,$(dir $(wildcard go.mod hack/schema/go.mod hack/tools/go.mod hack/tools/*/go.mod)))

# What needs a control plane or promtool, or runs built programs, is none of the unit tests.
# What takes longest is in test/ and begins first.
E2E_PKG        := ./test/e2e
SUITE_PKG      := ./test/integration/controller
MONITORING_PKG := ./test/monitoring
PROGRAM_PKGS   := ./cmd/mcm-stackit
unit_pkgs  = pkgs=$$($(GO) list ./...) || exit 1; pkgs=$$(echo "$$pkgs" | \
	grep -Ev '/(test/(e2e|localenv|integration/controller|monitoring)|cmd/mcm-stackit)(/|$$)' | sort -r)

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Try it

.PHONY: dev
dev: build-dev ## Local environment with the samples, and a line for each change of a Machine; SIDECAR=none starts no sidecar.
	@exec $(BIN)/dev dev $(if $(SIDECAR),--sidecar=$(SIDECAR))

.PHONY: demo
demo: build-dev ## The tour: 3 machines, 5, a rolling update, 0; fails if anything is left over or late.
	@exec $(BIN)/dev demo

.PHONY: build-dev
build-dev: localenv
	@echo "Building $(BIN)/dev"
	@$(GO_BUILD) -o $(BIN)/dev ./hack/dev

.PHONY: mock
mock: ## Only the mock of the IaaS API: make mock ARGS="--boot 2s".
	@echo "Building $(BIN)/iaasmock"
	@$(GO_BUILD) -o $(BIN)/iaasmock ./test/iaasmock/cmd/iaasmock
	@exec $(BIN)/iaasmock $(ARGS)

# With one of the three variables, the sidecar works for these clusters. Without, it joins
# the environment of `make dev SIDECAR=none`, which has left this file.
# --control-kubeconfig comes first: the integration suite of machine-controller-manager
# finds the process by how its command line begins.
LEADER_ELECT ?= false
CLUSTERS      = $(CONTROL_KUBECONFIG)$(TARGET_KUBECONFIG)$(CONTROL_NAMESPACE)
JOIN         := $(BIN)/dev.sh
SIDECAR_PATH  = $(if $(DLV),$(BIN)/dlv exec $(DLVFLAGS) $(BIN)/machine-controller-debug --,$(BIN)/machine-controller)

.PHONY: start
start: $(if $(CLUSTERS),start-inputs,start-join) $(if $(DLV),build-debug,build) ## The sidecar, for make dev SIDECAR=none or other clusters (hack/dev/README.md); DLV=1 debugs it.
	@$(if $(CLUSTERS),set -- --control-kubeconfig="$(CONTROL_KUBECONFIG)" \
		--target-kubeconfig="$(TARGET_KUBECONFIG)" --namespace="$(CONTROL_NAMESPACE)" \
		--leader-elect=$(LEADER_ELECT) --v=3,. $(JOIN)); \
	echo "Starting $(SIDECAR_PATH) $$*"; exec $(SIDECAR_PATH) "$$@" $(ARGS)

need = $(if $($(1)),,$(error $(1) is not set: $(2)))

.PHONY: start-inputs
start-inputs:
	@$(call need,CONTROL_KUBECONFIG,the file that reaches the cluster with the Machines)
	@$(call need,TARGET_KUBECONFIG,the file that reaches the cluster the machines join; "none" without one)
	@$(call need,CONTROL_NAMESPACE,the namespace of the Machines in the control cluster)

.PHONY: start-join
start-join:
	@test -f $(JOIN) && . $(JOIN) && kill -0 $$pid 2>/dev/null || { \
		echo "There is no environment: run 'make dev SIDECAR=none' in another terminal," \
			"or set CONTROL_KUBECONFIG, TARGET_KUBECONFIG and CONTROL_NAMESPACE." >&2; exit 2; }; \
	test $$sidecar = none || { \
		echo "The environment of 'make dev' has a sidecar of its own, and two would disturb each other:" \
			"run 'make dev SIDECAR=none' instead." >&2; exit 2; }

##@ Build and test

# Plain flags, so that tests find the same packages compiled. The manager is that of go.mod.
MCM := github.com/gardener/machine-controller-manager
.PHONY: localenv
localenv: $(if $(KUBEBUILDER_ASSETS),,$(BIN)/controlplane/.$(ENVTEST_VERSION)) $(BIN)/localenv/crds
	@echo "Building machine-controller-manager and machine-controller into $(BIN)/localenv"
	@$(GO_BUILD) -ldflags "-s -w" -o $(BIN)/localenv/ ./cmd/machine-controller $(MCM)/cmd/machine-controller-manager

# The folder is moved last: one that is not complete does not count.
$(BIN)/localenv/crds: go.mod
	@$(GO) mod download $(MCM)
	@rm -rf $@ $@.new && mkdir -p $@.new
	@cp "$$($(GO) list -m -f '{{.Dir}}' $(MCM))"/kubernetes/crds/*.yaml $@.new/
	@mv $@.new $@ && touch $@

.PHONY: build
build: ## Build the sidecar: bin/machine-controller, static and trimmed.
	CGO_ENABLED=0 $(GO_BUILD) -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/machine-controller ./cmd/machine-controller

# By its other name it is a plugin of kubectl, which finds both names in PATH.
.PHONY: mcm-stackit
mcm-stackit: ## Build the operator's command: bin/mcm-stackit, also as a plugin of kubectl.
	CGO_ENABLED=0 $(GO_BUILD) -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/mcm-stackit ./cmd/mcm-stackit
	@ln -sf mcm-stackit $(BIN)/kubectl-mcm_stackit
	@cp cmd/mcm-stackit/kubectl_complete-mcm_stackit $(BIN)/

# Without docker, for amd64 and arm64. The time in it is the commit's, and nothing in it is the
# clone's, so that it is the same wherever it is built with the same Go. The registry's password is that of `docker login`. An image's name has no
# capitals, which the repository that it is named after may have.
KO ?= $(BIN)/ko
.PHONY: image
image: $(KO) ## Build the sidecar's image: bin/image, an OCI layout; IMAGE=<registry>/<image> pushes it.
	@rm -rf $(BIN)/image && mkdir -p $(BIN)/image/sbom
	@VERSION="$(or $(VERSION),$$(git describe --tags --always --dirty))"; export VERSION; \
	KO_DOCKER_REPO="$$(echo '$(or $(IMAGE),machine-controller-manager-provider-stackit)' | tr '[:upper:]' '[:lower:]')" $(if $(BASE_IMAGE),KO_DEFAULTBASEIMAGE='$(BASE_IMAGE)') \
	SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" $(KO) build --bare --tags "$$VERSION" \
		--oci-layout-path $(BIN)/image --sbom spdx --sbom-dir $(BIN)/image/sbom --push=$(if $(IMAGE),true,false) --image-refs $(BIN)/image/refs \
		--image-label org.opencontainers.image.title=machine-controller-manager-provider-stackit \
		--image-label org.opencontainers.image.licenses=Apache-2.0 \
		--image-label org.opencontainers.image.version="$$VERSION" \
		--image-label org.opencontainers.image.revision="$$(git rev-parse HEAD)" \
		$(if $(SOURCE_URL),--image-label org.opencontainers.image.source='$(SOURCE_URL)') ./cmd/machine-controller

# For one cluster that is control and target cluster at once: `kubectl apply -f` takes it.
.PHONY: manifest
manifest: $(BIN)/kubectl ## The manifests of kubernetes/ as bin/manifest.yaml: make manifest IMAGE=<registry>/<image> VERSION=<tag>.
	@$(call need,IMAGE,the name of the image that 'make image' pushed)$(call need,VERSION,its tag)
	@image="$$(echo '$(IMAGE)' | tr '[:upper:]' '[:lower:]'):$(VERSION)"; \
	$(BIN)/kubectl kustomize kubernetes | \
		sed "s|image: machine-controller-manager-provider-stackit:dev$$|image: $$image|" >$(BIN)/manifest.yaml; \
	grep -q "image: $$image$$" $(BIN)/manifest.yaml

# With what a debugger needs, and nothing optimised away.
.PHONY: build-debug
build-debug: $(BIN)/dlv
	CGO_ENABLED=0 $(GO_BUILD) -gcflags='all=-N -l' -o $(BIN)/machine-controller-debug ./cmd/machine-controller

# Each promise once: the unit tests keep two cores busy, and beside them the journeys mostly wait.
.PHONY: test test-beside-unit
test: localenv race-note ## What to run before a push: unit tests, journeys, alerts, 300 plans of the simulation.
	@$(MAKE) -j2 test-unit test-beside-unit
test-beside-unit:
	@$(MAKE) -j1 test-e2e test-programs test-monitoring

# With the race detector, which makes tests ten times as slow, what is concurrent: sessions, the mock, and of the
# driver what calls share (once more).
RACE_PKGS  := ./pkg/spi ./pkg/internal/... ./test/iaasmock
RACE_FILES := pkg/provider/sharing_test.go
race_tests  = $$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $(RACE_FILES) | tr '\n' '|')
.PHONY: test-unit
test-unit: race-note ## Tests without a control plane; those of what is concurrent with the race detector.
	@$(unit_pkgs); $(GO) test -p 2 -timeout 20m $(TESTFLAGS) $$(echo "$$pkgs" | grep -Ev '/(pkg/spi|pkg/internal/.*|test/iaasmock)$$')
	@$(GO) -C hack/schema test $(TESTFLAGS) ./...
	@$(GO) test $(RACE) -p 2 -timeout 20m $(TESTFLAGS) $(RACE_PKGS)
	@$(if $(RACE),$(GO) test $(RACE) -short -timeout 20m $(TESTFLAGS) -run "^($(race_tests)-)$$" ./pkg/provider)

# The race detector would not see into the programs.
.PHONY: test-programs
test-programs:
	$(GO) test -shuffle=on -timeout 10m $(TESTFLAGS) $(PROGRAM_PKGS)

# Specs mostly wait for the manager's fixed steps: eight processes keep two cores half busy. Without the race
# detector: it would not see into the programs, and the mock and the local environment have tests of their own.
PROCS  ?= 8
.PHONY: test-e2e
test-e2e: localenv mcm-stackit $(BIN)/ginkgo $(BIN)/promtool $(BIN)/kubectl ## End-to-end tests on local environments: make test-e2e FOCUS=OpenStack.
	@$(BIN)/ginkgo run --procs=$(PROCS) --randomize-all --fail-on-empty --timeout=60m \
		$(if $(FOCUS),--focus='$(FOCUS)') $(GINKGOFLAGS) $(E2E_PKG)

# Not among the unit tests: promtool takes minutes to build the first time.
.PHONY: test-monitoring
test-monitoring: $(BIN)/promtool
	$(GO) test -count=1 -timeout 30m $(TESTFLAGS) $(MONITORING_PKG)

# Without the race detector: what runs in the test's process is MCM's. With REAL=1 in a real project, which
# other variables name: test/probes/README.md.
.PHONY: test-integration
test-integration: localenv ## MCM's own integration suite on a local environment, about 3 minutes.
	$(GO) test -count=1 -timeout 30m $(TESTFLAGS) $(SUITE_PKG)

.PHONY: probes
probes: ## Questions to the API of a real project, which costs money: test/probes/README.md.
	@$(GO) run ./test/probes

.PHONY: race-note
race-note:
	@$(if $(RACE),:,echo "No C compiler found: testing without the race detector.")

PLANS ?= 500
SEED  ?= 1
.PHONY: simulate
simulate: ## Simulate the driver in PLANS (500) random schedules of failures, from SEED (1) on, and in all lives.
	$(GO) test ./test/sim -timeout 60m $(TESTFLAGS) -plans $(PLANS) -seed $(SEED)

# Compared with hack/bench/baseline.txt, whose head names the machine it was taken
# on: times of another machine say little, allocations and calls do.
BENCH      ?= .
BENCHCOUNT ?= 6
bench_pkgs  = $$(grep -rl --include='*_test.go' '^func Benchmark' $(GO_DIRS) | xargs -n1 dirname | sort -u | sed 's|^|./|')
bench_run   = $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) $(TESTFLAGS) $(bench_pkgs)
.PHONY: bench
bench: $(BIN)/benchstat ## Run the benchmarks and compare them: make bench BENCH=List.
	@$(bench_run) >$(BIN)/bench.txt || { cat $(BIN)/bench.txt; exit 1; }
	@$(BIN)/benchstat hack/bench/baseline.txt $(BIN)/bench.txt

.PHONY: bench-baseline
bench-baseline:
	@mkdir -p $(BIN) hack/bench
	@$(bench_run) >$(BIN)/bench.txt || { cat $(BIN)/bench.txt; exit 1; }
	@grep -E '^(goos|goarch|pkg|cpu|Benchmark)' $(BIN)/bench.txt >hack/bench/baseline.txt

N ?= 200
.PHONY: scale
scale: localenv ## Time N (200) machines up and down, with this driver and with one that answers at once.
	@echo "Building $(BIN)/localenv/scale"
	@$(GO_BUILD) -o $(BIN)/localenv/scale ./hack/scale
	@exec $(BIN)/localenv/scale --machines $(N)

FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s).
	@for file in $$(grep -rl --include='*_test.go' '^func Fuzz' $(GO_DIRS)); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			(cd $$(dirname $$file) && $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) .) || exit 1; \
		done; \
	done

##@ Check

.PHONY: lint
lint: gofmt vet golangci-lint actionlint ## gofmt, go vet, golangci-lint and actionlint.

.PHONY: gofmt
gofmt:
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $(GO_DIRS)) || exit 1; \
	test -z "$$files" || { echo "not formatted, run 'make fmt':"; echo "$$files"; exit 1; }

.PHONY: vet
vet:
	@for module in $(filter-out hack/tools%,$(MODULES)); do echo "go -C $$module vet ./..."; $(GO) -C $$module vet ./... || exit 1; done

.PHONY: golangci-lint
golangci-lint: $(BIN)/golangci-lint
	GOGC=400 $(BIN)/golangci-lint run ./...

# Not with the shellcheck or pyflakes that this computer may have: the same everywhere.
.PHONY: actionlint
actionlint: $(BIN)/actionlint
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code and sort its imports.
	$(BIN)/golangci-lint fmt ./...

.PHONY: tidy
tidy:
	@for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff) || exit 1; done

# Compares the working tree before and after, so that it also holds with
# uncommitted changes.
tree_state = { git status --porcelain; git diff; } | git hash-object --stdin
.PHONY: generated
generated: ## Update generated code, tables, the schema and licenses; fails if they were not current.
	@mkdir -p $(BIN); before=$$($(tree_state)); \
	{ $(GO) generate ./... && $(GO) -C hack/schema test -run Current . -update && \
	$(GO) test -run AreCurrent ./cmd/machine-controller ./cmd/mcm-stackit -update; } >$(BIN)/generated.log || { cat $(BIN)/generated.log; exit 1; }; \
	test "$$before" = "$$($(tree_state))" || { echo "generated code was not current; commit what changed:"; git status --short; exit 1; }

# Its answer depends on the day and on the network, not on the commit alone.
.PHONY: vulncheck
vulncheck: $(BIN)/govulncheck ## Look for known vulnerabilities; needs the vulnerability database.
	@$(BIN)/govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...; code=$$?; \
	case $$code in \
	0|3) ;; \
	*) echo "vulncheck: NOTHING WAS CHECKED: govulncheck stopped early (see above)." >&2; \
	   echo "The Go vulnerability database must be reachable; VULNDB=<url> names a mirror." >&2 ;; \
	esac; exit $$code

# A download that was killed may have left a read-only folder.
.PHONY: clean
clean: ## Remove everything built.
	@test ! -d $(BIN) || chmod -R u+w $(BIN)
	rm -rf $(BIN) coverage.*

# The file is made last: a folder that is not complete does not count.
CONTROLPLANE_MODULE := hack/tools/controlplane/go.mod hack/tools/controlplane/go.sum
$(BIN)/controlplane/.$(ENVTEST_VERSION): $(CONTROLPLANE_MODULE) $(if $(CONTROLPLANE),,| $(BIN)/setup-envtest)
	@$(if $(filter-out source,$(CONTROLPLANE)),$(error CONTROLPLANE=$(CONTROLPLANE): only "source" is known))
	@GO='$(GO)' SETUP_ENVTEST=$(BIN)/setup-envtest test/localenv/controlplane.sh \
		$(@D) '$(or $(CONTROLPLANE),$(ENVTEST_VERSION))' '$(ENVTEST_INDEX)'
	@touch $@

# Pinned tools, rebuilt when their module changes. Ginkgo's is that of its library.
$(BIN)/ginkgo: go.mod
	$(GO_BUILD) -o $@ github.com/onsi/ginkgo/v2/ginkgo
	@touch $@

$(BIN)/golangci-lint: hack/tools/lint/go.mod hack/tools/lint/go.sum
	$(GO_BUILD) -C hack/tools/lint -o "$(CURDIR)/$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(BIN)/actionlint: hack/tools/actionlint/go.mod hack/tools/actionlint/go.sum
	$(GO_BUILD) -C hack/tools/actionlint -o "$(CURDIR)/$@" github.com/rhysd/actionlint/cmd/actionlint
	@touch $@

$(BIN)/ko: hack/tools/go.mod hack/tools/go.sum
	$(GO_BUILD) -C hack/tools -o "$(CURDIR)/$@" github.com/google/ko
	@touch $@

$(BIN)/benchstat: hack/tools/go.mod hack/tools/go.sum
	$(GO_BUILD) -C hack/tools -o "$(CURDIR)/$@" golang.org/x/perf/cmd/benchstat
	@touch $@

$(BIN)/dlv: hack/tools/go.mod hack/tools/go.sum
	$(GO_BUILD) -C hack/tools -o "$(CURDIR)/$@" github.com/go-delve/delve/cmd/dlv
	@touch $@

# The tag leaves out the libraries of all the clouds that Prometheus can ask for targets.
$(BIN)/promtool: hack/tools/promtool/go.mod hack/tools/promtool/go.sum
	$(GO_BUILD) -C hack/tools/promtool -tags remove_all_sd -o "$(CURDIR)/$@" github.com/prometheus/prometheus/cmd/promtool
	@touch $@

$(BIN)/setup-envtest: hack/tools/go.mod hack/tools/go.sum
	$(GO_BUILD) -C hack/tools -o "$(CURDIR)/$@" sigs.k8s.io/controller-runtime/tools/setup-envtest
	@touch $@

$(BIN)/kubectl: hack/tools/controlplane/go.mod hack/tools/controlplane/go.sum
	$(GO_BUILD) -C hack/tools/controlplane -o "$(CURDIR)/$@" k8s.io/kubernetes/cmd/kubectl
	@touch $@

$(BIN)/govulncheck: hack/tools/go.mod hack/tools/go.sum
	$(GO_BUILD) -C hack/tools -o "$(CURDIR)/$@" golang.org/x/vuln/cmd/govulncheck
	@touch $@
