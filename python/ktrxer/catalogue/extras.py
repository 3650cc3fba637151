# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts that a run has beside its test: `--with RUNNER[@PLACE][,NAME=VALUE]...`, and those that every run has."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Collection, Sequence

from ktrxer import places, runners
from ktrxer.arguments import duration
from ktrxer.catalogue.recipe import Invocation, Plan, PlanError, check, value_of
from ktrxer.places import LOCAL
from ktrxer.runners import Options, RunnerError

FORM = "RUNNER[@PLACE][,NAME=VALUE]..."
NAMES = {"processor": "CPU"}  # of parts that are not named like their runner
EVERY = ("qdisc", "processor")  # runners of every run, with their defaults


def part(text: str) -> Invocation:
    """One `--with`. Durations are given by the names of their fields without `_ns`: interval=50ms."""
    head, *given = text.split(",")
    name, at, place = head.partition("@")
    if not at and ":" in name:
        raise PlanError(f"--with {text}: it is {FORM}, such as qdisc@ssh:router,device=eth1")
    try:
        runner = runners.find(name)
        places.check_name(place if at else LOCAL)
    except (RunnerError, places.PlaceError) as error:
        raise PlanError(f"--with {text}: {error}") from None
    fields = {one.name: one for one in dataclasses.fields(runner.parameters)}
    hints = typing.get_type_hints(runner.parameters)
    values: dict[str, object] = {}
    for word in given:
        key, equals, value = word.partition("=")
        spelled = f"{key}_ns" if f"{key}_ns" in fields else key
        if not equals or spelled not in fields:
            known = ", ".join(one.removesuffix("_ns") for one in fields)
            where = f"; its place is named by {name}@PLACE" if key == "place" else ""
            raise PlanError(f"--with {text}: {word!r} is not a parameter of {name}, NAME=VALUE; it has: {known}{where}")
        if spelled != key:
            values[spelled] = _nanoseconds(text, value)
        else:
            # Lists have their commas between parameters, so that their items are separated by +.
            values[spelled] = value_of(key, value.replace("+", ","), hints[spelled])
    place = place if at else LOCAL
    base = NAMES.get(name, name)
    return Invocation(name, base if place == LOCAL else f"{base}@{place}", runner.parameters(**values), place=place)


def _nanoseconds(text: str, value: str) -> int:
    try:
        return round(duration(value) * 1e9)
    except argparse.ArgumentTypeError as error:
        raise PlanError(f"--with {text}: {error}") from None


def parts(texts: Sequence[str]) -> list[Invocation]:
    """Several `--with`. Parts with one name get their parameters as part of it."""
    made = [part(text) for text in texts]
    names = [one.name for one in made]
    return [
        dataclasses.replace(one, name=f"{one.name} {text.partition(',')[2]}") if names.count(one.name) > 1 else one
        for one, text in zip(made, texts, strict=True)
    ]


def every(options: Options) -> tuple[list[Invocation], list[str]]:
    """The parts of every run that work on this host, and why the others do not."""
    found: list[Invocation] = []
    missing: list[str] = []
    for name in EVERY:
        runner = runners.find(name)
        one = Invocation(name, NAMES.get(name, name), runner.parameters())
        assert runner.here is not None
        try:
            runner.here(one.parameters, options).close()
        except RunnerError as error:
            missing.append(f"{one.name}: {error}")
        else:
            found.append(one)
    return found, missing


def without(plan: Plan, those: Collection[str]) -> Plan:
    """The plan without the processes of these runners and of these names. PlanError: others wait for one of them."""
    made = dataclasses.replace(plan, runs=tuple(one for one in plan.runs if not {one.runner, one.name} & {*those}))
    check(made)
    return made


def beside(plan: Plan, requested: Sequence[Invocation], default: Sequence[Invocation]) -> Plan:
    """The plan with further parts. A part of the same runner on this host replaces a default."""
    own = [*plan.runs, *requested]
    taken = {one.name for one in own} | {NAMES.get(one.runner, one.runner) for one in own if one.place == LOCAL}
    made = dataclasses.replace(plan, runs=(*own, *(one for one in default if one.name not in taken)))
    check(made)
    return made
