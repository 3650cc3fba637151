# The Python part: one virtual environment for it and for its tests, from lock files with hashes.
PYTHON ?= python3
PIP_LOCKED = -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all:

.venv/.ok: python/requirements.txt python/requirements-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP_LOCKED) --no-compile -r python/requirements.txt -r python/requirements-test.txt
	echo "$(CURDIR)/python" > "$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/ktrxer.pth"
	touch $@

# The same for an installed ktrxer, of its own and private (PREFIX/lib/ktrxer/venv); python/ktrxer-py finds it there.
.PHONY: install-python
install-python:
	@$(PYTHON) -m venv "$(DESTDIR)$(prefix)/lib/ktrxer/venv" && \
	"$(DESTDIR)$(prefix)/lib/ktrxer/venv/bin/python" $(PIP_LOCKED) -r python/requirements.txt || \
	{ echo "install: without the packages of python/requirements.txt ktrxer measures, but run, report and plot do not work: say \`make install-python\` when they can be fetched" >&2; \
	  [ -n "$(WITHOUT_PYTHON)" ]; }

.PHONY: lint-python
lint-python: .venv/.ok ## ruff and strict mypy over the Python part
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
