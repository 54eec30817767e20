"""CPU time of workers, with control groups and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kernel_files import Kernel

from ces_edge_agent import linux
from ces_edge_agent.cpu_time import WorkerTime


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each time that all processes of the machine are looked at."""
    found, children = list[int](), linux.children

    def scanned() -> dict[int, list[int]]:
        found.append(1)
        return children()

    monkeypatch.setattr(linux, "children", scanned)
    return found


def test_workers_without_control_groups_cost_one_scan_together(scans: list[int], tmp_path: Path) -> None:
    pids = [os.getpid(), os.getppid()]
    used = WorkerTime({}, tmp_path).used(pids)
    assert used.keys() == set(pids)
    assert used[os.getpid()] > 0
    assert len(scans) == 1


def test_workers_with_control_groups_cost_none(scans: list[int], tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.process("17", "ces/n/a.1")
    kernel.used("ces/n/a.1", 2.5)
    assert WorkerTime(kernel.roots, kernel.proc).used([17]) == {17: 2.5}
    assert not scans


def test_descendants_by_a_table_that_is_there(scans: list[int]) -> None:
    assert sorted(linux.descendants(1, {1: [2, 3], 3: [4], 5: [6]})) == [2, 3, 4]
    assert not scans
