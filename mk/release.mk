# The files of a release (docs/howto/cross-builds.md), from the committed tree and the static builds, into dist/release/.
RELEASE_PAGES = $(BUILD)/cli/generated/man1

.PHONY: release test-release
release: $(CROSS_DIRS:%=%/build.ninja) ## source, static programs for each machine, OpenWrt's recipe and sums, in dist/release/
	@scripts/setup build
	@$(MAKE) --no-print-directory built
	@for tree in $(CROSS_DIRS); do ninja --quiet -C $$tree cli/ktrxer >$$tree/release.log 2>&1 || { cat $$tree/release.log; exit 1; }; done
	@scripts/release --pages $(RELEASE_PAGES) $(CROSS_DIRS)

test-release: release ## check all of dist/release/, run each program, and rebuild it from a clone: the bytes must be equal
	@scripts/test-release $(CROSS_DIRS)
