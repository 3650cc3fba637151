# SPDX-License-Identifier: MIT OR Apache-2.0
import sys
from pathlib import Path

import pytest

# The modules of contract/ are a folder of scripts, not a package.
sys.path.append(str(Path(__file__).resolve().parents[2] / "contract"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: left out by `make check`; `make test` runs it")
    config.addinivalue_line("markers", "tool: needs a program that `scripts/setup check` does not install; left out by `make check`, `make test` runs it")


@pytest.fixture(autouse=True)
def cache_of_runs(tmp_path_factory, monkeypatch):
    """Each test has a cache of its own, and leaves the user's alone."""
    from ktrxer.analyse import cache

    place = tmp_path_factory.mktemp("cache") / "ktrxer" / "runs.sqlite"
    monkeypatch.setattr(cache, "file", lambda: place)


@pytest.fixture(autouse=True)
def printed_objects(monkeypatch):
    """Each object that a Python command prints in this process is one of its schema."""
    import printed_check

    found = []
    monkeypatch.setattr(printed_check.printed, "show", printed_check.watch(found))
    monkeypatch.setattr(printed_check.printed, "row", printed_check.watch_rows(found))
    yield
    assert not found, f"the tables of fields do not allow: {sorted(set(found))}"


@pytest.fixture(autouse=True)
def figures_once(request):
    """Each run that a test has recorded: a figure that stands in two places is the same."""
    yield
    path = request.node.funcargs.get("tmp_path")
    if path is not None and path.is_dir() and next(path.rglob("*.ktrxer"), None) is not None:
        from agreement import of_test

        assert not of_test(path)
