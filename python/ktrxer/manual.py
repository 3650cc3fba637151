# SPDX-License-Identifier: MIT OR Apache-2.0
"""Manual pages of the Python part's subcommands, in mdoc, from their argument parsers. The build runs this command:

    python3 -m ktrxer.manual DIR      writes DIR/ktrxer-NAME.1 for each subcommand
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ktrxer.cli import SUBCOMMANDS

PAGE_DATE = "November 22, 2026"  # a constant, so that each build makes the same page


def text(words: str) -> str:
    """Escape text, so that no part of it is markup. Each sentence begins a line, as mdoc requires."""
    sentences = re.split(r"(?<=\.) +(?=[A-Z])", " ".join(words.split()))
    return "\n".join(_escaped(sentence) for sentence in sentences if sentence)


def _escaped(line: str) -> str:
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


def word(words: str) -> str:
    """Escape an argument of a macro."""
    inner = words.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f'"\\&{inner}"'


def sentence(words: str) -> str:
    words = words.strip().rstrip(".")
    return text(f"{words[:1].upper()}{words[1:]}.")


def page(name: str) -> str:
    parser: argparse.ArgumentParser = import_module(SUBCOMMANDS[name].module).parser()
    lines = [
        '.\\" SPDX-License-Identifier: MIT OR Apache-2.0',
        '.\\" Made from the argument parser: do not edit.',
        f".Dd {PAGE_DATE}", f".Dt KTRXER-{name.upper()} 1", ".Os", ".Sh NAME", f".Nm ktrxer-{name}",
        f".Nd {text(SUBCOMMANDS[name].summary)}",
        ".Sh SYNOPSIS", *_synopsis(name, parser), ".Sh DESCRIPTION", sentence(parser.description or SUBCOMMANDS[name].summary),
    ]  # fmt: skip
    epilogs = [parser.epilog or ""]
    children = _children(parser)
    if not children:
        lines += _arguments(parser)
    for child, summary, made in children:
        lines += [f".Ss ktrxer {name} {child}", sentence(summary), *_arguments(made)]
        epilogs.append(made.epilog or "")
    examples, notes = _epilogs(epilogs)
    if notes:
        lines += [".Pp", text(notes)]
    lines += [".Sh EXIT STATUS", ".Bl -tag -width Ds", *_statuses(name), ".El"]
    if examples:
        lines += [".Sh EXAMPLES", ".Bd -literal", *map(_escaped, examples), ".Ed"]
    lines += [".Sh SEE ALSO", ".Xr ktrxer 1"]
    return "\n".join(lines) + "\n"


def _children(parser: argparse.ArgumentParser) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """Subcommands of a subcommand: name, summary, parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return [(one.dest, one.help or "", action.choices[one.dest]) for one in action._choices_actions]
    return []


def _synopsis(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    children = _children(parser)
    for child, made in [(child, made) for child, _, made in children] or [("", parser)]:
        yield ".Nm ktrxer"
        yield f".Cm {word(name)}" + (f" {word(child)}" if child else "")
        yield ".Op Ar options"
        for action in made._actions:
            if action.option_strings and action.required:
                yield f".Fl {action.option_strings[0].removeprefix('-')} Ar {word(_value(action))}"
        for action in _positionals(made):
            several = " ..." if action.nargs in ("+", "*") else ""
            yield f"{'.Op Ar' if action.nargs in ('?', '*') else '.Ar'} {word(_value(action))}{several}"
        if made.usage and "-- COMMAND" in made.usage:
            yield ".Cm \\-\\- Ar COMMAND ..."


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings and not isinstance(action, argparse._SubParsersAction)]


def _value(action: argparse.Action) -> str:
    return action.metavar if isinstance(action.metavar, str) else action.dest.upper()


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    return sentence(parser._get_formatter()._expand_help(action)) if action.help else ""


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    positionals = _positionals(parser)
    if positionals:
        yield from (".Pp", "The arguments are:", ".Bl -tag -width Ds")
        for action in positionals:
            yield from (f".It Ar {word(_value(action))}", _help(action, parser))
        yield ".El"
    yield from (".Pp", "The options are:", ".Bl -tag -width Ds")
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            flags = " , ".join("Fl \\&" + name[1:].replace("-", "\\-") for name in action.option_strings)
            yield f".It {flags}" + (f" Ar {word(_value(action))}" if action.nargs != 0 else "")
            yield _help(action, parser)
    yield ".El"


def _epilogs(epilogs: list[str]) -> tuple[list[str], str]:
    """The indented lines are examples; the others are text."""
    examples, notes = [], []
    for line in "\n".join(epilogs).splitlines():
        if line.startswith("  "):
            examples.append(line.strip())
        elif line.strip() and line.strip() != "examples:":
            notes.append(line.strip())
    return examples, " ".join(notes)


def _statuses(name: str) -> Iterator[str]:
    if name == "lab":  # the notes of `lab` list the other statuses
        yield from (".It 0", "The command in the lab ended with 0.", ".It 1 to 127", "As described above.")
        return
    measured = name in ("check", "run")
    yield from (".It 0", "The run is valid." if measured else "Success.")
    failed = "It failed; a line on standard error names the reason."
    yield from (".It 1", "The run is degraded or invalid, or it failed." if measured else failed)
    yield from (".It 2", "The command line was wrong.", ".It 130", "Ctrl-C came before there was a result.")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python3 -m ktrxer.manual DIR", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    directory.mkdir(exist_ok=True)
    for name in SUBCOMMANDS:
        (directory / f"ktrxer-{name}.1").write_text(page(name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
