# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the Python part of the command starts."""

import json
import os
import shutil
import subprocess

from programs import ROOT


def test_the_python_part_starts_one_interpreter(tmp_path):
    """If the packages' environment has the interpreter of the first start. With variables for Python there is a second one, without them."""
    package = tmp_path / "python" / "ktrxer"
    package.mkdir(parents=True)
    part = shutil.copy(ROOT / "python" / "ktrxer-py", package.parent)
    (package / "cli.py").write_text(
        "import json, sys\n"
        "def main():\n"
        "    print(json.dumps([sys.orig_argv[0], [sys.executable, sys.prefix, sys.path, sys.flags.dont_write_bytecode, sys.argv[1:]]]))"
    )
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    once, again = (
        json.loads(subprocess.run([part, "a", "b"], env=plain | more, stdout=subprocess.PIPE, check=True).stdout)
        for more in ({}, {"PYTHONPATH": "/elsewhere", "PYTHONDONTWRITEBYTECODE": "1"})
    )
    python = str(tmp_path / ".venv" / "bin" / "python3")
    assert (once[0], again[0]) == ("/usr/bin/python3", python)
    assert once[1] == again[1] and once[1][0] == python and any(str(tmp_path / ".venv" / "lib") in path for path in once[1][2])
