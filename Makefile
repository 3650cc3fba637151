# SPDX-License-Identifier: MIT OR Apache-2.0
# The front door. The build itself is meson's; what stands here are the few commands that people type.

BUILD ?= build
prefix ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600

.PHONY: all build demo test install fuzz docs clean help setup
all: build

build: ## build the library and the command into build/ (the default)
	@scripts/setup build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD)
	@ninja -C $(BUILD)

demo: ## install what is missing, build, and show it: an access line under load, measured, with a report (under three minutes)
	@scripts/setup build demo
	@$(MAKE) --no-print-directory build >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@$(MAKE) --no-print-directory .venv/.ok
	@scripts/demo

test: ## install what is missing, build, and run every test that this machine can run (under 15 minutes)
	@scripts/setup build demo test
	@$(MAKE) --no-print-directory --output-sync -j3 build .venv/.ok web/node_modules/.ok
	@$(MAKE) --no-print-directory .venv-flent/.ok || echo "test: no Flent here: its test will be skipped"
	@tests/run

install: build ## install (prefix=/usr/local, DESTDIR=); no setuid bit and no file capability is set
	meson configure $(BUILD) --prefix $(prefix)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)
	@$(MAKE) --no-print-directory install-python WITHOUT_PYTHON=tolerated

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
