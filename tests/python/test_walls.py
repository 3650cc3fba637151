# SPDX-License-Identifier: MIT OR Apache-2.0
"""tests/walls and tests/paths find faults, in small trees with one fault each."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = {
    "lib/meson.build": "lib_uses = {\n  'base': [],\n  'tx': ['base'],\n}\n",
    "lib/base/error.h": "int error_say(void);\n",
    "lib/base/error.c": '#include "error.h"\nint error_say(void) { return 1; }\n',
    "lib/tx/tx.h": '#include "error.h"\nint tx_open(void);\n',
    "lib/tx/tx.c": '#include "tx.h"\nint tx_open(void) { return error_say(); }\n',
    "include/ktrxer.h": "",
    "python/ktrxer/__init__.py": "",
    "docs/decisions/README.md": "# Decisions\n\n| [1](0001-a.md) | 2026-11-21 | accepted | A | 1 |\n",
    "docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-21. Status: accepted.\n\nText\n",
    "tests/walls.toml": '[exceptions]\n[packages]\nstore = []\nrun = ["store"]\n[python]\nexceptions = []\ncircles = []\n',
}


def judge(place: Path, script: str, more: dict[str, str], *, build: bool = True) -> tuple[int, str]:
    """A tree with a copy of the script, and the files of a meson build."""
    for name, text in (TREE | more).items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copy(ROOT / "tests" / script, place / "tests" / script)
    (place / "build").mkdir()
    if build:
        entries = []
        for source in sorted(place.glob("*/*/*.c")):
            out = place / "build" / f"{source.parent.name}_{source.stem}.o"
            command = ["cc", *(f"-I{folder}" for folder in sorted(place.glob("lib/*")) if folder.is_dir()), "-c", str(source), "-o", str(out)]
            subprocess.run(command, check=True)
            used = ["base"] if source.parent.name == "base" else ["base", source.parent.name]
            entries.append({"file": str(source), "output": out.name, "command": "cc " + " ".join(f"-I../lib/{folder}" for folder in used)})
        (place / "build" / "compile_commands.json").write_text(json.dumps(entries))
    done = subprocess.run([sys.executable, str(place / "tests" / script)], capture_output=True, text=True, cwd=place)
    return done.returncode, done.stdout + done.stderr


def test_a_tree_without_faults(tmp_path: Path) -> None:
    status, output = judge(tmp_path, "walls", {})
    assert status == 0, output
    assert "lib/tx" in output and output.rstrip().endswith("0 wrong")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"lib/base/up.c": '#include "tx.h"\nint up(void) { return 2; }\n'}, "lib/base/up.c uses lib/tx/tx.h: lib/base/ may use nothing", id="include upwards"),
        pytest.param({"lib/base/up.c": "int tx_open(void);\nint up(void) { return tx_open(); }\n"}, "lib/base/up.c uses lib/tx/tx.c", id="call upwards"),
        pytest.param({"lib/base/up.c": '#include "tx.h"\n'}, "a circle of folders: lib/base, lib/tx", id="circle of folders"),
        pytest.param(
            {"lib/tx/a.c": "int b(void);\nint a(void) { return b(); }\n", "lib/tx/b.c": "int a(void);\nint b(void) { return a(); }\n"},
            "a circle of files: lib/tx/a.c, lib/tx/b.c",
            id="circle of files",
        ),
        pytest.param(
            {"module/a.h": "static inline void a(void)\n{\n\tb();\n}\n", "module/b.c": '#include "a.h"\nvoid b(void)\n{\n}\n'},
            "a circle of files of module/: module/a.h, module/b.c",
            id="circle through an inline function of the module",
        ),
        pytest.param(
            {"bpf/r.h": "#define TAKE(at) \\\n\ttake(at)\n#include <linux/c.h>\n", "module/uapi/linux/c.h": '#include "r.h"\n'},
            "a circle of files of bpf/: bpf/r.h, module/uapi/linux/c.h",
            id="circle of headers of bpf",
        ),
        pytest.param({"tests/walls.toml": TREE["tests/walls.toml"].replace("[packages]", '"lib/tx/tx" = ["lib/tx/gone"]\n[packages]')}, "does not use lib/tx/gone any more", id="exception that is not needed"),
        pytest.param({"lib/new/a.c": "int a;\n"}, "no rule says what lib/new/ may use", id="folder without a rule"),
        pytest.param({"lib/tx/error.h": ""}, "two headers of one name", id="two headers of one name"),
        pytest.param({"lib/tx/a.c": '#include "../base/error.h"\n'}, "a header is named without its folder", id="path in an include"),
        pytest.param({"lib/tx/a.c": '#include <stdio.h>\n/* printf() */\nvoid a(void) { printf("a"); }\n'}, "lib/tx/a.c:3: prints", id="a library that prints"),
        pytest.param({"lib/tx/a.c": 'const char *a = "give a larger --size";\n'}, "lib/tx/a.c:1: names an option", id="a library that names an option"),
        pytest.param({"python/ktrxer/store/__init__.py": "import ktrxer.run\n", "python/ktrxer/run/__init__.py": ""}, "ktrxer.store imports ktrxer.run", id="Python upwards"),
        pytest.param(
            {"python/ktrxer/store/__init__.py": "from importlib import import_module\ndef f():\n    import_module('ktrxer.run')\n", "python/ktrxer/run/__init__.py": ""},
            "ktrxer.store imports ktrxer.run",
            id="Python upwards by name",
        ),
        pytest.param(
            {"python/ktrxer/run/__init__.py": "", "python/ktrxer/run/a.py": "import ktrxer.run.b\n", "python/ktrxer/run/b.py": "def f():\n    from ktrxer.run import a\n"},
            "a circle of modules: ktrxer.run.a, ktrxer.run.b",
            id="circle of modules",
        ),
    ],
)
def test_walls_find(tmp_path: Path, more: dict[str, str], words: str) -> None:
    status, output = judge(tmp_path, "walls", more)
    assert status == 1 and words in output, output


def test_walls_of_the_module_find_calls_only(tmp_path: Path) -> None:
    """A prototype, a comment, a static function and a member of the same name are no use."""
    more = {
        "module/a.h": "struct s {\n\tint b;\n};\nvoid b(void); /* c() { b(); } */\n",
        "module/b.c": '#include "a.h"\nstatic int c(int n)\n{\n\treturn n;\n}\nvoid b(void)\n{\n\tc(1);\n}\n',
        "module/c.c": '#include "a.h"\nstatic int c(int n)\n{\n\tb();\n\treturn n;\n}\nint (*d)(int) = c;\n',
    }
    status, output = judge(tmp_path, "walls", more)
    assert status == 0, output


def test_walls_want_a_build(tmp_path: Path) -> None:
    status, output = judge(tmp_path, "walls", {}, build=False)
    assert status == 1 and "calls were not looked at" in output, output


def test_paths_find(tmp_path: Path) -> None:
    status, output = judge(tmp_path, "paths", {"lib/tx/a.c": "/* see lib/tx/tx.h, lib/gone.c, error.h and gone.h */\n"})
    assert status == 1, output
    assert sorted(output.split("no such file: ")[1:]) == ["lib/tx/a.c:1: gone.h\n", "lib/tx/a.c:1: lib/gone.c\n"], output


def test_paths_find_targets_of_make(tmp_path: Path) -> None:
    rules = "all: one\none:\n\ttrue\n$(A:%=cross-%): cross-%: all\nX := 1\n"
    page = "`make one`, `sudo make cross-mips` and `make two A=1`, not `make ONE` and `make x.o`\n"
    status, output = judge(tmp_path, "paths", {"mk/a.mk": rules, "docs/a.md": page})
    assert (status, output) == (1, "no such target of make: docs/a.md:1: two\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({"docs/b.md": "Decisions 1, 2 and 3\n"}, "no page holds decision 2, which docs/b.md:1 cites", id="cited"),
        pytest.param({"lib/b.c": "/* decision 2 */\n"}, "no page holds decision 2, which lib/b.c:1 cites", id="cited in code"),
        pytest.param({"docs/decisions/0001-b.md": "# 1. B\n\nDate: 2026-11-22. Status: accepted.\n"}, "0001-b.md: 0001-a.md holds decision 1, too", id="number twice"),
        pytest.param(
            {"docs/decisions/0002-b.md": "# 2. B\n\nDate: 2026-11-22. Status: accepted. Holds 1, 2.\n\n## 1. A\n\n## 2. B\n"},
            "0002-b.md: 0001-a.md holds decision 1, too", id="held twice"),
        pytest.param(
            {"docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-21. Status: accepted. Holds 1, 2.\n\n## 1. A\n"},
            "0001-a.md: it holds [1, 2], and its sections '## N. TITLE' are [1]", id="no section"),
        pytest.param(
            {"docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-21. Status: accepted. Holds 2, 3.\n\n## 2. A\n\n## 3. A\n"},
            "0001-a.md: it does not hold its own number", id="not its own number"),
        pytest.param({"docs/decisions/0001-a.md": "# 1. A\n\nStatus: accepted.\n"}, "0001-a.md: it does not begin with", id="no date"),
        pytest.param({"docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-21.\n"}, "0001-a.md: it does not begin with", id="no status"),
        pytest.param({"docs/decisions/0001-a.md": "# 2. A\n\nDate: 2026-11-21. Status: accepted.\n"}, "0001-a.md: its title has the number 2", id="number of the title"),
        pytest.param({"docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-21. Status: replaced by 7.\n"}, "no page holds decision 7, which 0001-a.md cites", id="replaced by nothing"),
        pytest.param({"docs/decisions/0001-a.md": "# 1. A\n\nDate: 2026-11-22. Status: accepted.\n"}, "README.md: this row is missing", id="table"),
    ],
)
def test_paths_find_wrong_decisions(tmp_path: Path, more: dict[str, str], words: str) -> None:
    status, output = judge(tmp_path, "paths", more)
    assert status == 1 and words in output, output


def test_paths_resolve_the_numbers_that_a_page_holds(tmp_path: Path) -> None:
    page = "# 1. A\n\nDate: 2026-11-21. Status: accepted. Holds 1, 3.\n\n## 1. A\n\nText\n\n## 3. B\n\nReplaced by 1.\n"
    table = "| [1](0001-a.md) | 2026-11-21 | accepted | A | 1, 3 |\n"
    more = {"docs/decisions/0001-a.md": page, "docs/decisions/README.md": table, "docs/b.md": "decisions 1 and 3\n"}
    assert judge(tmp_path, "paths", more) == (0, "")


def test_paths_of_a_tree_without_faults(tmp_path: Path) -> None:
    assert judge(tmp_path, "paths", {}) == (0, "")
