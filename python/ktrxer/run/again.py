# SPDX-License-Identifier: MIT OR Apache-2.0
"""A stored run as the settings of a new one, and what of it cannot be the same.

The file may come from anyone. Its values are checked like those of a command line, and it chooses no program: a recipe of the catalogue is
found by its name, and a recipe that the file contains is executed only if the user trusts it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer import catalogue
from ktrxer.catalogue.recipe import PlanError, Setting, Test, parameters_of
from ktrxer.catalogue.table import TABLE
from ktrxer.configured import SERVER_PORT
from ktrxer.run import provenance
from ktrxer.run.checks import CheckError
from ktrxer.run.egress import COUNTERS
from ktrxer.run.schedule import Schedule
from ktrxer.store import Meta, one_line
from ktrxer.store.checked import parse

if TYPE_CHECKING:
    from ktrxer.store.run import Run

SHOWN_MOST = 40  # differences
CC = re.compile(r"[A-Za-z0-9_]{0,15}")  # a name of a congestion control (TCP_CA_NAME_MAX)
FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}\.py")


class AgainError(CheckError):
    """The run cannot be repeated: one line with the reason and a remedy."""


@dataclass
class Stored:
    """The settings of a run, as `ktrxer run` stores them (provenance.resolved)."""

    host: str
    length_s: float
    delay_s: float
    probe_interval_ns: int
    sample_interval_ns: int
    timeout_ns: int
    cc_up: str = ""
    cc_down: str = ""
    port: int = SERVER_PORT
    family: str = ""
    source: str = ""  # the address of --from
    precise: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    more_hosts: list[str] = field(default_factory=list)
    ping_hosts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.family not in ("", "-4", "-6"):
            raise ValueError("family is neither -4 nor -6")
        if not all(CC.fullmatch(name) for name in (self.cc_up, self.cc_down)):
            raise ValueError("a congestion control has no possible name")


@dataclass(frozen=True)
class Origin:
    """The recipe of a run, as its file describes it."""

    name: str
    file: str
    sha256: str
    source: str | None
    catalogue: bool | None  # None: the file does not say it


def settings_of(run: Run) -> Stored:
    if not run.meta.settings.keys() - {"parameters"}:
        raise AgainError(f"{run.path}: it has no settings: it was imported, so `ktrxer run` cannot repeat it")
    made = parse(Stored, run.meta.settings, f"{run.path}: settings")
    used = run.meta.settings.get("congestion_control")
    if isinstance(used, dict):
        made.cc_up, made.cc_down = (given or _only(run.meta, used, way) for given, way in ((made.cc_up, "up"), (made.cc_down, "down")))
    return made


def _only(meta: Meta, used: Mapping[str, Any], way: str) -> str:
    """The congestion control that all flows of a direction used by the default of their host. Empty if there is none, or several."""
    runners = {runner.id for runner in meta.runners if runner.parameters.get("cc") == []}
    names = {used.get(one.name) for one in meta.of_kind("bytes") if one.direction == way and one.runner in runners}
    (name,) = names if len(names) == 1 else ("",)
    return name if isinstance(name, str) and CC.fullmatch(name) else ""


def origin_of(run: Run) -> Origin:
    made = run.meta.metadata.get("recipe")
    if not isinstance(made, dict):
        raise AgainError(f"{run.path}: it does not name its recipe: it was imported, or made by an older ktrxer")
    texts = {name: value if isinstance(value := made.get(name), str) else "" for name in ("name", "file", "sha256")}
    source, own = made.get("source"), made.get("catalogue")
    return Origin(**texts, source=source if isinstance(source, str) else None, catalogue=own if isinstance(own, bool) else None)


@contextlib.contextmanager
def recipe(run: Run, trust: bool) -> Iterator[tuple[Test, list[str]]]:
    """The recipe of a stored run, and lines for the user. A stored source is a file for as long as the context lasts."""
    origin = origin_of(run)
    known = origin.name in TABLE
    # Files of older versions do not say whether the catalogue had the recipe: there, the same source shows it.
    if known and origin.catalogue is not False:
        test = catalogue.find(origin.name)
        if origin.catalogue or provenance.recipe(test).get("sha256") == origin.sha256:
            yield test, []
            return
    name = one_line(origin.file or "?", 60)
    if origin.catalogue:
        why = f"the recipe {origin.name[:60]!r} is not in the catalogue of this version"
        raise AgainError(f"{run.path}: {why}; the run was made by ktrxer {run.meta.version}")
    if not trust:
        raise AgainError(
            f"{run.path}: its recipe {name} is a program of its author, which is not executed without your consent. Read it "
            f"(`unzip -p FILE meta.json | jq -r .metadata.recipe.source`), then give --trust-recipe; or name your own copy: "
            f"ktrxer run ./{name} --again FILE"
        )
    if origin.source is None or hashlib.sha256(origin.source.encode()).hexdigest() != origin.sha256:
        copy = f"name your own copy, ktrxer run ./{name} --again FILE"
        raise AgainError(f"{run.path}: the source of the recipe {name} is not whole in the file: {copy}")
    note = (
        f"the recipe {name} is executed, because --trust-recipe was given: {len(origin.source.splitlines())} lines, sha256 "
        f"{origin.sha256}, from {run.path}; by this file, it was stored on host {one_line(run.meta.host.name, 60)} at "
        f"{one_line(run.meta.created, 40)}"
    )
    with tempfile.TemporaryDirectory(prefix="ktrxer-again-") as folder:
        path = Path(folder) / (origin.file if FILE.fullmatch(origin.file) else "recipe.py")
        path.write_text(origin.source, encoding="utf-8")
        yield catalogue.find(str(path)), [note]


def parameters(run: Run, test: Test, stored: Stored) -> tuple[dict[str, str], list[str]]:
    """The stored parameters as a command line gives them, and what is different about them."""
    now = provenance.plain(parameters_of(test, {}))
    gone = sorted(stored.parameters.keys() - now.keys())
    if gone:
        names = ", ".join(repr(name[:40]) for name in gone[:5])
        raise AgainError(f"{run.path}: the recipe {test.name} has no parameter {names} any more: the run cannot be repeated")
    texts = {name: _text(value) for name, value in stored.parameters.items() if value is not None}
    try:
        made = provenance.plain(parameters_of(test, texts))
    except (PlanError, ValueError, TypeError) as error:
        raise AgainError(f"{run.path}: its parameters do not fit the recipe {test.name}: {one_line(str(error))}") from None
    return texts, [
        f"parameter {name}: it was {_shown(stored.parameters[name])}, it is {_shown(value)}" if name in stored.parameters
        else f"parameter {name}: the recipe did not have it; it is {_shown(value)}"
        for name, value in made.items() if name not in stored.parameters or stored.parameters[name] != value
    ]  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)


def _shown(value: Any) -> str:
    return one_line(_text(value), 60) or "empty"


# ------------------------------------------------------------------------------------------------------- what is different


def differences(old: Meta, new: Meta, schedule: Schedule) -> list[str]:
    """The differences that were known before the new run began."""
    return _limited([*_machine(old, new), *_recipe(old, new), *_network(old, new), *_processes(old, schedule)])


def of_hosts(before: Any, now: Any) -> list[str]:
    """The state of this host, of which both runs have metadata."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return ["the state of this host (kernel settings, device, qdisc) cannot be compared: one of the runs did not record it"]
    others = (_look(made, "places") for made in (before, now))
    known = [one if isinstance(one, dict) else {} for one in others]
    return _limited([
        f"{name}: it was {_shown_state(old)}, it is {_shown_state(new)}"
        for name in ("cpu.model", "cpu.governor", "cpu.usable", "clock.source", "egress.driver", "egress.driver_version", "egress.firmware",
                     "egress.link.mtu", "egress.link.speed_mbps", "egress.qdiscs", "egress.offloads", "sysctls")
        for name, old, new in _pairs(name, _look(before, name), _look(now, name)) if old != new
    ] + [
        f"{one_line(str(place), 60)}: {line}"
        for place in known[0] if place in known[1]
        for line in of_hosts(known[0][place], known[1][place])
    ])  # fmt: skip


def _pairs(name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Members of objects are compared one by one. Counters of qdiscs are no setting."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield f"{name}.{one_line(str(key), 60)}", old.get(key), new.get(key)
    elif isinstance(old, list) and isinstance(new, list):
        was, now = _settings_of_qdiscs(old), _settings_of_qdiscs(new)
        kinds, now_kinds = ([str(one.get("kind")) for one in qdiscs] for qdiscs in (was, now))
        if kinds != now_kinds:
            yield name, ", ".join(kinds), ", ".join(now_kinds)
            return
        for kind, one, other in zip(kinds, was, now, strict=True):
            for key in dict.fromkeys([*one, *other]):
                yield f"{name}.{one_line(kind, 40)}.{one_line(str(key), 60)}", one.get(key), other.get(key)
    else:
        yield name, old, new


def _settings_of_qdiscs(qdiscs: list[Any]) -> list[dict[str, Any]]:
    """The queue without counters and handles; the parameters are members like all others."""
    volatile = {"stats", "handle", "parent", "parameters", *COUNTERS}
    made = []
    for one in (one for one in qdiscs if isinstance(one, dict)):
        parameters = one.get("parameters")
        every = {**one, **(parameters if isinstance(parameters, dict) else {})}
        made.append({key: value for key, value in every.items() if key not in volatile})
    return made


def _look(made: Any, path: str) -> Any:
    for name in path.split("."):
        made = made.get(name) if isinstance(made, dict) else None
    return made


def _shown_state(value: Any) -> str:
    return "not known" if value is None else one_line(str(value), 80)


def _limited(lines: list[str]) -> list[str]:
    return lines[:SHOWN_MOST] + ([f"and {len(lines) - SHOWN_MOST} more differences"] if len(lines) > SHOWN_MOST else [])


def _machine(old: Meta, new: Meta) -> Iterator[str]:
    for what, was, now in (
        ("ktrxer", old.version, new.version), ("this host", old.host.name, new.host.name), ("kernel", old.host.kernel, new.host.kernel),
        ("machine", old.host.machine, new.host.machine), ("processors", old.host.processors, new.host.processors),
        ("far end", ", ".join(old.targets), ", ".join(new.targets)), ("port", old.settings.get("port"), new.settings.get("port")),
    ):  # fmt: skip
        if was != now:
            yield f"{what}: it was {_shown_state(was)}, it is {_shown_state(now)}"


def _recipe(old: Meta, new: Meta) -> Iterator[str]:
    was, now = (_look(meta.metadata, "recipe.sha256") for meta in (old, new))
    if was != now:
        yield f"the recipe {new.test} has changed since: its sha256 was {_shown_state(was)}, it is {_shown_state(now)}"


def _network(old: Meta, new: Meta) -> Iterator[str]:
    was, now = (meta.metadata.get("topology") for meta in (old, new))
    if was == now:
        return
    if now is None:
        name = _shown_state(_look(was, "name"))
        yield f"it ran in the emulated network {name} of `ktrxer lab`, which is not there now: `ktrxer lab run` makes it around a command"
    elif was is None:
        yield "it ran outside of `ktrxer lab`; this run is in an emulated network"
    else:
        yield "the emulated network around it has another description"


def _processes(old: Meta, schedule: Schedule) -> Iterator[str]:
    """The plans of both runs, process by process. A process of a method or tool may have ended at any time: its planned times count."""
    before = {runner.name: runner for runner in old.runners}
    now = {job.stored.name: job.stored for job in schedule.jobs}
    for name in sorted(before.keys() - now.keys()):
        yield f"the process {one_line(name, 60)} is not in the plan any more"
    for name in sorted(now.keys() - before.keys()):
        yield f"the process {name} is new in the plan"
    for name in (name for name in now if name in before):
        was, is_ = before[name], now[name]
        for what, one, other in (
            ("runner", was.kind, is_.kind), ("place", was.place, is_.place), ("far host", was.host, is_.host),
            ("interval", was.interval_ns, is_.interval_ns), ("tool version", was.tool_version, is_.tool_version),
            *_parameters(was.parameters, is_.parameters),
        ):  # fmt: skip
            if one != other and not (what == "far host" and old.targets[:1] == [one]):  # the far end is named once
                yield f"{one_line(name, 60)}: its {what} was {_shown_state(one)}, it is {_shown_state(other)}"


def _parameters(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys([*was, *now]):
        if key != "cc" or was.get(key):  # the default of the host then is named now (settings_of)
            yield f"parameter {one_line(key, 40)}", was.get(key), now.get(key)


def setting_of(stored: Stored) -> Setting:
    return Setting(
        stored.host, stored.length_s, stored.delay_s, stored.probe_interval_ns, stored.sample_interval_ns, stored.cc_up, stored.cc_down,
        stored.timeout_ns, tuple(stored.more_hosts), tuple(stored.ping_hosts),
    )  # fmt: skip


__all__ = ["AgainError", "Stored", "differences", "of_hosts", "parameters", "recipe", "setting_of", "settings_of"]
