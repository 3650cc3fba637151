# SPDX-License-Identifier: MIT OR Apache-2.0
"""Code that looks for words in the text of the program: in Python, C, TypeScript and shell.

A search is one of the program's own text, if the words that it looks for stand in a longer literal of the sources (`messages`), or if it looks
into something that is named as a text of the program is (`reason.text`, `sentence`, `stderr`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WORDS = re.compile(r"[A-Za-z]{2}[\w'`:,.()-]* +[\w'`(-]*[A-Za-z]{2}")  # two words at least
SAID = re.compile(r"\breasons?\b|\bsentences?\b|\.text\b|\bstderr\b|\bcomplaint|\.message\b|\boutcome\b|\bwhy\b")
CALLS = ("startswith", "endswith", "find", "rfind", "index", "count", "partition", "rpartition", "split")
PATTERNS = ("search", "match", "fullmatch", "findall", "finditer", "sub")
PATTERN = re.compile(r"\\[dsSw([]|\(\?[:P]|\[\^?\w-\w\]")  # a regular expression, which is no message
C_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
C_SEARCH = re.compile(r"\b(?:strstr|strcasestr|memmem|strncmp|strncasecmp|strcmp)\(([^;]*?)\)[^;]*;", re.S)
TS_SEARCH = re.compile(r"([\w.?!()]*)\.(?:includes|startsWith|endsWith|indexOf|search|match)\(\s*([\"'`/])((?:(?!\2).)+)\2|/((?:[^/\\\n]|\\.)+)/\w*\.test\(([\w.?!()]*)\)")
SHELL_SEARCH = re.compile(r"\b(?:grep|sed|awk)\b[^|\n]*?(['\"])((?:(?!\1).)+)\1")


class Search(NamedTuple):
    line: int
    words: str
    place: str  # the code that is looked into


def python_searches(source: str) -> Iterator[Search]:
    tree = ast.parse(source)
    names = _names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            place = node.comparators[0]
            if not isinstance(place, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.ListComp | ast.SetComp):
                yield from (Search(node.lineno, words, ast.unparse(place)) for words in _literals(node.left, names))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            place, given = node.func.value, node.args[:1]
            if node.func.attr in PATTERNS:
                made = isinstance(place, ast.Name) and place.id == "re"
                pattern, looked = (given, node.args[1:]) if made else ([place], node.args)
                yield from (
                    Search(node.lineno, words, ast.unparse(one)) for one in looked[-1:] for wanted in pattern for words in _literals(wanted, names)
                )
            elif node.func.attr in CALLS:
                yield from (Search(node.lineno, words, ast.unparse(place)) for one in given for words in _literals(one, names))


def _names(tree: ast.AST) -> dict[str, list[str]]:
    """The texts of a name: of a constant, a list of them, and of the variable of a loop over such a list."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            compiled = isinstance(value, ast.Call) and ast.unparse(value.func) == "re.compile" and value.args
            found.setdefault(node.targets[0].id, []).extend(_literals(value.args[0] if compiled else value, {}))  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension | ast.For) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).extend(_literals(node.iter, found))
    return found


def _literals(node: ast.AST, names: dict[str, list[str]]) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for one in node.elts for text in _literals(one, names)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)]
    return names.get(node.id, []) if isinstance(node, ast.Name) else []


def c_searches(source: str) -> Iterator[Search]:
    for found in C_SEARCH.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        yield from (Search(line, words, C_STRING.sub("", found[1])) for words in C_STRING.findall(found[1]))


def script_searches(source: str) -> Iterator[Search]:
    for found in TS_SEARCH.finditer(source):
        yield Search(source.count("\n", 0, found.start()) + 1, found[3] or found[4], found[1] or found[5] or "")


def shell_searches(source: str) -> Iterator[Search]:
    for found in SHELL_SEARCH.finditer(source):
        if not found[2].startswith('"'):  # a key of an object
            yield from (Search(source.count("\n", 0, found.start()) + 1, words, "") for words in found[2].split("/"))


def searches(path: Path, source: str) -> Iterable[Search]:
    by_end = {".py": python_searches, ".c": c_searches, ".h": c_searches, ".ts": script_searches, ".mjs": script_searches}
    return by_end.get(path.suffix, shell_searches)(source)


def messages(sources: Iterable[tuple[Path, str]]) -> list[str]:
    """The literals in which a message of the program may stand."""
    found: set[str] = set()
    for path, source in sources:
        if path.suffix == ".py":
            tree = ast.parse(source)
            found |= {text for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant) for text in _literals(node, {})}
        elif path.suffix == ".toml":
            found |= set(re.findall(r'^text = "(.*)"$', source, re.M))
        else:
            joined = re.sub(r'"\s*\n\s*"', "", source)
            found |= set(C_STRING.findall(joined)) | set(re.findall(r"`([^`]*)`", joined) if path.suffix == ".ts" else ())
    return [text for text in found if " " in text and not PATTERN.search(text)]


def own_text(one: Search, texts: str) -> bool:
    """`texts`: all messages, each between two NULs. The words themselves, alone, are the literal of the search."""
    words = re.sub(r"\\[bBsSdwW][+*]?|\(\?:|[\\^$()\[\]|?*+{}]", "\1", one.words) if not WORDS.fullmatch(one.words) else one.words
    parts = [part.strip() for part in words.split("\1")]
    wanted = [part for part in parts if WORDS.search(part)]
    longer = any(part in texts and re.search(rf"[^\0]{re.escape(part)}|{re.escape(part)}[^\0]", texts) for part in wanted)
    output = one.place in ("line.text", "frame.text")  # of another program
    return longer or (not output and bool(SAID.search(one.place)) and any(len(part) > 2 for part in parts))
