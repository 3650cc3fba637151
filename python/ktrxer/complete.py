# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer --complete WORD...` for the subcommands of the Python part: the possible words at the cursor, from the argument parsers.

It prints one word a line, some with a tab and a help text. For `:files`, `:directories` or `:hosts` the shell's completion uses its own
list (cli/completion).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ktrxer import catalogue


def offered(parser: argparse.ArgumentParser, before: Sequence[str], word: str) -> Iterator[str]:
    """`before`: the words after the subcommand's name; `word`: the beginning of the word at the cursor."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            if before and before[0] in action.choices:
                yield from offered(action.choices[before[0]], before[1:], word)
                return
            if not before:
                yield from (f"{one.dest}\t{one.help}" for one in action._choices_actions if one.dest.startswith(word))
    options = {name: action for action in parser._actions for name in action.option_strings}
    last = options.get(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        yield from values(last, word)
    elif word.startswith("--") and "=" in word:
        name, _, word = word.partition("=")
        if name in options and options[name].nargs != 0:
            for line in values(options[name], word):
                yield line if line.startswith(":") else f"{name}={line}"
    elif word.startswith("-"):
        for action in parser._actions:
            if action.option_strings and action.help != argparse.SUPPRESS and action.option_strings[-1].startswith(word):
                yield f"{action.option_strings[-1]}\t{parser._get_formatter()._expand_help(action)}"
    else:
        positional = next((one for one in parser._actions if not one.option_strings and one.nargs != argparse.PARSER), None)
        yield from values(positional, word) if positional is not None else ()


def values(action: argparse.Action, word: str) -> Iterator[str]:
    names = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        yield from (str(choice) for choice in action.choices if str(choice).startswith(word))
    elif "HOST" in names:
        yield ":hosts"
    elif names == "TEST":
        yield from (f"{name}\t{about}" for name, about in catalogue.summaries().items() if name.startswith(word))
        yield ":files"
    elif names == "DIR":
        yield ":directories"
    else:
        yield ":files"
