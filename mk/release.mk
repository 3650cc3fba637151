# What a release is made of (docs/howto/cross-builds.md), from the committed tree and the static builds, into dist/release/.
RELEASE_PAGES = $(BUILD)/cli/generated/man1

.PHONY: release test-release
release: $(CROSS_DIRS:%=%/build.ninja) ## source, static programs for each machine, OpenWrt's recipe and sums, in dist/release/
	@scripts/setup build
	@$(MAKE) --no-print-directory built
	@for tree in $(CROSS_DIRS); do ninja --quiet -C $$tree cli/ktrxer >$$tree/release.log 2>&1 || { cat $$tree/release.log; exit 1; }; done
	@scripts/release --pages $(RELEASE_PAGES) $(CROSS_DIRS)

test-release: release ## looks at all of dist/release/, runs each program, and makes it once more from a clone: the same bytes
	@scripts/test-release $(CROSS_DIRS)
