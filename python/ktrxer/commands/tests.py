# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tests`: what can be run, and what each does."""

from __future__ import annotations

import dataclasses
import json
import sys
import typing

from ktrxer import catalogue, runners
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Test
from ktrxer.commands.common import USAGE, VALID, Parser, complain
from ktrxer.places import LOCAL
from ktrxer.store.meta import Series


def parser() -> Parser:
    p = Parser("tests", "Lists the tests that `ktrxer run` knows, or explains some of them.")
    p.add_argument("tests", nargs="*", metavar="TEST", help="a name, or the path of a test of your own")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    try:
        tests = [catalogue.find(name) for name in given.tests] or catalogue.everything()
        plans = [test.make(Setting("HOST"), {}) for test in tests]
    except PlanError as error:
        complain("tests", str(error))
        return USAGE
    if given.json:
        json.dump({"tests": [_json(test, plan) for test, plan in zip(tests, plans, strict=True)]}, sys.stdout, indent=2)
        print()
    elif given.tests:
        print("\n\n".join("\n".join(_explained(test, plan)) for test, plan in zip(tests, plans, strict=True)))
    else:
        width = max(len(test.name) for test in tests)
        for test in tests:
            print(f"{test.name:<{width}}  {test.summary}")
        print("\n`ktrxer tests TEST` explains one; docs/howto/add-recipe.md shows how to write your own.")
    return VALID


def _explained(test: Test, plan: Plan) -> list[str]:
    made = [f"{test.name}: {test.summary}"] + ([test.description] if test.description else [])
    made.append("\nWith the default length of 60 s, 5 s idle before and after:")
    total = plan.total_s if plan.total_s is not None else Setting("HOST").total_s
    for one in plan.runs:
        runner = runners.find(one.runner)
        when = _when(one.when.delay_s, one.when.length_s, total, one.when.start_after, one.when.stop_after)
        where = f", in {one.place}" if one.place != LOCAL else ""
        known = {series.name: series for series in runner.series(one.parameters, one.name).values()}
        for series in known.values() or [Series(0, one.name, "value", "")]:  # those of a host's state are not known before the run
            mark = f", marked {series.klass}" if series.klass else ""
            way = f" {series.direction}" if series.direction else ""
            every = f" every {one.parameters.interval_ns / 1e6:g} ms" if one.parameters.interval_ns else ""
            made.append(f"  {series.name:<22} {when}  {runner.summary}{way}{every}{mark}{where}")
    hints = typing.get_type_hints(test.parameters)
    for f in dataclasses.fields(test.parameters):
        kind = hints[f.name].__name__ if isinstance(hints[f.name], type) else str(hints[f.name]).replace("typing.", "")
        made.append(f"Parameter {f.name} ({kind}, default {f.default!r}): {f.metadata.get('help', '')}")
    made.append(f"Plots: {', '.join(plan.plots)}")
    return made


def _when(delay: float, length: float | None, total: float, after: str | None, until: str | None) -> str:
    begin = f"{delay:g} s after {after}" if after else f"{delay:g} s"
    end = f"end of {until}" if until else f"{delay + (length if length is not None else total - delay):g} s"
    return f"{begin} to {end}"


def _json(test: Test, plan: Plan) -> dict[str, object]:
    return {
        "name": test.name,
        "summary": test.summary,
        "series": list(dict.fromkeys(
            series.name for one in plan.runs for series in runners.find(one.runner).series(one.parameters, one.name).values()
        )),
        "parameters": {f.name: {"default": f.default, "help": f.metadata.get("help", "")} for f in dataclasses.fields(test.parameters)},
        "plots": list(plan.plots),
    }
