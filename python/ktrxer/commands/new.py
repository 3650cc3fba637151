# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer new`: a file that works, to begin with."""

from __future__ import annotations

from pathlib import Path

from ktrxer import catalogue
from ktrxer.arguments import Parser
from ktrxer.catalogue.table import EXPLAINED, TABLE
from ktrxer.commands.common import NO_RESULT, USAGE, VALID, command_line, complain

EXAMPLES = """\
examples:
  ktrxer new test two_uploads          a file in ~/.config/ktrxer/tests, which `ktrxer run two_uploads` finds
  ktrxer new test two_uploads -D .     a file here: `ktrxer run ./two_uploads.py`"""

TEMPLATE = '''\
"""Two uploads, the second of which begins later, beside pings."""

from dataclasses import dataclass

from ktrxer.catalogue.recipe import Plan, Setting, Test, When, combine, icmp, parameter, udp, uploads


@dataclass(frozen=True)
class Parameters:
    gap_s: float = parameter(2.0, "seconds from the start of the first upload to that of the second", low=0, high=60)
    marking: str = parameter("CS1", "DSCP of the second upload")


def plan(setting: Setting, p: Parameters) -> Plan:
    first = When(delay_s=setting.delay_s, length_s=setting.length_s)
    second = When(delay_s=setting.delay_s + p.gap_s, length_s=setting.length_s)
    return combine(
        icmp(setting),
        udp(setting, "Ping (ms) UDP EF", "EF"),
        uploads(setting, ["TCP upload first"], name="first", when=first),
        uploads(setting, ["TCP upload second"], [p.marking], name="second", when=second),
        plots=("all", "ping_cdf"),  # `ktrxer plot --list` names all
        total_s=setting.total_s + p.gap_s,
    )


TEST = Test("{name}", "Two uploads, the second of which begins later, with pings", plan, Parameters)
'''


def parser() -> Parser:
    p = command_line("new", "Writes a working file to begin with. A file that exists is never replaced.", EXAMPLES)
    p.add_argument("kind", choices=("test",), metavar="KIND", help="what to begin: test, which is a test of your own")
    p.add_argument("name", metavar="NAME", help="name of the test: letters, digits, _ and -")
    folder = "where; by default ~/.config/ktrxer/tests, where `ktrxer run NAME` finds it"
    p.add_argument("-D", "--directory", type=Path, metavar="DIR", help=folder)
    return p


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    name: str = given.name
    if not catalogue.OWN_NAME.fullmatch(name):
        complain("new", f"{name[:60]!r} cannot be the name of a test: a letter, then up to 40 letters, digits, _ and -")
        return USAGE
    if name in TABLE or name in EXPLAINED:
        complain("new", f"{name} is a test of ktrxer already, and a file of this name would not be found: choose another name")
        return USAGE
    folder: Path = given.directory or catalogue.folder()
    path = folder / f"{name}.py"
    try:
        if given.directory is None:
            folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.replace("{name}", name))
    except FileExistsError:
        complain("new", f"{path}: exists already, and is left as it is: choose another name, or remove the file")
        return NO_RESULT
    except OSError as error:
        complain("new", f"{path}: cannot be written: {error.strerror}; -D names another folder")
        return NO_RESULT
    word = name if given.directory is None else path if path.is_absolute() else f"./{path}"
    print(f"{path}\n`ktrxer tests {word}` explains it; `ktrxer run {word} -H HOST` runs it.")
    own = Path(catalogue.__file__).parent
    print(f"{own / 'recipe.py'} has the functions of recipes; {own / 'rrul.py'} is one of ktrxer's own recipes.")
    return VALID
