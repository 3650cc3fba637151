# The files of a release (docs/howto/cross-builds.md), from the committed tree and the static builds, into dist/release/.
RELEASE_PAGES = $(BUILD)/cli/generated/man1

.PHONY: release release-kernel test-release
release: $(CROSS_DIRS:%=%/build.ninja) ## source, static programs for each machine, OpenWrt's recipe, the kernel of virtual time with its source, and sums, in dist/release/
	@scripts/setup build
	@$(MAKE) --no-print-directory built
	@for tree in $(CROSS_DIRS); do ninja --quiet -C $$tree cli/ktrxer >$$tree/release.log 2>&1 || { cat $$tree/release.log; exit 1; }; done
	@scripts/release --pages $(RELEASE_PAGES) $(RELEASE_KERNEL) $(CROSS_DIRS)

# On x86-64 only, which virtual time needs. Without it: make release RELEASE_KERNEL=
RELEASE_KERNEL = $(if $(filter x86_64,$(shell uname -m)),--kernel $(KERNEL_PACKAGE))
KERNEL_PACKAGE = $(BUILD)/release-kernel
# scripts/test-release names the folder of another tree (--kernel=FOLDER).
release: $(if $(filter --kernel,$(RELEASE_KERNEL)),release-kernel)
release-kernel: .venv/.tests
	@sh lab/setup $(VIRTUAL_PACKAGES)
	@rm -rf $(KERNEL_PACKAGE) && mkdir -p $(KERNEL_PACKAGE)
	@env PYTHONPATH=$(CURDIR)/lab .venv/bin/python -m ktrxer_lab.kernel_package $(KERNEL_PACKAGE)

test-release: release ## check all of dist/release/, run each program, and rebuild it from a clone: the bytes must be equal
	@scripts/test-release $(CROSS_DIRS)
