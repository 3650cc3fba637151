#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes from the tables of fields (tables.py: files()) what the rest of the project uses.

    contract/generate.py families          the names of the tables of C commands, each with its file
    contract/generate.py metrics           the tables of metrics
    contract/generate.py headers FOLDER    the C headers, by meson
    contract/generate.py page              the page of the site, on standard output
    contract/generate.py manual FOLDER COMMAND ...  runs the command, which makes manual pages in FOLDER, and adds their section OUTPUT
    contract/generate.py write             the files in the repository: docs/schema/, python/ktrxer/store/tables.py, object_table.py
    contract/generate.py check             fails if one of these files is not up to date
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import headers
import manual
import metrics
import pages
import readers
import schemas
import stored
from tables import TableError, Tables, files, load

ROOT = Path(__file__).resolve().parents[1]


def families(tables: Tables) -> list[str]:
    """The tables of C commands, each of which has a header."""
    return sorted({group.family for group in tables.groups.values() if group.c})


def committed(tables: Tables) -> dict[str, str]:
    """Path and text of each generated file that is in the repository."""
    return {
        f"docs/schema/{command.replace(' ', '-')}.schema.json": json.dumps(schemas.schema_of(tables, command), indent=2) + "\n"
        for command in tables.commands
    } | {"python/ktrxer/store/tables.py": stored.module(), "python/ktrxer/store/object_table.py": readers.module(tables)}


def stale(tables: Tables) -> list[str]:
    return [name for name, text in committed(tables).items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]


def main(arguments: list[str]) -> int:
    try:
        tables = load()
    except TableError as error:
        print(f"contract: {error}", file=sys.stderr)
        return 1
    match arguments:
        case ["families"]:
            print("\n".join(f"{family}\t{files()[family]}" for family in families(tables)))
        case ["metrics"]:
            print("\n".join(map(str, metrics.files())))
        case ["page"]:
            print(f"{pages.page(tables)}\n{metrics.page()}")
        case ["headers", folder]:
            for family in families(tables):
                headers.renew(Path(folder) / f"fields_{family}.h", headers.header(tables, family))
            headers.renew(Path(folder) / "metric_table.h", metrics.header())
        case ["manual", folder, *command]:
            subprocess.run(command, check=True)
            manual.add(tables, Path(folder))
        case ["write"]:
            for name, text in committed(tables).items():
                (ROOT / name).write_text(text)
        case ["check"]:
            wrong = stale(tables)
            for name in wrong:
                print(f"contract: {name} does not match the tables of fields: run contract/generate.py write", file=sys.stderr)
            return 1 if wrong else 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
