# SPDX-License-Identifier: MIT OR Apache-2.0
"""The two programs whose command line is tested: ktrxer, and cli_selftest, which has the same runtime with commands that do nothing."""

import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KTRXER_BUILD", ROOT / "build"))
KTRXER = BUILD / "cli" / "ktrxer"
SELFTEST = BUILD / "tests" / "system" / "cli_selftest"
PROGRAMS = [KTRXER, SELFTEST]

if not KTRXER.exists() or not SELFTEST.exists():
    raise FileNotFoundError(f"no build with tests in {BUILD}: `scripts/build build tests`, or set KTRXER_BUILD")


def run(program, *args, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", 30)
    return subprocess.run([str(program), *args], capture_output=True, text=True, **options)


def selftest(*args, **options):
    return run(SELFTEST, *args, **options)


def start(*args, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    # Unbuffered, because communicate() does not return data that an earlier readline() has buffered.
    return subprocess.Popen([str(SELFTEST), *args], bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def commands_of(program):
    """The names in `--help`, nested ones included."""
    section = run(program, "--help").stdout.split("Commands:\n")[1].split("\nExperiments")[0]
    return [re.match(r"  (\S+(?: \S+)?)  ", line).group(1) for line in section.splitlines() if line.strip()]


def every_command():
    return [(program, name) for program in PROGRAMS for name in commands_of(program)]
