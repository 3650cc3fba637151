# SPDX-License-Identifier: MIT OR Apache-2.0
# The user's commands. meson builds the project.

BUILD ?= build
prefix ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600

# For `make test`: the suites of tests/run to run (default: all).
SUITES ?=

.PHONY: all build built demo check check-lab test test-tools fuzz docs gallery clean help setup
all: build

build: ## build the library and the command into build/ (the default)
	@scripts/setup build
	@$(MAKE) --no-print-directory built

# `sudo make install` builds as the owner of the tree, so that root owns no file in it.
built:
	@scripts/as-owner scripts/build $(BUILD)

demo: ## install missing packages, build, and measure an emulated access line under load, with a report (35 s; the first time some minutes more: it fetches 140 MB and builds)
	@scripts/setup build demo
	@$(MAKE) --no-print-directory -j2 built .venv/.ok
	@scripts/demo

check: ## install missing packages, build, and run the quick tests: unit tests of C and Python, lint, walls (about a minute)
	@scripts/setup build check
	@$(MAKE) --no-print-directory --output-sync -j2 test-tools .venv/.tests
	@tests/run --quick unit python lab lint

check-lab: ## the quick tests of the lab's distribution alone (ktrxer-lab), which needs nothing of the experiments
	@scripts/setup build check
	@$(MAKE) --no-print-directory .venv/.tests
	@tests/run --quick lab

test: ## install missing packages, build, and run every test that this machine can run (under 30 minutes); SUITES='unit install': only these
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
	@$(MAKE) --no-print-directory -j2 build .venv/.plot
	@scripts/docs $(BUILD) build-docs

gallery: .venv/.plot ## the gallery of the documentation alone: a page and its pictures, as build-docs/gallery.md
	@mkdir -p build-docs
	PYTHONPATH=python .venv/bin/python scripts/docs-gallery build-docs/gallery.md build-docs/gallery

setup: ## only install the packages for build, demo and test (prints each command first)
	@scripts/setup build demo test

clean: ## remove all build results
	rm -rf $(BUILD) build-*

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{ printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

-include mk/*.mk
