# The Python part: a virtual environment from lock files with hashes. The packages to run it come first, the tools of its tests on demand.
PYTHON ?= python3

# Another version of Python has replaced the one that the environment was made with.
.PHONY: another-python
VERSION_OF_VENV := $(shell .venv/bin/python3 -S -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2>/dev/null)
.venv/.ok: python/requirements.txt mk/python.mk $(if $(wildcard .venv/lib/$(or $(VERSION_OF_VENV),none)/site-packages),,another-python)
	@scripts/as-owner scripts/venv .venv python/requirements.txt
	@scripts/as-owner sh -c 'printf "%s\n" "$$PWD/python" "$$PWD/lab" >"$$(echo .venv/lib/python3*/site-packages)/ktrxer.pth" && touch $@'

# matplotlib, for `ktrxer plot`.
.venv/.plot: python/requirements-plot.txt .venv/.ok
	@scripts/as-owner scripts/venv .venv python/requirements.txt python/requirements-plot.txt
	@scripts/as-owner touch $@

# DuckDB and ibis, for `ktrxer query`.
.venv/.query: python/requirements-query.txt .venv/.ok
	@scripts/as-owner scripts/venv .venv python/requirements.txt python/requirements-query.txt
	@scripts/as-owner touch $@

.venv/.tests: python/requirements-plot.txt python/requirements-test.txt .venv/.ok
	@scripts/as-owner scripts/venv .venv python/requirements.txt python/requirements-plot.txt python/requirements-test.txt
	@scripts/as-owner touch $@

.PHONY: lint-python
lint-python: .venv/.tests ## ruff and strict mypy over the Python part
	.venv/bin/ruff check python tests/lab
	.venv/bin/mypy

# The real Flent in a separate environment, for the test that draws the output of `ktrxer export`; without it that test is skipped.
# Its dependencies are in .venv in the same versions.
.venv-flent/.ok: python/requirements-flent.txt .venv/.plot
	$(PYTHON) -m venv --without-pip --clear .venv-flent
	.venv/bin/python -m pip --python .venv-flent/bin/python install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r $<
	.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' \
		>"$$(.venv-flent/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/shared.pth"
	touch $@
