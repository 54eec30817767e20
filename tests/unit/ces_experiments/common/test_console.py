"""What a measurement says of its progress where no terminal shows bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_experiments.common import console


def test_a_piped_measurement_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    with console.measuring(tmp_path / "out", plots=False) as progress:
        bar = progress.add_task("decisions", total=5)
        for _ in range(5):
            now += console.LINE_EVERY_S / 2
            progress.advance(bar)
        now += console.LINE_EVERY_S
        progress.update(bar, advance=0, description="proofs")
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line]
    assert lines == ["decisions: 1 of 5", "decisions: 3 of 5", "decisions: 5 of 5", "proofs: 5 of 5"]
    assert said.out == ""
