# SPDX-License-Identifier: MIT OR Apache-2.0
"""A Flent file that ktrxer has exported: its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flent_files as files
import pytest
from test_flent import run_of


@pytest.mark.parametrize(("own", "found"), [
    ({"verdict": "invalid", "reasons": ["the probes left late", 5]}, ("invalid", ["the probes left late"])),
    ({"verdict": "degraded", "reasons": "x"}, ("degraded", ["ktrxer has judged this run as degraded"])),
    ({"verdict": "valid", "reasons": []}, ("valid", [])), ({"verdict": ["invalid"]}, ("valid", [])), ("invalid", ("valid", [])),
])
def test_the_verdict_of_an_exported_run_is_kept(tmp_path: Path, own: Any, found: Any) -> None:
    value = files.four()
    value["metadata"]["KTRXER"] = own
    meta = run_of(tmp_path, value).meta
    assert (meta.verdict, meta.sentences) == found


def test_a_verdict_of_ktrxer_hides_no_failed_runner(tmp_path: Path) -> None:
    value = files.four()
    value["raw_values"]["Ping (ms) ICMP"], value["results"]["Ping (ms) ICMP"] = [], files.grid(None)
    for own, found in (("valid", "degraded"), ("invalid", "invalid")):
        value["metadata"]["KTRXER"] = {"verdict": own, "reasons": ["a reason"]}
        meta = run_of(tmp_path, value).meta
        assert meta.verdict == found and "Ping (ms) ICMP gave no samples" in meta.sentences
