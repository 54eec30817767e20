from __future__ import annotations

from pathlib import Path

from ces_experiments.common.plots import panels
from ces_experiments.common.report import Report


def test_pictures_are_drawn_for_pages_and_for_papers(tmp_path: Path) -> None:
    figure, _ = panels(1, 1)
    report = Report(tables=lambda _: [], pictures=lambda _: {"rates.png": figure})
    assert report.draw({}, tmp_path) == ["rates.png", "rates.pdf"]
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "rates.pdf").read_bytes().startswith(b"%PDF")
