# make help lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Packages in which goroutines or ordering matter, for make race.
RACE_PACKAGES ?= ./pkg/engine/... ./pkg/workflow/... ./pkg/expression/... ./pkg/state/... ./pkg/queue/... ./internal/coordinator/... ./internal/runner/... ./internal/worker/...

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build coordinator, worker and reprise into bin/
	@mkdir -p bin
	go build -o bin/ ./cmd/...

.PHONY: test
test: ## run all tests (installs redis-server when it is missing)
	./scripts/test.sh

.PHONY: race
race: ## run the tests of the core packages with the race detector
	CGO_ENABLED=1 ./scripts/test.sh -race $(RACE_PACKAGES)

.PHONY: fault
fault: ## run all fault tests in full length, some four minutes (FAULT=regexp, RUNS=n, SHORT=1, RECORD=1)
	FAULT='$(FAULT)' RUNS='$(RUNS)' SHORT='$(SHORT)' RECORD='$(RECORD)' ./scripts/fault.sh

.PHONY: upgrade-test
upgrade-test: ## upgrade from an old version under load and back (OLD=tag or commit, RUNS=n)
	OLD='$(OLD)' RUNS='$(RUNS)' ./scripts/upgrade-test.sh

.PHONY: verify
verify: ## check format, vet, lint, generated files and import rules
	./scripts/verify.sh

.PHONY: lint
lint: ## run golangci-lint
	@command -v golangci-lint >/dev/null || { echo "golangci-lint v2 is not installed; see https://golangci-lint.run/docs/welcome/install/" >&2; exit 1; }
	golangci-lint run ./...

.PHONY: bench
bench: ## run the Go benchmarks (BENCH=regexp, BENCH_PACKAGES=./pkg/...)
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $(or $(BENCH_PACKAGES),./pkg/...)

.PHONY: performance
performance: ## measure all scenarios of reprise bench (or SCENARIOS) and fill docs/performance.md
	./scripts/performance.sh $(SCENARIOS)

.PHONY: simulate
simulate: ## run the simulation over SEEDS seeds from START (TRACE=1 prints every event)
	./scripts/simulate.sh

.PHONY: simulate-bugs
simulate-bugs: ## plant each known mistake and expect the simulation to find it
	go test -count=1 -timeout 60m -run '^TestPlantedBugs$$' -v ./internal/simulation -args -bugs=all

.PHONY: properties
properties: ## run the properties of the engine on CHECKS random executions each (default 50000, some hours)
	go test ./pkg/engine -run 'Order|Ends|Bytes|Failure' -timeout 0 -args -rapid.checks=$(or $(CHECKS),50000)

.PHONY: fuzz
fuzz: ## fuzz the workflow parser, the messages and the engine for FUZZTIME each (default 10m)
	go test ./pkg/workflow -run '^$$' -fuzz FuzzParse -fuzztime $(or $(FUZZTIME),10m) -fuzzminimizetime 10x
	go test ./pkg/queue -run '^$$' -fuzz FuzzMessages -fuzztime $(or $(FUZZTIME),10m) -fuzzminimizetime 10x
	go test ./pkg/engine -run '^$$' -fuzz FuzzResults -fuzztime $(or $(FUZZTIME),10m) -fuzzminimizetime 10x

.PHONY: compose-test
compose-test: ## bring docker-compose.yml up, kill its containers under load, scale it (HARDENED=1 for the hardened one)
	./scripts/compose-test.sh $(if $(HARDENED),--hardened)

.PHONY: helm-test
helm-test: ## render the chart with Helm's engine and read it as Kubernetes does (a module of its own)
	cd deploy/helm && go test ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist coverage.out
