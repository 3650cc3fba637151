# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the commands of a draw in a guest, and judges them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ktrxer_lab.errors import LabError
from ktrxer_lab.truth.chance import claims
from ktrxer_lab.truth.chance.draw import Draw, build
from ktrxer_lab.truth.chance.expect import SHAPED, truth
from ktrxer_lab.truth.chance.judge import Finding, judge
from ktrxer_lab.truth.measure import Limits, in_guest
from ktrxer_lab.truth.own import Command

SERVER = "ktrxer serve --udpstp-port 24601"
LIMITS = Limits(virtual_s=120.0, wall_s=120.0)


@dataclass(frozen=True)
class Run:
    """One command of a draw, as the rates count it."""

    command: str
    verdict: str
    faulty: bool
    figures: int  # compared with a truth
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    draw: Draw
    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]
    wall_s: float
    problem: str = ""  # the guest failed


def tried(draw: Draw) -> Tried:
    commands = [Command(("ktrxer", *one.split(), "--json"), f"ktrxer_{one.split()[0]}", beside=SERVER) for one in draw.commands]
    limits = replace(LIMITS, seed=draw.seed)
    try:
        answer, wall_s = in_guest(build(draw), commands, limits, {"count": 0, "gap_s": 0.01, "beside": True})
    except LabError as error:
        return Tried(draw, (), (), 0.0, str(error))
    runs: list[Run] = []
    findings: list[Finding] = []
    for words, done in zip(draw.commands, answer["done"], strict=True):
        shown = claims.read(words, done)
        expected = truth(draw, shown, done)
        findings += judge(shown, expected)
        runs.append(Run(words, shown.verdict, bool(draw.faults - SHAPED), len(expected.figures), tuple(one.id for one in shown.reasons)))
    return Tried(draw, tuple(runs), tuple(findings), wall_s)
