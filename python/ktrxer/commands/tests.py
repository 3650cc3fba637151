# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer tests`: what can be run, and what each does. The list imports no recipe, because it is read often."""

from __future__ import annotations

import dataclasses
import typing

from ktrxer import catalogue, printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain

if typing.TYPE_CHECKING:
    from ktrxer.catalogue.recipe import Plan, Setting, Test


def parser() -> Parser:
    p = command_line("tests", "Lists the tests of `ktrxer run`, or explains some of them.")
    p.add_argument("tests", nargs="*", metavar="TEST", help="a name, or the path of a test of your own")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if not given.tests and not given.json:
        return _list()
    from ktrxer.catalogue.recipe import PlanError

    made: list[dict[str, object]] = []
    status = VALID
    for name in given.tests or catalogue.summaries():
        try:
            found, broken = _described(name, given.json)
        except PlanError as error:
            summary = catalogue.summaries().get(name, "")
            found, broken = {"name": name, "summary": summary, "series": [], "parameters": {}, "plots": []}, str(error)
        if broken:
            complain("tests", broken)
            status = USAGE if given.tests else NO_RESULT
        made.append(found | ({"error": broken} if broken else {}))
    if given.json:
        printed.show({"tests": made})
    elif texts := [str(one["text"]) for one in made if "text" in one]:
        print("\n\n".join(texts))
    return status


def _list() -> int:
    found = catalogue.summaries()
    width = max(map(len, found))
    for name, summary in found.items():
        print(f"{name:<{width}}  {summary}")
    print("\n`ktrxer tests TEST` explains one, `ktrxer run TEST -H HOST` runs it, `ktrxer new test NAME` writes one of your own.")
    unread = [f"{name}: {summary}" for name, summary in found.items() if summary.startswith(catalogue.UNREAD)]
    for one in unread:
        complain("tests", one)
    return NO_RESULT if unread else VALID


def _described(name: str, as_json: bool) -> tuple[dict[str, object], str]:
    """A test, and the error of a user's own one whose program fails. PlanError: there is no such test, or none in its file."""
    from ktrxer.catalogue.recipe import PlanError, where_in

    test = catalogue.find(name)
    try:
        setting, plan, why, broken = _plan(test)
        return (_json(test, plan, why) if as_json else {"text": "\n".join(_explained(test, setting, plan, why))}), broken
    except Exception as error:
        if not test.path:
            raise
        raise PlanError(f"{where_in(error, test.path)}{type(error).__name__}: {error}") from error


def _plan(test: Test) -> tuple[Setting, Plan | None, str, str]:
    """The plan for the defaults; None and the reason where this installation cannot make one, and again where the user's program fails."""
    from ktrxer.catalogue.recipe import PlanError, example

    setting = example(test)
    try:
        return setting, test.make(setting, {}), "", ""
    except PlanError as error:
        expected = not test.path or isinstance(error.__cause__, PlanError)
        return setting, None, str(error), "" if expected else str(error)


def _explained(test: Test, setting: Setting, plan: Plan | None, why: str) -> list[str]:
    from ktrxer.catalogue import reference

    made = [f"{test.name}: {test.summary}"] + ([test.description] if test.description else [])
    if test.hosts != (1, 1):
        made.append(f"Far ends (-H): {test.hosts[0] if len(set(test.hosts)) == 1 else ' to '.join(map(str, test.hosts))}")
    made += _timetable(setting, plan) if plan is not None else [f"The test cannot run here with its defaults: {why}"]
    if known := list(reference.parameters(test)):
        made.append("Parameters (--set NAME=VALUE; a list has commas between its values):")
        made += [f"  {name} ({kind}; default {default}): {about}".replace("`", "") for name, kind, default, about in known]
    return made + ([f"Plots (`ktrxer plot --plot NAME`): {', '.join(plan.plots)}"] if plan is not None else [])


def _timetable(setting: Setting, plan: Plan) -> list[str]:
    from ktrxer import runners
    from ktrxer.places import LOCAL
    from ktrxer.store.meta import Series

    made = ["\nWith the default length of 60 s, 5 s idle before and after:"]
    total = plan.total_s if plan.total_s is not None else setting.total_s
    for one in plan.runs:
        runner = runners.find(one.runner)
        when = _when(one.when.delay_s, one.when.length_s, total, one.when.start_after, one.when.stop_after)
        where = f", in {one.place}" if one.place != LOCAL else ""
        far = f", to {one.parameters.host}" if one.parameters.host and setting.more_hosts else ""
        known = {series.name: series for series in runner.series(one.parameters, one.name).values()}
        for series in known.values() or [Series(0, one.name, "value", "")]:  # those of a host's state are not known before the run
            mark = f", marked {series.klass}" if series.klass else ""
            way = f" {series.direction}" if series.direction else ""
            sampled = ", sampled" if runner.loads else ""
            every = f"{sampled} every {one.parameters.interval_ns / 1e6:g} ms" if one.parameters.interval_ns else ""
            made.append(f"  {series.name:<22} {when}  {runner.summary}{way}{every}{mark}{far}{where}")
    steps = "; ".join(f"{step.name} {step.from_s:g} to {step.to_s:g} s" for step in plan.steps)
    return made + ([f"Steps: {steps}"] if steps else [])


def _when(delay: float, length: float | None, total: float, after: str | None, until: str | None) -> str:
    begin = f"{delay:g} s after {after}" if after else f"{delay:g} s"
    end = f"end of {until}" if until else f"{delay + (length if length is not None else total - delay):g} s"
    return f"{begin} to {end}"


def _json(test: Test, plan: Plan | None, why: str) -> dict[str, object]:
    from ktrxer import runners

    runs = plan.runs if plan is not None else ()
    made: dict[str, object] = {
        "name": test.name,
        "summary": test.summary,
        "series": list(dict.fromkeys(
            series.name for one in runs for series in runners.find(one.runner).series(one.parameters, one.name).values()
        )),
        "parameters": {
            f.name: {"default": test.given.get(f.name, f.default), "help": f.metadata.get("help", "")}
            for f in dataclasses.fields(test.parameters)
        },
        "hosts": list(test.hosts),
        "plots": list(plan.plots) if plan is not None else [],
    }
    return made | ({"missing": why} if why else {})
