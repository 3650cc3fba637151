# SPDX-License-Identifier: MIT OR Apache-2.0
"""The fault of a TOML file in words for its author."""

from __future__ import annotations

import re

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_STRING = 'a string stands in quotation marks on one line, as in name = "value"'
_REMEDIES = {
    "Illegal character '\\n'": f"the string does not end; {_STRING}",
    "Expected \"'\"": f"the string does not end; {_STRING}",
    "Invalid value": f"not a value; {_STRING}",
    "Unescaped '\\' in a string": "a backslash in a string; write two of them, or put the string in single quotation marks: '...'",
}


def fault(error: ValueError, text: str) -> str:
    """The fault that tomllib found in `text`, with the line: `line 3: the string does not end; ...: name = "value`."""
    message = " ".join(str(error).split())
    place = _PLACE.search(message)
    message = _PLACE.sub("", message)
    message = next((remedy for beginning, remedy in _REMEDIES.items() if message.startswith(beginning)), message)
    if place is None:
        return message[:300]
    if place[1] is None:
        return f"at the end of the file: {message}"
    line = text.splitlines()[int(place[1]) - 1 : int(place[1])]
    return f"line {place[1]}: {message}" + (f"; found: {' '.join(line[0].split())[:80]}" if line else "")
