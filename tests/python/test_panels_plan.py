# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer plot` of results of `ktrxer ppt plan`: the figure of the paper, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ktrxer.cli import main
from ktrxer.panels import plan
from ktrxer.store import StoreError

PLAN: dict[str, Any] = {
    "type": "end",
    "links_bit_s": [10_000_000, 155_000_000, 10_000_000, 100_000_000],
    "heading_wire_bytes": 1500,
    "cross": [],
    "rows": [
        {"trailing_wire_bytes": 75, "alpha": 20.0, "apparent_capacity_bit_s": 100_000_000, "dispersion_ns": 0.0},
        {"trailing_wire_bytes": 300, "alpha": 5.0, "apparent_capacity_bit_s": 12_295_082, "dispersion_ns": 171200.0},
    ],
}
CROSS = PLAN | {"cross": [{"link": 2, "ahead": 1, "between": 1, "wire_bytes": 64}]}


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_the_curves(tmp_path: Path) -> None:
    made = plan.model([written(tmp_path / "a.json", PLAN), written(tmp_path / "b.json", CROSS)])
    (panel,) = made.panels
    idle, crossed = panel.series
    assert idle.x.tolist() == [5.0, 20.0] and idle.y.tolist() == pytest.approx([12.295082, 100.0])
    assert idle.label == "10, 155, 10, 100 Mbit/s"
    assert crossed.label == "10, 155, 10, 100 Mbit/s 2:1:1" and (crossed.color, crossed.dash) != (idle.color, idle.dash)
    assert panel.y.unit == "Mbit/s"


def test_as_many_curves_as_can_be_drawn_look_different(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.json", PLAN) for i in range(20)]
    series = plan.model(paths).panels[0].series
    assert len({(one.color, one.dash) for one in series}) == 20


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "c2.json", PLAN)
    assert main(["plot", str(path)]) == 0
    assert capsys.readouterr().out == "c2-capacity.svg\n"
    picture = (tmp_path / "c2-capacity.svg").read_text()
    assert "10, 155, 10, 100 Mbit/s" in picture and "apparent capacity" in picture
    assert main(["plot", str(path), "--json"]) == 0
    (panel,) = json.loads(capsys.readouterr().out)["panels"]
    assert panel["series"][0]["y"] == pytest.approx([12.295082, 100.0])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "an object"),
        ({}, "missing"),
        (PLAN | {"rows": []}, "has no rows"),
        ({name: value for name, value in PLAN.items() if name != "rows"}, "rows: missing"),
        (PLAN | {"links_bit_s": ["10M"]}, "a whole number"),
        (PLAN | {"rows": [{"alpha": "2", "apparent_capacity_bit_s": 1}]}, "a number"),
        (PLAN | {"rows": 7}, "a list"),
    ],
)
def test_files_that_are_no_plan(content: object, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "x.json", content)
    with pytest.raises(StoreError, match=reason):
        plan.read(path)
    assert main(["plot", str(path), "-o", str(tmp_path / "x.svg")]) == 1
    assert reason in capsys.readouterr().err and not (tmp_path / "x.svg").exists()


def test_a_plan_has_one_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plot", str(written(tmp_path / "x.json", PLAN)), "--plot", "ping"])
    assert ended.value.code == 2 and "--plot is for runs" in capsys.readouterr().err
    assert main(["plot", str(tmp_path / "missing.json")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
