# SPDX-License-Identifier: MIT OR Apache-2.0
"""`until`: repetitions end when a figure is known well enough, or when no run can have it."""

from __future__ import annotations

from collections import Counter

import pytest
from batches import BASE, calls, fake_fixture, templates_fixture, written  # noqa: F401
from ktrxer.analyse.figures import of_run
from ktrxer.batch import spec
from ktrxer.commands import batch as command
from ktrxer.store import open_run


@pytest.mark.slow
def test_repetitions_end_when_the_mean_is_known(tmp_path, fake, capsys):
    text = BASE.replace("valid", "{t}") + "[matrix]\nt = ['valid', 'spread']\n"
    text += "[until]\nfigure = 'p50(rtt)'\nwithin = '2%'\nleast = 5\n"
    assert command.main([str(written(tmp_path, text))]) == 0
    out = capsys.readouterr().out
    counted = Counter(line.split()[0] for line in calls(tmp_path))
    assert counted["valid"] == 5
    assert 5 < counted["spread"] < 40
    assert "b: valid: reached after 5 runs" in out
    assert "b: spread: reached after " in out


def test_until_is_checked_after_thirty_runs_at_first(tmp_path, capsys):
    assert command.main([str(written(tmp_path, BASE)), "--until", "p50(rtt) ±2%", "--dry-run"]) == 0
    assert "1 combination, 30 to 100 repetitions" in capsys.readouterr().out
    more = "[until]\nfigure = 'p50(rtt)'\nwithin = '2%'\nleast = 300\n"
    assert command.main([str(written(tmp_path, BASE + more)), "--dry-run"]) == 0
    assert "1 combination, 300 to 300 repetitions" in capsys.readouterr().out


def test_until_ends_when_no_run_has_its_figure(tmp_path, fake, capsys):
    assert command.main([str(written(tmp_path, BASE)), "--until", "rate.nonesuch ±5%"]) == 1
    said = capsys.readouterr().err
    assert "5 valid runs of b do not have the figure rate.nonesuch; the batch ends; these runs have: " in said
    assert ".rtt.load.p50" in said.partition("these runs have: ")[2]
    assert len(calls(tmp_path)) == 5


def test_each_figure_of_a_run_can_be_that_of_until(templates):
    names = [one.key for one in of_run(open_run(next(templates.glob("*.ktrxer"))))]
    for name in [*names, "added", "rpm", "loss.load", "rate.tcp_upload_best_effort", "estimate.capacity.low", "value.irtt_2", "icmp.far_queue.idle.p99"]:
        assert spec.until_of(f"{name} ±5%").figure == name
    assert spec.until_of("*.rtt.idle.p9[59] ±5%").figure == "*.rtt.idle.p9[59]"


@pytest.mark.parametrize("text", ["p95(rtt)", "5%", "=5%", "p95(rtt) ±200%", "p95(foo) ±5%", "p90(rtt) ±5%", "foo ±5%", "icmp.rtt.load.p90 ±5%"])
def test_until_is_refused_without_a_figure_or_share(tmp_path, text, capsys):
    assert command.main([str(written(tmp_path, BASE)), "--until", text]) == 2
    assert "--until" in capsys.readouterr().err
