# The Python part: a virtual environment from lock files with hashes, what it needs to run first, the tools of its tests when they are wanted.
PYTHON ?= python3

.venv/.ok: python/requirements.txt
	@scripts/as-owner scripts/venv .venv python/requirements.txt
	@scripts/as-owner sh -c 'echo "$$PWD/python" >"$$(echo .venv/lib/python3*/site-packages)/ktrxer.pth" && touch $@'

.venv/.tests: python/requirements-test.txt .venv/.ok
	@scripts/as-owner scripts/venv .venv python/requirements.txt python/requirements-test.txt
	@scripts/as-owner touch $@

.PHONY: lint-python
lint-python: .venv/.tests ## ruff and strict mypy over the Python part
	.venv/bin/ruff check python tests/lab
	cd python && ../.venv/bin/mypy

# The real Flent, in an environment of its own, for the test that has it draw what `ktrxer export` writes; without it that test is skipped.
# What it needs is in .venv already, in the same versions.
.venv-flent/.ok: python/requirements-flent.txt .venv/.ok
	$(PYTHON) -m venv --without-pip --clear .venv-flent
	.venv/bin/python -m pip --python .venv-flent/bin/python install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r $<
	.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' \
		>"$$(.venv-flent/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/shared.pth"
	touch $@
