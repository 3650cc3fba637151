# SPDX-License-Identifier: MIT OR Apache-2.0
"""The objects that commands print, against their schemas and against each other (printed_figures.py). conftest.py checks all output of the command
under test that a test reads."""

import json
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import jsonschema
from printed_figures import disagreements

ROOT = Path(__file__).resolve().parents[2]
LIKE_MOST = 20  # checked objects of one kind in one output: the others are written by the same code


@cache
def validator(command):
    """None: the tables do not have this command."""
    path = ROOT / "docs" / "schema" / f"{command.replace(' ', '-')}.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text())) if path.exists() else None


# Python commands whose objects do not name their command.
UNNAMED = ("compare", "import", "plot", "query", "report", "runs", "summary", "tests", "view")


def named(words):
    """Of the words of `python -m ktrxer COMMAND`."""
    words = list(map(str, words))
    name = words[words.index("ktrxer") + 1] if "ktrxer" in words[:-1] else None
    if name == "query" and "--jsonl" in words:
        return "query rows"
    return name if name in UNNAMED and "--jsonl" not in words else None


def wrong(objects, command=None):
    """What the schemas do not allow in lines of --jsonl, or in the object of --json. The first object with `argv` names the command, if
    the command line does not."""
    found, seen = [], Counter()
    for one in objects:
        if not isinstance(one, dict):
            return []
        command = command or one.get("start", one).get("command")
        like = [one.get(key) for key in ("type", "of", "kind", "name") if key in one]
        seen[str(like)] += 1
        check = validator(one.get("of", command)) if command and seen[str(like)] <= LIKE_MOST else None
        if check and (error := jsonschema.exceptions.best_match(check.iter_errors(one))):
            found.append(f"{'.'.join(map(str, like))} of {command}: {error.json_path}: {error.message}")
    return found


def parsed(text):
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    except ValueError:
        return []


def watch(found, communicate=subprocess.Popen.communicate):
    """communicate() of Popen, by which run() reads, too, that appends to `found` what is wrong in the output of a command."""

    def read(process, *arguments, **more):
        out, err = communicate(process, *arguments, **more)
        if out and isinstance(process.args, list | tuple) and {"--json", "--jsonl"} & set(map(str, process.args)):
            text = out if isinstance(out, str) else out.decode(errors="replace")
            objects = parsed(text)
            found.extend([*wrong(objects, named(process.args)), *disagreements(objects)])
        return out, err

    return read
