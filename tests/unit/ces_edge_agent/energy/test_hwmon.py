"""Power sensors of boards, as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_edge_agent.energy.hwmon import board_sensor


def chip(root: Path, number: int, name: str, **files: object) -> None:
    folder = root / f"hwmon{number}"
    folder.mkdir()
    for file, content in {"name": name, **files}.items():
        (folder / file).write_text(f"{content}\n")


def test_microwatts_are_taken_as_they_are(tmp_path: Path) -> None:
    chip(tmp_path, 0, "cpu_thermal", temp1_input=41_000)
    chip(tmp_path, 1, "ina219", power1_input=6_000_000, curr1_input=1, in1_input=1)
    board = board_sensor(tmp_path)
    assert board is not None
    assert board.used(0.0, 0.0) is None
    (tmp_path / "hwmon1" / "power1_input").write_text("8000000\n")
    assert board.used(2.0, 0.0) == 14_000_000  # power rose evenly from 6 to 8 W


def test_milliamperes_times_millivolts_are_microwatts(tmp_path: Path) -> None:
    chip(tmp_path, 0, "ina3221", curr1_input=1200, in1_input=5000, in1_label="VDD_IN")
    board = board_sensor(tmp_path)
    assert board is not None
    board.used(0.0, 0.0)
    assert board.used(1.0, 0.0) == pytest.approx(6_000_000)


def test_of_several_that_counts_which_feeds_the_whole_board(tmp_path: Path) -> None:
    chip(
        tmp_path, 0, "ina3221",
        curr1_input=100, in1_input=5000, in1_label="VDD_CPU_GPU_CV",
        curr2_input=2000, in2_input=5000, in2_label="VDD_IN",
    )  # fmt: skip
    board = board_sensor(tmp_path)
    assert board is not None
    board.used(0.0, 0.0)
    assert board.used(1.0, 0.0) == pytest.approx(10_000_000)


def test_where_nothing_says_which_one_does_none_is_taken(tmp_path: Path) -> None:
    chip(tmp_path, 0, "ina219", power1_input=1_000_000)
    chip(tmp_path, 1, "ina226", power1_input=2_000_000)
    assert board_sensor(tmp_path) is None


def test_a_graphics_card_is_no_board(tmp_path: Path) -> None:
    chip(tmp_path, 0, "amdgpu", power1_input=80_000_000)
    assert board_sensor(tmp_path) is None
    assert board_sensor(tmp_path / "none") is None


@pytest.mark.parametrize("content", ["-5", "99000000000000", "x"])
def test_what_cannot_be_is_not_believed(tmp_path: Path, content: str) -> None:
    chip(tmp_path, 0, "ina219", power1_input=1_000_000)
    board = board_sensor(tmp_path)
    assert board is not None
    board.used(0.0, 0.0)
    (tmp_path / "hwmon0" / "power1_input").write_text(content)
    assert board.used(1.0, 0.0) is None
    (tmp_path / "hwmon0" / "power1_input").write_text("1000000")
    assert board.used(1.0, 0.0) is None
    assert board.used(1.0, 0.0) == 1_000_000
