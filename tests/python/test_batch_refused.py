# SPDX-License-Identifier: MIT OR Apache-2.0
"""Batch files that would measure something other than what they say are refused."""

from __future__ import annotations

import pytest
from ktrxer.batch import spec

BASE = """
[run]
test = "ping"
host = "far.example"
"""


@pytest.mark.parametrize("name", ["batch", "group", "repetition", "number", "batch_id", "batch_seed", "try"])
@pytest.mark.parametrize("text", ["[matrix]\n{} = [4, 8]", "[variables]\n{} = 4", "[matrix]\nx = [{{name = 'a', {} = 4}}]"])
def test_a_name_that_each_run_has_is_refused(tmp_path, name, text):
    path = tmp_path / "b.toml"
    path.write_text(BASE + text.format(name))
    with pytest.raises(spec.BatchError, match=f"`{name}` is reserved: each run has its own batch, group"):
        spec.read(path)


def test_abstract_is_a_truth_value(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(BASE + "[batches.a]\nabstract = 'false'\n[batches.b]\n")
    with pytest.raises(spec.BatchError, match=r"batches\.a\.abstract: expected true or false"):
        spec.read(path)
