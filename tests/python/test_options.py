# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options of the Python half: their names, and how a wrong one is reported."""

import re
from importlib import import_module

import pytest
from ktrxer import manual
from ktrxer.cli import SUBCOMMANDS
from ktrxer.complete import offered


@pytest.mark.parametrize("name", ["run", "check"])
def test_a_duration_is_given_by_for(name):
    """As in the C half. The older names are accepted, and documented nowhere."""
    module = import_module(SUBCOMMANDS[name].module)
    parser, words = module.parser(), {"run": ["ping", "-H", "far"], "check": ["--server", "far"]}[name]
    assert [parser.parse_args([*words, option, "2s"]).length for option in ("--for", "-l", "--length")] == [2.0] * 3
    assert parser.parse_args(words).length == {"run": 60.0, "check": None}[name]
    documented = parser.format_help(), manual.page(name).replace("\\-", "-"), "\n".join(offered(parser, [], "-"))
    for text in documented:
        assert "--for" in text and not re.search(r"(?<![\w-])(-l|--length)\b", text)
    assert not [*offered(parser, [], "--len")]
