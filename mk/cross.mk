# Static and cross builds (docs/howto/cross-builds.md): build-static/ for x86-64, build-cross/ARCH/ for the others, all over musl.
CROSS_ARCHES = aarch64 armhf mipsel mips
CROSS_DIRS = build-static $(CROSS_ARCHES:%=build-cross/%)

CROSS_FILES = build-cross/root.ini $< cross/small.ini
CROSS_OPTIONS = -Dwerror=$(or $(WERROR),false)

.PHONY: cross static test-cross release-size setup-static $(CROSS_ARCHES:%=setup-%) $(CROSS_ARCHES:%=cross-%)
setup-static $(CROSS_ARCHES:%=setup-%): setup-%:
	@scripts/setup-cross $*

$(CROSS_ARCHES:%=build-cross/%/build.ninja): build-cross/%/build.ninja: cross/%.ini cross/small.ini | setup-%
	meson setup $(if $(wildcard $@),--wipe) build-cross/$* $(CROSS_FILES:%=--cross-file=%) $(CROSS_OPTIONS) >build-cross/$*.log || { cat build-cross/$*.log; exit 1; }

build-static/build.ninja: cross/x86_64-musl.ini cross/small.ini | setup-static
	meson setup $(if $(wildcard $@),--wipe) build-static $(CROSS_FILES:%=--native-file=%) $(CROSS_OPTIONS) >build-cross/static.log || \
		{ cat build-cross/static.log; exit 1; }

$(CROSS_ARCHES:%=cross-%): cross-%: build-cross/%/build.ninja
	@ninja -C build-cross/$*

cross: $(CROSS_ARCHES:%=cross-%) ## static binaries for aarch64, armhf, mipsel and mips in build-cross/

static: build-static/build.ninja ## a static binary for x86-64 in build-static/
	@ninja -C build-static

# Beside the static build: mips, which is big-endian with 32 bits, and one of the others, chosen by the day of the year. ALL=1: all of them.
CROSS_OTHERS = $(filter-out mips,$(CROSS_ARCHES))
CROSS_OF_DAY = $(word $(shell expr $$(date -u +%j) % $(words $(CROSS_OTHERS)) + 1),$(CROSS_OTHERS))
CROSS_TESTED = $(if $(ALL),$(CROSS_ARCHES),mips $(CROSS_OF_DAY))

test-cross: static ## unit tests of the static build, of mips and of one other (ALL=1: all) under qemu-user; sizes; memory
	@echo "test-cross: static, $(CROSS_TESTED) (ALL=1: all of $(CROSS_ARCHES))"
	@$(MAKE) --no-print-directory $(CROSS_TESTED:%=cross-%)
	@scripts/test-cross build-static $(CROSS_TESTED:%=build-cross/%)

release-size: cross static ## sizes of the static binaries, against the limit
	@scripts/test-cross --sizes $(CROSS_DIRS)
