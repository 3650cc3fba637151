# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/words finds words in comments, messages, documents and identifiers, and too long lines of C."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = """left_out = ['tests/', 'made/']
[[word]]
find = '\\bwho\\b'
use = 'a name'
left_out = ["a/b/page.md"]
[[identifier]]
words = ["told", "lead_ns"]
use = "reported"
suffixes = [".c", ".h", ".py"]
[[word]]
find = 'issue \\d'
use = "a page"
suffixes = [".c"]
[[fragment]]
find = "(?:Of|The)\\\\b[^,]*$"
clause = "\\\\bthat\\\\b"
verb = "\\\\b(?:is|has)\\\\b"
use = "a sentence"
suffixes = [".c", ".py"]
left_out = ["a/left/"]
"""


def judge(place: Path, files: dict[str, str], *arguments: str) -> tuple[int, str]:
    for name, text in {"tests/words.toml": LIST, **files}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    shutil.copy(ROOT / "tests/words", place / "tests/words")
    done = subprocess.run([sys.executable, "tests/words", *arguments], cwd=place, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("files", "status"), [
    ({}, 0),
    ({"a/b/x.c": "int who; /* the thread */\n"}, 0),
    ({"a/b/x.c": "#include <x.h>\n/* who\n * is it */\n"}, 1),
    ({"a/b/page.md": "who"}, 0),
    ({"a/b/x.c": 'const char *t = "who";\n'}, 1),
    ({"a/c/x.c": "// who\n"}, 1),
    ({"a/c/x.c": "int is_told(int a);\n"}, 1),
    ({"a/c/x.c": "int lead_ns, x = '\"'; /* fine */\n"}, 1),
    ({"a/c/x.c": '#include "told.h"\nint lead, untold; char *t = "told"; /* told */\n'}, 0),
    ({"a/c/x.c": "int isTold;\n"}, 1),
    ({"a/c/x.py": "is_told = 1\n"}, 1),
    ({"a/c/x.py": "class WasTold: ...\n"}, 1),
    ({"a/c/tool": "#!/usr/bin/env python3\nis_told = 1\n"}, 1),
    ({"a/c/x.py": "untold = 'told'  # told\n"}, 0),
    ({"a/c/x.c": "/* issue 2 */\n"}, 1),
    ({"a/c/x.h": "/* issue 2 */\n"}, 0),
    ({"a/c/x.c": "/*\n * Of the\n * flow. It is.\n */\n"}, 1),
    ({"a/c/x.c": "/* Of the flows, one is left. */\n"}, 0),
    ({"a/c/x.c": "int a; /* Of the flow */\n"}, 0),
    ({"a/c/x.c": "/* The flow that is left. */\n"}, 1),
    ({"a/c/x.c": "/* The flow that is left has room. */\n"}, 0),
    ({"a/c/x.py": "# Of the\n# flow\n"}, 1),
    ({"a/c/x.py": '"""Of a flow."""\n'}, 1),
    ({"a/c/x.py": "a = 1  # Of the flow\n"}, 0),
    ({"a/c/x.h": "/* Of the flow */\n"}, 0),
    ({"a/left/x.c": "/* Of the flow */\n"}, 0),
    ({"a/c/script": "#!/bin/sh\n# who\n"}, 1),
    ({"a/c/data": "who\n"}, 0),
    ({"a/c/x.py": "who = 1\n"}, 0),
    ({"a/c/x.py": 'x = f"{who}"\n'}, 0),
    ({"a/c/x.py": '"""Who?"""\n'}, 1),
    ({"x.md": "who"}, 1),
    ({"made/x.md": "who"}, 0),
    ({"a/c/x.c": f"int {'x' * 115};\n"}, 0),
    ({"a/c/x.c": f"int {'x' * 116};\n"}, 1),
    ({"a/c/x.c": f"\tint {'x' * 107};\n"}, 0),
    ({"a/c/x.c": f"\tint {'x' * 108};\n"}, 1),
    ({"module/x.h": f"int {'x' * 96};\n"}, 1),
    ({"a/c/x.ts": f"let {'x' * 115};\n"}, 0),
    ({"a/c/x.ts": f"let {'x' * 116};\n"}, 1),
    ({"a/c/x.md": "x" * 200}, 0),
])  # fmt: skip
def test_words_are_found(tmp_path: Path, files: dict[str, str], status: int) -> None:
    assert judge(tmp_path, files)[0] == status


def test_words_of_a_folder(tmp_path: Path) -> None:
    files = {"a/b/x.c": "#include <x.h>\n\n/* of\n * who */\n", "a/bc/x.c": "// who\n"}
    assert judge(tmp_path, files, "a/b") == (1, "a/b/x.c:4: who: a name\n")
    assert judge(tmp_path, {}, "a/b/x.c")[0] == 1 and judge(tmp_path, {}, "a/c") == (0, "")
