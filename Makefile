# Almanac. `make help` lists what can be made.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LDFLAGS  = -s -w -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the tests run all the same.
RACE     = $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

.PHONY: help build run check test bench fuzz sample clean

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: ## build the commands into bin/
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

run: build ## build and start Almanac on the embedded default
	@bin/almanacd

check: ## format, vet, layout and the quick tests, in under two minutes
	@test -z "$$(gofmt -l cmd filters inventory pkg reservation tests)" || { gofmt -l cmd filters inventory pkg reservation tests; echo 'run gofmt -w on these files'; exit 1; }
	@CGO_ENABLED=0 $(GO) vet ./...
	@CGO_ENABLED=0 $(GO) test -short -shuffle=on ./... | { grep -v -e 'no test files' || true; }

test: ## all tests, as CI runs them
	@test -n "$(RACE)" || echo 'make test: no C compiler, so the race detector stays off'
	@$(MAKE) --no-print-directory build
	@$(GO) vet ./...
	@$(GO) test $(RACE) -shuffle=on -timeout 20m ./... | { grep -v -e 'no test files' || true; }

bench: ## rows 1 and 2 of the figures, with the paper's list in the same run
	@$(GO) test -run '^$$' -bench . -timeout 40m ./reservation/calendar

fuzz: ## a minute for each fuzz target
	@$(GO) test -run '^$$' -fuzz FuzzParseFilter -fuzztime 1m ./inventory
	@$(GO) test -run '^$$' -fuzz FuzzStatements -fuzztime 1m ./pkg/config

sample: ## renew the sample configuration
	@$(GO) run ./cmd/almanacd config sample > etc/almanac/almanac.conf.sample

clean: ## remove what was built; the database in var/ stays
	@rm -rf bin
