# SPDX-License-Identifier: MIT OR Apache-2.0
import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: left out by `make check`; `make test` runs it")
