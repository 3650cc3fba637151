# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer compare`: differences between groups of runs."""

from __future__ import annotations

import argparse
import fnmatch
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrxer import printed
from ktrxer.arguments import Parser
from ktrxer.commands.common import DOUBTFUL, NO_RESULT, USAGE, VALID, command_line, complain, parse_groups

if TYPE_CHECKING:
    from ktrxer.analyse.compare import Check, Comparison, Margin
    from ktrxer.analyse.factorial import Factorial
    from ktrxer.analyse.figure import Figure
    from ktrxer.analyse.grouping import Group, Member

EXAMPLES = """\
examples:
  ktrxer compare fifo/*.ktrxer -- fq_codel/*.ktrxer        two groups of files
  ktrxer compare runs --by title                           each title against the first one
  ktrxer compare runs --by cc,qdisc --figures 'udp.rtt.*'
  ktrxer compare --baseline main/ --margin 'udp.rtt.load.p95=5%' --margin 'rate.*=2%' change/ --junit out.xml
A difference is that of the means over runs, B - A. Its interval is made by resampling whole runs (studentized bootstrap, 95 %); if
both groups have 3 or 4 runs, it is that of Welch's t test. p is corrected for the primary outcomes (Holm). A group needs at least 3 runs
for an interval. Runs that are invalid, figures of degraded runs that do not hold, and runs that differ from their group in test, host,
kernel, target, length, congestion control, topology or parameters, are named and left out.
With several keys, --by also gives the main effect of each key, and the interaction of each two of them.
Exit status: 0; 1 if a file cannot be read, or if a group has no run; 2 usage; 3 if a margin is not shown to hold."""


def parser() -> Parser:
    p = command_line("compare", "Compares groups of runs: the difference of each figure with a confidence interval.", EXAMPLES)
    p.add_argument("runs", nargs="*", metavar="RUN", type=Path, help="runs and directories of runs; `A... -- B...` makes two groups")
    p.add_argument("--by", metavar="KEY[,KEY]", help="group by properties, settings or paths into meta.json (title, cc, kernel, ...)")
    p.add_argument("--baseline", action="append", type=Path, default=[], metavar="PATH", help="runs of group A; may be given several times")
    p.add_argument("--names", metavar="A,B", help="names of the two groups")
    p.add_argument("--mix", default="", metavar="KEY[,KEY]", help="properties in which runs of a group may differ")
    p.add_argument("--all", action="store_true", help="also runs whose verdict is degraded or invalid")
    p.add_argument("--figures", action="append", default=[], metavar="PATTERN", help="only figures whose key matches (udp.rtt.load.*)")
    worse = "how much worse B may be; without PATTERN: main figures"
    p.add_argument("--margin", action="append", default=[], metavar="[PATTERN=]N[%]", help=worse)
    p.add_argument("--json", action="store_true", help="print one JSON object")
    p.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table for a pull request")
    p.add_argument("--junit", type=Path, metavar="FILE", help="also write one test case for each margin")
    p.add_argument("--no-cache", action="store_true", help="compute all figures anew")
    return p


class Refusal(Exception):
    """Wrong use: one sentence for the user."""


class Incomparable(Exception):
    """A group has no run, or there is one group. The sentences for the user have been printed."""


def main(arguments: list[str]) -> int:
    given, second, two = parse_groups(parser(), arguments, "runs")
    try:
        return _compare(given, second, two)
    except Refusal as error:
        complain("compare", str(error))
        return USAGE


def _compare(given: argparse.Namespace, second: list[Path], two: bool) -> int:
    from ktrxer.analyse.grouping import GroupingError

    read = Reader("compare", given.no_cache, _keys(given.by or ""))
    try:
        groups = _groups(given, second, two, read)
        comparable("compare", groups, [*_keys(given.mix), *_keys(given.by or "")], every=given.all)
    except GroupingError as error:
        raise Refusal(str(error)) from None
    except Incomparable:
        return NO_RESULT
    return max(NO_RESULT if read.failed else VALID, _report(given, groups, read.known))


def comparable(command: str, groups: list[Group], mixed: list[str], *, every: bool) -> None:
    """Leaves out of each group the runs that do not belong to it: those that are not valid, except with `every`, and those that differ from
    the others in a property that is not in `mixed`. GroupingError, Incomparable."""
    from ktrxer.analyse import grouping

    for group in groups:
        if not every:
            grouping.only_valid(group)
        grouping.alike(group, mixed)
    empty = [group for group in groups if not group.members]
    for group in empty:
        complain(command, f"group {group.name!r} has no run to compare")
        show_left_out(command, group)
    if not every and any(group.left_out for group in empty):
        complain(command, f"`ktrxer compare --all` takes runs that are not valid, too{'' if command == 'compare' else ', without a page'}")
    if not empty and len(groups) < 2:
        complain(command, f"only one group: {groups[0].name!r}; a comparison needs two" if groups else "no runs")
    if empty or len(groups) < 2:
        raise Incomparable


def _keys(text: str) -> list[str]:
    return [key for key in text.split(",") if key]


class Reader:
    """Reads groups of paths, one after the other, with one table of known figures."""

    def __init__(self, command: str, fresh: bool, keys: list[str]) -> None:
        self.command = command  # in messages
        self.fresh = fresh
        self.keys = keys  # properties beside the usual ones
        self.failed = False
        self.known: dict[str, Figure] = {}

    def members(self, paths: list[Path]) -> list[Member]:
        from ktrxer.analyse import cache
        from ktrxer.analyse.collection import collect
        from ktrxer.commands.opening import open_any
        from ktrxer.store.listing import find

        files = [file for path in paths for file in self._checked(path, find(path))]
        found = collect(list(dict.fromkeys(files)), open_any, None if self.fresh else cache.file(), self.keys)
        for failure in found.failures:
            complain(self.command, failure.text)
            self.failed = True
        self.known |= {key: figure for key, figure in found.known.items() if key not in self.known}
        return found.members

    def _checked(self, path: Path, files: list[Path]) -> list[Path]:
        if not files:
            complain(self.command, f"{path}: no runs in this directory")
        return files


def _groups(given: argparse.Namespace, second: list[Path], two: bool, read: Reader) -> list[Group]:
    from ktrxer.analyse.grouping import by

    if given.by and (two or given.baseline):
        raise Refusal("--by makes the groups itself: give all runs without `--` and --baseline")
    if two and given.baseline:
        raise Refusal("`A... -- B...` and --baseline both name group A: give one of them")
    if given.by:
        if not given.runs:
            raise Refusal("no RUN: give runs or a directory of them")
        return by(read.members(given.runs), _keys(given.by))
    first, other = (given.runs, second) if two else (given.baseline, given.runs)
    if not first or not other:
        raise Refusal("two groups are needed: `A... -- B...`, --baseline A B..., or --by KEY")
    return two_groups(first, other, given.names, read)


def two_groups(first: list[Path], second: list[Path], named: str | None, read: Reader) -> list[Group]:
    from ktrxer.analyse.grouping import Group

    names = _keys(named) if named else []
    if names and len(names) != 2:
        raise Refusal(f"--names {named}: expected two names with a comma between them")
    made = [Group("A", read.members(first)), Group("B", read.members(second))]
    for group, name in zip(made, names or _default_names(made), strict=True):
        group.name = name
    return made


def _default_names(groups: list[Group]) -> list[str]:
    """The title that all runs of a group have, where the titles differ between the groups; else A and B."""
    titles = [{member.value("title") for member in group.members} for group in groups]
    if all(len(one) == 1 and one != {""} for one in titles) and titles[0] != titles[1]:
        return [next(iter(one)) for one in titles]
    return ["A", "B"]


def _report(given: argparse.Namespace, groups: list[Group], known: dict[str, Figure]) -> int:
    from ktrxer.analyse.compare import check, compare
    from ktrxer.analyse.factorial import factorial

    chosen = {key: figure for key, figure in known.items() if not given.figures or any(fnmatch.fnmatch(key, p) for p in given.figures)}
    if not chosen:
        raise Refusal(f"--figures {given.figures[0]}: no figure of these runs matches; keys are {', '.join(list(known)[:6])}, ...")
    margins = _all_margins(given.margin, known)
    chosen |= {margin.key: known[margin.key] for margin in margins}
    made = [compare(groups[0], other, chosen) for other in groups[1:]]
    checks = [check(one, margins) for one in made]
    effects = factorial(groups, _keys(given.by), chosen) if "," in (given.by or "") else None
    _print(given, groups, made, checks, effects)
    if given.markdown is not None or given.junit is not None:
        from ktrxer.commands import comparison_files

        try:
            if given.markdown is not None:
                given.markdown.write_text(comparison_files.markdown(made, checks, effects))
            if given.junit is not None:
                given.junit.write_text(comparison_files.junit(made, checks))
        except OSError as error:
            complain("compare", f"{error.filename}: {error.strerror}")
            return NO_RESULT
    return VALID if all(one.held for some in checks for one in some) else DOUBTFUL


def _all_margins(texts: list[str], known: dict[str, Figure]) -> list[Margin]:
    """One for each figure: a margin with a pattern comes before one without, and a later one before an earlier one."""
    made: dict[str, Margin] = {}
    for text in sorted(texts, key=lambda text: "=" in text):
        made |= {margin.key: margin for margin in _margins(text, known)}
    return list(made.values())


def _margins(text: str, known: dict[str, Figure]) -> list[Margin]:
    from ktrxer.analyse.compare import Margin

    pattern, _, amount = text.rpartition("=")
    match = re.fullmatch(r"\+?([0-9]*\.?[0-9]+) ?(%?)", amount.strip())
    if match is None:
        raise Refusal(f"--margin {text}: expected N% or N (in the figure's unit), as in udp.rtt.load.p95=5%")
    keys = [key for key, figure in known.items() if (fnmatch.fnmatch(key, pattern) if pattern else figure.main)]
    if not keys:
        raise Refusal(f"--margin {text}: no figure of these runs matches {pattern or 'it'}; keys are {', '.join(list(known)[:6])}, ...")
    value = float(match[1]) / (100 if match[2] else 1)
    if not pattern and not match[2]:
        raise Refusal(f"--margin {text}: a margin for figures of different units must be a share: give {text}%")
    return [Margin(key, value, bool(match[2])) for key in keys]


def _print(
    given: argparse.Namespace, groups: list[Group], made: list[Comparison], checks: list[list[Check]], effects: Factorial | None
) -> None:
    from ktrxer.commands import comparison_text

    if given.json:
        all_made: list[dict[str, Any]] = [
            one.as_json() | {"margins": [vars(check) for check in some]} for one, some in zip(made, checks, strict=True)
        ]
        whole = {"comparisons": all_made, "factorial": effects.as_json() if effects is not None else None}
        printed.show(comparison_text.finite(whole))
        return
    for number, (one, some) in enumerate(zip(made, checks, strict=True)):
        print("\n" if number else "", end="")
        print("\n".join(comparison_text.lines(one, some, bool(given.figures))))
    if effects is not None:
        print("\n" + "\n".join(comparison_text.effect_lines(effects)))
    for group in groups:
        show_left_out("compare", group)


def show_left_out(command: str, group: Group) -> None:
    for one in group.left_out[:20]:
        complain(command, f"left out of {group.name}: {Path(one.run).name}: {one.text}")
    if len(group.left_out) > 20:
        complain(command, f"left out of {group.name}: {len(group.left_out) - 20} more runs (`ktrxer compare --json` names all)")
