# The Python tools of the tests: a virtual environment from a lock file with hashes.
PYTHON ?= python3

.venv/.ok: python/requirements-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r $<
	echo "$(CURDIR)/python" > "$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/ktrxer.pth"
	touch $@

.PHONY: lint-python
lint-python: .venv/.ok ## ruff and strict mypy over the Python part
	.venv/bin/ruff check python tests/lab
	cd python && ../.venv/bin/mypy
