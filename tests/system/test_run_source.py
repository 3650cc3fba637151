# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run --from` on a host with two lines: flows and probes leave by the line of the address, and its device is the one that is recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from flows import secret
from ktrxer.store import open_run
from two_lines import FAR, SECOND, sent, two_lines

RUN = [sys.executable, "-m", "ktrxer", "run"]


@pytest.mark.parametrize("version", [4, 6])
def test_flows_and_probes_take_the_line_of_the_address(ktrxer, serve, requires_namespaces, tmp_path: Path, version: int) -> None:
    token = secret(tmp_path / "token")
    with two_lines() as (a, b):
        serve(b, "--token-file", token)
        before = sent(a)
        words = [*RUN, "rrul_be", "-H", FAR[version], "--from", SECOND[version], "--for", "2", "--delay", "0.3", "--token-file", token, "-D", tmp_path, "-q"]
        done = a.run(words, check=False)
        assert done.returncode in (0, 3) and done.stdout, done.stderr
        after = sent(a)
    by = {device: after[device] - before[device] for device in after}
    assert by["w2"] > 500 and by["w1"] < 10, by
    meta = open_run(Path(done.stdout.strip())).meta
    assert meta.metadata["before"]["egress"]["device"] == meta.metadata["after"]["egress"]["device"] == "w2"
    assert not [one.text for one in meta.reasons if one.id.startswith("path_")] and meta.settings["source"] == SECOND[version]
    assert "--from" in meta.command


def test_an_address_that_is_not_of_this_host(ktrxer, serve, shared_pair, tmp_path: Path) -> None:
    a, b = shared_pair
    token = secret(tmp_path / "token")
    serve(b, "--token-file", token)
    done = a.run([*RUN, "ping", "-H", b.address, "--from", "192.0.2.9", "--for", "1", "--token-file", token, "-D", tmp_path], check=False)
    assert done.returncode == 1 and "192.0.2.9" in done.stderr and "no address of this host" in done.stderr, done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["token"]
