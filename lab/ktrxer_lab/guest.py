# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs inside a device: pytest over the named tests, its reports as JSON lines on standard output."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

import pytest


class Reporter:
    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.config: pytest.Config | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        self.config = config

    def show(self, **fields: object) -> None:
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.show(begin=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        assert self.config is not None
        self.show(report=self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            print(report.longreprtext, file=sys.stderr)


def main(nodeids: list[str]) -> int:
    out = os.fdopen(os.dup(1), "w")
    os.chdir(os.environ["KTRXER_LAB_ROOT"])
    plugins = ("cacheprovider", "terminal", "faulthandler", "junitxml", "pastebin")
    options = ["--rootdir=.", *(word for name in plugins for word in ("-p", f"no:{name}"))]
    status = pytest.main([*options, *nodeids], plugins=[Reporter(out)])
    return 0 if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else int(status)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
