# The commands of the project. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Every package, that of the nested module (the seam to quic-go) included.
PACKAGES := ./... github.com/quic-go/quic-go/quichook/...
# How long each fuzz target runs in `make fuzz`.
FUZZTIME ?= 10s
# Which benchmarks `make bench` runs.
BENCH ?= .

GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what tests and demo need (Debian/Ubuntu as root; elsewhere says what to run)
	@scripts/setup.sh orthanc dcmtk chromium node promtool shellcheck web
	@go mod download

.PHONY: build
build: ## build bin/fastpacs and bin/fastlab
	go build -trimpath -o bin/ ./cmd/...

.PHONY: test
test: ## run every test, with Orthanc, dcmtk and Chromium (REQUIRE_PARTS=1)
	@scripts/setup.sh orthanc dcmtk chromium node promtool web
	REQUIRE_PARTS=1 go test -timeout 15m $(PACKAGES)

.PHONY: race
race: ## run every test under the race detector
	@scripts/setup.sh orthanc dcmtk chromium node promtool web
	REQUIRE_PARTS=1 go test -race -timeout 30m $(PACKAGES)

.PHONY: lint
lint: ## go vet, staticcheck, gofumpt and shellcheck
	@scripts/setup.sh shellcheck
	go vet $(PACKAGES)
	$(STATICCHECK) $(PACKAGES)
	@unformatted=$$(find . -name '*.go' -not -path '*/node_modules/*' -print0 | xargs -0 $(GOFUMPT) -l); \
	[ -z "$$unformatted" ] || { printf 'not formatted by gofumpt:\n%s\n' "$$unformatted"; exit 1; }
	shellcheck .ci/run scripts/*.sh

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME) $(PACKAGES)

.PHONY: bench
bench: ## run the benchmarks and the comparisons with Caddy and plain quic-go
	@scripts/setup.sh orthanc caddy
	PATH="$$PWD/bin:$$PATH" REQUIRE_PARTS=1 go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PACKAGES)

# fastlab installs Orthanc itself, or says which command to run.
.PHONY: demo
demo: ## send a CT study over an emulated slow link: improved FAST against Reno
	@go build -o bin/fastlab ./cmd/fastlab
	@bin/fastlab demo

.PHONY: run
run: ## start Orthanc and fastpacs in front of it, on loopback, until Ctrl-C
	@go build -o bin/fastlab ./cmd/fastlab
	@bin/fastlab run

.PHONY: clean
clean: ## remove what was built and measured
	rm -rf bin out
