# SPDX-License-Identifier: MIT OR Apache-2.0
# The device lab (docs/lab.md). What it needs, printed before it is installed:
LAB_PACKAGES = qemu-system-x86 qemu-system-arm qemu-system-mips python3 python3-venv util-linux coreutils

LAB = env PYTHONPATH=$(CURDIR)/python .venv/bin/python -m ktrxer lab
# Ends by itself: a test has its own limit (tests/lab/conftest.py), and all of them together have this one, in seconds.
LAB_LIMIT = 660
LAB_PYTEST = env PYTHONPATH=$(CURDIR)/python timeout -s INT -k 30 $(LAB_LIMIT) .venv/bin/python -m pytest -p no:cacheprovider -q -rs
LAB_TALLY = sh lab/tally
LAB_TARGETS = cli/ktrxer
LAB_BUILDS = build-static build-cross/armhf build-cross/mipsel

.PHONY: lab-setup lab-builds lab-images test-lab lab
lab-builds: $(LAB_BUILDS:%=%/build.ninja) ## what goes into the devices: a static ktrxer for each
	@for tree in $(LAB_BUILDS); do ninja --quiet -C $$tree $(LAB_TARGETS) >$$tree/lab.log 2>&1 || { cat $$tree/lab.log; exit 1; }; done

lab-setup: .venv/.ok ## install QEMU and prepare the images of all devices
	sh lab/setup $(LAB_PACKAGES)
	$(LAB) setup --headers

# A machine without the images fetches and makes them here (two minutes), all devices at once; the tests say what is missing.
lab-images: .venv/.ok
	@sh lab/setup $(LAB_PACKAGES)
	@for device in pc phone router; do timeout 300 $(LAB) setup --headers --device $$device --kernel 6.1 & done; wait

test-lab: lab-builds lab-images ## tests in emulated devices, 2 minutes with warm images
	@$(LAB_TALLY) $(LAB_PYTEST) -m 'not slow' tests/lab

lab: LAB_LIMIT = 7200
lab: LAB_TARGETS = all
lab: lab-builds lab-images ## all tests in emulated devices, on every device and kernel
	@$(LAB_TALLY) $(LAB_PYTEST) tests/lab
