#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# ruff: noqa: E501
"""Makes from contract/reasons.toml, and from the file reasons.toml of a command that alone gives some reasons, what the rest of the project uses.

    contract/reasons.py files          the files of the reasons
    contract/reasons.py header FILE    the functions of the C half, by meson
    contract/reasons.py write          the files in the repository: the table of the Python half, the page of the documentation
    contract/reasons.py check          fails if one of these files is not up to date
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headers import renew

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"\{(\w+)\}")
BY_NUMBERS = "by numbers"
SEVERITIES = ("degraded", "invalid", BY_NUMBERS)
TAKEN = ("id", "text", "severity", "cause", "names")  # keys of every reason
# The end of a number's name decides its letter for the C half, and its type there.
KINDS = {"_ns": ("n", "int64_t"), "_bit_s": ("r", "double"), "_percent": ("f", "double"), "_ppm_s": ("f", "double")}
WORD, COUNT = ("t", "const char *"), ("u", "uint64_t")


class TableError(Exception):
    """A fault of the table."""


@dataclass(frozen=True)
class Reason:
    id: str
    severity: str
    cause: str
    figures: list[str]
    text: str
    meaning: str
    remedy: str = ""
    worst: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return PLACE.findall(self.text)


@dataclass(frozen=True)
class Table:
    thresholds: dict[str, list[Any]]
    bound_causes: dict[str, str]
    words: dict[str, str]
    causes: dict[str, dict[str, str]]
    reasons: dict[str, Reason]

    def kind(self, name: str) -> tuple[str, str]:
        if name in self.words:
            return WORD
        return next((kind for end, kind in KINDS.items() if name.endswith(end)), COUNT)


def files(root: Path = ROOT) -> list[Path]:
    return [root / "contract" / "reasons.toml", *sorted(root.glob("cli/commands/*/reasons.toml"))]


def load(root: Path = ROOT) -> Table:
    made, *others = (tomllib.loads(path.read_text()) for path in files(root))
    reasons = {name: Reason(name, **one) for name, one in made["reasons"].items()}
    for other in others:
        if twice := reasons.keys() & other["reasons"].keys() or other.keys() - {"reasons"}:
            raise TableError(f"{', '.join(sorted(twice))}: a second time, or not a reason")
        reasons |= {name: Reason(name, **one) for name, one in other["reasons"].items()}
    table = Table(made["thresholds"], made["bound_causes"], made["words"], made["causes"], reasons)
    for one in reasons.values():
        _check(table, one)
    return table


def _check(table: Table, one: Reason) -> None:
    names = one.names
    faults = {
        "its identifier is not in lower case with _": not re.fullmatch(r"[a-z][a-z0-9_]*", one.id),
        f"severity {one.severity!r}": one.severity not in SEVERITIES,
        f"no cause {one.cause!r}": one.cause not in table.causes,
        "a name stands twice in the sentence": len(set(names)) != len(names),
        "a name that every reason has": any(name in TAKEN for name in names),
        f"worst {one.worst!r} is no number of the sentence": bool(one.worst) and (one.worst.removeprefix("-") not in names or one.worst in table.words),
        "an errno has this reason and other words than {error}": bool(one.errors) and (one.names != ["error"] or one.severity != BY_NUMBERS),
        "an errno of another reason": any(set(one.errors) & set(other.errors) for other in table.reasons.values() if other is not one),
        "no figure": not one.figures,
        "no meaning": not one.meaning,
    }
    for fault, there in faults.items():
        if there:
            raise TableError(f"{one.id}: {fault}")


# ----------------------------------------------------------------------------------------------------------------- C

HEADER = """/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Made by contract/reasons.py from the files of reasons: a function for each reason, thresholds, causes of error bounds. */
#ifndef KTRXER_REASONS_H
#define KTRXER_REASONS_H

#include "cli.h"

#include <errno.h>
"""


def header(table: Table) -> str:
    parts = [HEADER, "enum {\n" + "".join(f"\tTHRESHOLD_{name.upper()} = {value},\n" for name, (value, _) in table.thresholds.items()) + "};\n"]
    by = "".join(f"\tBOUND_BY_{name.upper()},\n" for name in table.bound_causes)
    names, words = (", ".join(map(json.dumps, texts)) for texts in (table.bound_causes, table.bound_causes.values()))
    parts.append(f"enum bound_cause {{\n{by}\tBOUND_CAUSES,\n}};\n#define BOUND_CAUSE_NAMES {names}\n#define BOUND_CAUSE_WORDS {words}\n")
    for one in table.reasons.values():
        # The compiler checks number and types of the arguments here, so the variable arguments of reason_add() are what the sentence needs.
        form = f"{one.id}\\0{one.cause}\\0" + PLACE.sub(lambda found: f"{{{table.kind(found[1])[0]}{found[1]}}}", json.dumps(one.text)[1:-1])
        types = [(name, table.kind(name)[1]) for name in one.names]
        parameters = [f"{kind}{'' if kind.endswith('*') else ' '}{name}" for name, kind in types]
        by_numbers = one.severity == BY_NUMBERS
        verdict = "verdict" if by_numbers else f"VERDICT_{one.severity.upper()}"
        parts.append(
            f'#define REASON_{one.id.upper()} "{form}"\n'
            f"static inline void reason_{one.id}({', '.join(['struct cli *cli', *(['enum verdict verdict'] if by_numbers else []), *parameters])})\n"
            f"{{\n\treason_add({', '.join(['cli', verdict, f'REASON_{one.id.upper()}', *one.names])});\n}}\n"
        )
    cases = "".join(
        "".join(f"\tcase {error}:\n" for error in one.errors) + f"\t\treturn REASON_{one.id.upper()};\n" for one in table.reasons.values() if one.errors
    )
    parts.append(
        f"static inline const char *reason_of_error(int code)\n{{\n\tswitch (-code) {{\n{cases}\tdefault:\n\t\treturn REASON_ERROR;\n\t}}\n}}\n\n"
        "/* The reason of a failure with this negative errno (0: none is known), and its text. */\n"
        "static inline void reason_failure(struct cli *cli, enum verdict verdict, int code, const char *error)\n"
        "{\n\treason_add(cli, verdict, reason_of_error(code), error);\n}\n"
    )
    return "\n".join([*parts, "#endif\n"])


# ------------------------------------------------------------------------------------------------------------ Python

MODULE = '''# SPDX-License-Identifier: MIT OR Apache-2.0
# ruff: noqa: E501
"""The reasons of a verdict, and the thresholds. `contract/reasons.py write` makes this file from contract/reasons.toml."""

from typing import NamedTuple


class Form(NamedTuple):
    severity: str  # "": the caller decides by the numbers
    cause: str
    text: str
    figures: tuple[str, ...] = ("all",)  # which it puts in doubt
    worst: str = ""


'''


def module(table: Table) -> str:
    lines = [f"{name.upper()} = {value:_}\n" for name, (value, _) in table.thresholds.items()]
    words = "".join(f"    {json.dumps(name)},\n" for name in table.words)
    forms = "".join(
        f"    {json.dumps(one.id)}: Form(\n"
        f"        {json.dumps('' if one.severity == BY_NUMBERS else one.severity)},\n"
        f"        {json.dumps(one.cause)},\n"
        f"        {json.dumps(one.text, ensure_ascii=False)},\n"
        + (f"        ({', '.join(map(json.dumps, one.figures))},),\n" if one.worst or one.figures != ["all"] else "")
        + (f"        {json.dumps(one.worst)},\n" if one.worst else "")
        + "    ),\n"
        for one in table.reasons.values()
    )
    failures = "".join(f"    {json.dumps(one.id)},\n" for one in table.reasons.values() if one.errors or one.id == "error")
    causes = "".join(f"    {json.dumps(name)}: {json.dumps(text)},\n" for name, text in table.bound_causes.items())
    lines.append(f"\nBOUND_CAUSES = {{  # words for the causes of error bounds\n{causes}}}\n")
    lines.append(f"\nFAILURES = (  # of a command that ended without a result\n{failures})\n")
    return MODULE + "".join(lines) + f"\nWORDS = {{\n{words}}}\n\nFORMS: dict[str, Form] = {{\n{forms}}}\n"


# -------------------------------------------------------------------------------------------------------------- page

PAGE = """# Why is my verdict degraded

You find the reason that a command or a run gives beside its verdict, what it means, and what you can do.

`--json` and `--jsonl` give each reason as an object: `id` (the identifier below), `text` (the sentence), `severity`, `cause`, the words and the numbers of the sentence by
their names below, and in a run `names`, the processes or series concerned. Compare identifiers and causes in programs, and show `text` to people: sentences may change, and an
identifier keeps its meaning. A reason of an older version, which had no identifier, has the identifier `text`; a newer version may have identifiers that are not on this page.

```sh
ktrxer summary RUN --json | jq -r '.reasons[] | .id, .cause'
```

A number whose name ends in `_ns` is in nanoseconds, `_bit_s` in bit/s, `_bytes` in bytes, `_percent` in per cent, `_pps` in packets a second. `<...>` stands for a number or a word.
The severity *by numbers* depends on them: see the [thresholds](#thresholds).

<!-- Made by contract/reasons.py from contract/reasons.toml. -->
"""


def _cell(text: str) -> str:
    return PLACE.sub(r"<\1>", text).replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def page(table: Table) -> str:
    parts = [PAGE]
    for cause, about in table.causes.items():
        those = [one for one in table.reasons.values() if one.cause == cause]
        if not those:
            continue
        parts.append(f"## {about['title']}\n\nCause `{cause}`. {about['meaning']} {about['remedy']}\n")
        rows = [
            f"| `{one.id}` | {_cell(one.text)} | {one.severity} | {', '.join(one.figures).replace('_', ' ')} | {_cell(' '.join(filter(None, (one.meaning, one.remedy))))} |"
            for one in those
        ]
        parts.append("| identifier | sentence | severity | figures | what it means, what to do |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    rows = [f"| `{name}` | {value} | {text} |" for name, (value, text) in table.thresholds.items()]
    parts.append("## Thresholds\n\n| name | value | |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    rows = [f"| `{name}` | {text or 'the bound is 0'} |" for name, text in table.bound_causes.items()]
    parts.append("## Causes of error bounds\n\n| `cause` of a bound | words |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def committed(table: Table) -> dict[str, str]:
    return {"python/ktrxer/store/reason_table.py": module(table), "docs/reference/reasons.md": page(table)}


def main(arguments: list[str]) -> int:
    try:
        table = load()
    except (TableError, tomllib.TOMLDecodeError, TypeError) as error:
        print(f"contract/reasons.py: {error}", file=sys.stderr)
        return 1
    match arguments:
        case ["files"]:
            print("\n".join(map(str, files())))
        case ["header", file]:
            renew(Path(file), header(table))
        case ["write"]:
            for name, text in committed(table).items():
                (ROOT / name).write_text(text)
        case ["check"]:
            wrong = [name for name, text in committed(table).items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
            for name in wrong:
                print(f"{name} does not match the files of reasons: run contract/reasons.py write", file=sys.stderr)
            return 1 if wrong else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
