# What a release is made of (docs/building.md), from the committed tree and the static builds, into dist/release/.
.PHONY: release
release: cross static ## source, static programs for each machine, OpenWrt's recipe and sums, in dist/release/
	@scripts/release $(CROSS_DIRS)
