# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tests`: what can be run, and what each does."""

from __future__ import annotations

import dataclasses
import json
import sys
import typing

from ktrxer import catalogue
from ktrxer.catalogue.recipe import Plan, PlanError, Setting, Test
from ktrxer.commands.common import USAGE, VALID, Parser, complain


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
    for flows in plan.flows:
        when = _when(flows.when.delay_s, flows.when.length_s, total, flows.when.start_after, flows.when.stop_after)
        for i, name in enumerate(flows.series):
            made.append(f"  {name:<22} {when}  TCP {flows.direction}" + (f", marked {flows.mark(i)}" if flows.mark(i) else ""))
    for probe in plan.probes:
        when = _when(probe.when.delay_s, probe.when.length_s, total, probe.when.start_after, probe.when.stop_after)
        mark = f", marked {probe.mark}" if probe.mark else ""
        protocol = "ICMP echo" if probe.protocol == "icmp" else "STAMP (UDP)"
        made.append(f"  {probe.name:<22} {when}  {protocol} every {probe.interval_ns / 1e6:g} ms{mark}")
    hints = typing.get_type_hints(test.parameters)
    for f in dataclasses.fields(test.parameters):
        made.append(f"Parameter {f.name} ({hints[f.name].__name__}, default {f.default!r}): {f.metadata.get('help', '')}")
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
        "series": [name for flows in plan.flows for name in flows.series] + [probe.name for probe in plan.probes],
        "parameters": {f.name: {"default": f.default, "help": f.metadata.get("help", "")} for f in dataclasses.fields(test.parameters)},
        "plots": list(plan.plots),
    }
