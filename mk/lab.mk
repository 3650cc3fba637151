# SPDX-License-Identifier: MIT OR Apache-2.0
# The device lab (docs/howto/lab.md). Its requirements; each install command is printed first:
LAB_PACKAGES = qemu-system-x86 qemu-system-arm qemu-system-mips python3 python3-venv util-linux coreutils dkms dpkg-dev debhelper dh-dkms dh-python

LAB = env PYTHONPATH=$(CURDIR)/lab .venv/bin/python -m ktrxer_lab
# Limit of all lab tests together, in seconds. Each test has its own limit (tests/lab/conftest.py).
LAB_LIMIT = 840
LAB_PYTEST = env PYTHONPATH=$(CURDIR)/lab:$(CURDIR)/python timeout -s INT -k 30 $(LAB_LIMIT) .venv/bin/python -m pytest -o cache_dir=$(CURDIR)/$(BUILD)/pytest-lab -q -rfEs
LAB_TALLY = sh lab/tally
LAB_TARGETS = cli/ktrxer
LAB_BUILDS = build-static build-cross/armhf build-cross/mipsel

LAB_BENCHES = build-cross/bench-x86_64 build-cross/bench-armhf build-cross/bench-mipsel

.PHONY: truth truth-soak lab-setup lab-packages lab-builds lab-benches lab-images lab-figures test-lab lab soak-module virtual-kernel test-virtual virtual
lab-builds: $(LAB_BUILDS:%=%/build.ninja) ## a static ktrxer for each device
	@for tree in $(LAB_BUILDS); do ninja --quiet -C $$tree $(LAB_TARGETS) >$$tree/lab.log 2>&1 || { cat $$tree/lab.log; exit 1; }; done

# The same with `ktrxer bench`, which small builds leave out, in separate trees.
build-cross/bench-x86_64/build.ninja: cross/x86_64-musl.ini cross/small.ini | setup-static
	meson setup $(if $(wildcard $@),--wipe) $(@D) $(CROSS_FILES:%=--native-file=%) -Dbench=true -Dtests=false >$(@D).log || { cat $(@D).log; exit 1; }

build-cross/bench-%/build.ninja: cross/%.ini cross/small.ini | setup-%
	meson setup $(if $(wildcard $@),--wipe) $(@D) $(CROSS_FILES:%=--cross-file=%) -Dbench=true -Dtests=false >$(@D).log || { cat $(@D).log; exit 1; }

lab-benches: $(LAB_BENCHES:%=%/build.ninja)
	@for tree in $(LAB_BENCHES); do ninja --quiet -C $$tree >$$tree/lab.log 2>&1 || { cat $$tree/lab.log; exit 1; }; done

lab-figures: lab-builds lab-benches lab-images ## E1, E2, O3 and E6 on each device (FIGURES=folder, JOB=options): JSON files, and the tables of docs/measurements/2026-11-22-module.md
	env PYTHONPATH=$(CURDIR)/lab:$(CURDIR)/python .venv/bin/python tests/lab/figures.py run --out $(or $(FIGURES),build-cross/figures) -- $(JOB)
	env PYTHONPATH=$(CURDIR)/lab:$(CURDIR)/python .venv/bin/python tests/lab/figures.py tables $(or $(FIGURES),build-cross/figures)/*.json

lab-setup: .venv/.tests ## install QEMU and prepare the images of all devices
	sh lab/setup $(LAB_PACKAGES) $(VIRTUAL_PACKAGES)
	$(LAB) setup --headers

# All packages of the lab, so that its preparations can run beside a target that installs others.
lab-packages:
	@sh lab/setup $(LAB_PACKAGES) $(VIRTUAL_PACKAGES)

# Downloads and makes missing images (two minutes), for all devices in parallel; the tests report missing parts.
lab-images: .venv/.tests
	@sh lab/setup $(LAB_PACKAGES)
	@for device in pc phone router; do timeout 300 $(LAB) setup --headers --device $$device --kernel 6.1 & done; wait

test-lab: lab-builds lab-images ## tests in emulated devices, six minutes on 2 cores
	@$(LAB_TALLY) $(LAB_PYTEST) -m 'not slow and not soak' tests/lab

lab: LAB_LIMIT = 7200
lab: LAB_TARGETS = all
lab: lab-builds lab-benches lab-images ## all tests in emulated devices, on every device and kernel
	@$(LAB_TALLY) $(LAB_PYTEST) -m 'not soak' tests/lab

# Virtual time without an emulator: the packages for building its kernel, and for its guests.
VIRTUAL_PACKAGES = gcc libc6-dev make flex bison bc xz-utils util-linux iproute2 ethtool iputils-ping nftables tcpdump curl iperf mosquitto-clients
virtual-kernel: .venv/.tests ## the kernel of virtual time, built once in six minutes on 2 cores; Ctrl-C stops it, and the next call continues
	@sh lab/setup $(VIRTUAL_PACKAGES)
	@timeout --foreground 7200 $(LAB) setup --device uml # a build that hangs is stopped earlier: SILENCE_S in lab/ktrxer_lab/source.py

# A guest of virtual time has one processor, and its clock does not see what runs beside it: so a file for each processor.
test-virtual: virtual-kernel build ## quick tests in virtual time: at most four minutes on 2 cores, plus the kernel's build
	@$(LAB_TALLY) $(LAB_PYTEST) -n $(shell nproc) --dist loadfile -m 'not slow' tests/virtual tests/truth/paths

# Also the example for CI, `ktrxer pair`, and the older kernels.
virtual: LAB_LIMIT = 3600
virtual: virtual-kernel build ## all tests in virtual time: twenty minutes, plus the builds of three kernels
	@for version in 6.1 6.12; do timeout --foreground 7200 $(LAB) setup --device uml --kernel $$version || exit; done
	@$(LAB_TALLY) $(LAB_PYTEST) tests/virtual tests/truth/paths

# Tables for docs/measurements; status 3: a figure is false.
truth: virtual-kernel build ## the project's methods over all paths with known properties, as tables: ten minutes on 2 cores (TRUTH='--path NAME')
	@PATH="$(CURDIR)/$(BUILD)/cli:$$PATH" PYTHONPATH=$(CURDIR)/lab .venv/bin/python -m ktrxer_lab.truth --markdown $(TRUTH)

# Draws are left out that are in the log already, so that a soak can be stopped and continued.
truth-soak: virtual-kernel build ## paths and faults by chance, a thousand draws in 25 minutes on 2 cores (DRAWS=1000 SEED=1 LOG=FILE), the rates of false claims, and error bounds beside CPU load (RUNS=500)
	@PATH="$(CURDIR)/$(BUILD)/cli:$$PATH" PYTHONPATH=$(CURDIR)/lab .venv/bin/python -m ktrxer_lab.truth chance \
		--seed $(or $(SEED),1) --draws $(or $(DRAWS),1000) --jobs $(shell nproc) --log $(or $(LOG),$(BUILD)/truth-soak.jsonl)
	@PYTHONPATH=$(CURDIR)/lab .venv/bin/python -m ktrxer_lab.truth chance --rates $(or $(LOG),$(BUILD)/truth-soak.jsonl)
	@PYTHONPATH=$(CURDIR)/lab scripts/netns-root .venv/bin/python -m ktrxer_lab.truth.chance.beside \
		--seed $(or $(SEED),1) --runs $(or $(RUNS),500) --ktrxer $(CURDIR)/$(BUILD)/cli/ktrxer

# Packages for building a kernel, beside the lab's own.
SOAK_PACKAGES = gcc make flex bison bc libelf-dev xz-utils
SOAK_SECONDS = 120
soak-module: LAB_LIMIT = 3600
soak-module: .venv/.tests ## ktrxer.ko under KASAN, lockdep, kmemleak, UBSAN and fault injection in 25 minutes (and a kernel built for it, once)
	@sh lab/setup $(LAB_PACKAGES) $(SOAK_PACKAGES)
	@$(LAB) setup --device pc --kernel 6.12-debug
	@KTRXER_TEST_SOAK_S=$(SOAK_SECONDS) $(LAB_TALLY) $(LAB_PYTEST) -v -rP -m soak tests/lab/test_soak_short.py tests/lab/test_soak.py
