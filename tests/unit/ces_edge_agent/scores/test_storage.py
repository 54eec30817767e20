"""The disk, as fast as a clock says that is told to go on."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ces_edge_agent.scores import storage
from ces_edge_agent.scores.kernels import Absent
from ces_edge_agent.scores.storage import measure_disk, size_for

MIB = 2**20


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``kind``: its file system; ``free``: bytes."""
    made = SimpleNamespace(kind="ext4", free=2**40)
    monkeypatch.setattr(storage, "_kind_of", lambda _: made.kind)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=made.free, f_frsize=1))
    return made


@pytest.mark.parametrize(("first_s", "size"), [(0.001, 8 * MIB), (0.05, 4 * MIB), (1.0, MIB), (0.0, 8 * MIB)])
def test_a_slow_disk_is_written_less(first_s: float, size: int) -> None:
    assert size_for(first_s) == size


class Clock:
    """Each look is so much later than the one before."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def test_five_repeats_of_a_fast_disk_and_nothing_is_left(disk: SimpleNamespace, tmp_path: Path) -> None:
    found = measure_disk(tmp_path, Clock(0.03))
    assert found.rates == pytest.approx([6 * MIB / 0.03] * 5)
    assert "ext4" in found.source
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_very_slow_has_fewer(disk: SimpleNamespace, tmp_path: Path) -> None:
    assert len(measure_disk(tmp_path, Clock(0.6)).rates) == 2


def test_what_is_no_disk_or_nearly_full_is_absent(disk: SimpleNamespace, tmp_path: Path) -> None:
    disk.kind = "tmpfs"
    with pytest.raises(Absent, match="lies in memory"):
        measure_disk(tmp_path)
    disk.kind, disk.free = "ext4", 100 * MIB
    with pytest.raises(Absent, match="too little of the disk"):
        measure_disk(tmp_path)


def test_the_file_system_of_a_folder_is_known(tmp_path: Path) -> None:
    assert storage._kind_of(Path("/proc")) == "proc"
