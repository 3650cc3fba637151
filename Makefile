# SPDX-License-Identifier: MIT OR Apache-2.0
# The front door. The build itself is meson's; what stands here are the few commands that people type.

BUILD ?= build
prefix ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600

# Of `make test`: some of tests/run's suites, all unless named.
SUITES ?=

.PHONY: all build built demo check test test-tools fuzz docs clean help setup
all: build

build: ## build the library and the command into build/ (the default)
	@scripts/setup build
	@$(MAKE) --no-print-directory built

# No file of root's in another user's tree: `sudo make install` builds as the owner of the tree.
built:
	@scripts/as-owner scripts/build $(BUILD)

demo: ## install what is missing, build, and show it: an access line under load, measured, with a report (under two minutes)
	@scripts/setup build demo
	@$(MAKE) --no-print-directory -j2 built .venv/.ok
	@scripts/demo

check: ## install what is missing, build, and run what is quick: unit tests of C and Python, lint, walls (under a minute)
	@scripts/setup build test
	@$(MAKE) --no-print-directory --output-sync -j2 test-tools .venv/.tests
	@tests/run --quick unit python lint

test: ## install what is missing, build, and run every test that this machine can run (under 20 minutes); SUITES='unit install': only these
	@scripts/setup build demo test
	@$(MAKE) --no-print-directory --output-sync -j3 test-tools .venv/.tests web/node_modules/.ok
	@$(MAKE) --no-print-directory .venv-flent/.ok || echo "test: no Flent here: its test will be skipped"
	@tests/run $(SUITES)

test-tools:
	@scripts/as-owner scripts/build $(BUILD) tests

fuzz: ## all fuzz targets for FUZZ_SECONDS together (600)
	@scripts/setup build test
	@tests/run --fuzz-seconds $(FUZZ_SECONDS) fuzz

docs: ## the documentation as a site in build-docs/: pages, manual pages, the header
	@scripts/setup build docs
	@$(MAKE) --no-print-directory build
	@scripts/docs $(BUILD) build-docs

setup: ## only install what build, demo and test need (prints each command first)
	@scripts/setup build demo test

clean: ## remove all that was built
	rm -rf $(BUILD) build-*

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{ printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

-include mk/*.mk
