# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs commands over a path, in its own guest, and reads their output."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from ktrxer_lab import local, topology, uml
from ktrxer_lab.errors import LabError
from ktrxer_lab.truth import adapters, judge
from ktrxer_lab.truth.figure import Output, Unreadable
from ktrxer_lab.truth.own import Command
from ktrxer_lab.truth.path import Path

GUEST = File(__file__).with_name("guest.py")
CHECK_PROBES, CHECK_GAP_S = 300, 0.01
REMEDY = "a kernel of virtual time has it: ktrxer lab setup --device uml"


@dataclass
class Result:
    path: Path
    rows: list[judge.Row] = field(default_factory=list)
    checks: list[judge.Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # reasons of missing figures
    wall_s: float = 0.0


@dataclass(frozen=True)
class Limits:
    virtual_s: float = 600.0  # of each command
    wall_s: float = 600.0  # of the guest
    seed: int = 1


def measure(path: Path, commands: Sequence[Command], limits: Limits, with_check: bool) -> Result:
    """Run the commands. Raises LabError if the guest fails."""
    made = Result(path)
    readers = [adapters.load(one.adapter) for one in commands]
    more = {"count": CHECK_PROBES if with_check else 0, "gap_s": CHECK_GAP_S}
    result, made.wall_s = in_guest(path, commands, limits, more)
    if result["checks"]:
        made.checks = judge.check(path, result["checks"])
    for one, reader, done in zip(commands, readers, result["done"], strict=True):
        _read(made, one, reader, done)
    return made


def in_guest(path: Path, commands: Sequence[Command], limits: Limits, more: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """The answer of `guest.py` to the plan of the path with these commands, and the wall time. Raises LabError if the guest fails."""
    shells = (adapters.load(one.adapter).beside if one.beside is None else one.beside for one in commands)
    plan = path.plan() | {
        "limit_s": limits.virtual_s,
        "commands": [{"command": one.words, "reference_s": one.reference_s} for one in commands],
        **more,
    }
    beside = tuple(("server", shell) for shell in dict.fromkeys(shells) if shell)
    job = local.Job((sys.executable, "-P", str(GUEST), json.dumps(plan)), "client", beside)
    out, err = bytearray(), bytearray()

    def keep(more_out: bytes, more_err: bytes) -> None:
        out.extend(more_out)
        err.extend(more_err)

    network = topology.parse(path.topology().encode(), File(f"{path.name}.toml"))
    guest = uml.Guest(wall_limit_s=limits.wall_s, seed=limits.seed)
    answer = uml.run(guest, local.made_plan(network, job, REMEDY, "virtual time"), keep, _quiet)
    if answer.status != 0 or not out:
        raise LabError(f"{path.name}: the program in the guest ended with {answer.status}: {err.decode(errors='replace')[-2000:]}")
    result: dict[str, Any] = json.loads(out)
    return result, answer.wall_s


def _read(made: Result, one: Command, reader: adapters.Adapter, done: dict[str, Any]) -> None:
    tool = reader.program
    output = Output(one.words, done["status"], done["out"], done["err"])
    try:
        figures = reader.read(output)
    except (Unreadable, KeyError, ValueError, TypeError) as error:
        message = str(error) if isinstance(error, Unreadable) else f"the adapter {reader.name} failed: {type(error).__name__}: {error}"
        last = (done["err"].strip() or done["out"].strip()).splitlines()[-1:] or [""]
        made.problems.append(f"{shlex.join(one.words)}: {message} (exit status {done['status']}; its last line: {last[0][:200]})")
        return
    made.rows += judge.rows(made.path, tool, figures, done, one.where)


def _quiet(_: str) -> None:
    return None
