"""What keeps programs to their shares of cards: no more is said than what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_edge_agent.card_sharing import kept_by


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, Path]:
    """One with nothing of either."""
    for name in ("pipes", "processes/77"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "libvgpu.so").write_text("")
    (tmp_path / "processes/77/comm").write_text("nvidia-cuda-mps\n")
    return {"preload": tmp_path / "preload", "pipes": tmp_path / "pipes", "processes": tmp_path / "processes"}


def with_mps(machine: dict[str, Path], pid: str = "77") -> None:
    (machine["pipes"] / "nvidia-cuda-mps-control.pid").write_text(f"{pid}\n")


def test_nothing_keeps_programs_to_their_shares_unless_it_is_found(machine: dict[str, Path]) -> None:
    assert kept_by(same_root=True, confined=False, **machine) == "counted"


def test_a_daemon_that_workers_reach(machine: dict[str, Path]) -> None:
    with_mps(machine)
    assert kept_by(same_root=True, confined=False, **machine) == "mps"
    assert kept_by(same_root=True, confined=True, **machine) == "counted", "it has a /tmp of its own"
    assert kept_by(same_root=False, confined=True, **machine) == "counted", "a container has, too"


@pytest.mark.parametrize("pid", ["78", "", "x", "../77"])
def test_a_daemon_that_is_gone(machine: dict[str, Path], pid: str) -> None:
    with_mps(machine, pid)
    assert kept_by(same_root=True, confined=False, **machine) == "counted"


def test_another_program_has_the_number_of_the_daemon(machine: dict[str, Path]) -> None:
    with_mps(machine)
    (machine["processes"] / "77/comm").write_text("bash\n")
    assert kept_by(same_root=True, confined=False, **machine) == "counted"


def test_a_library_that_each_program_begins_with(machine: dict[str, Path], tmp_path: Path) -> None:
    machine["preload"].write_text(f"/lib/other.so {tmp_path}/libvgpu.so\n")
    assert kept_by(same_root=True, confined=True, **machine) == "hami"
    assert kept_by(same_root=False, confined=True, **machine) == "counted", "images have libraries of their own"
    machine["preload"].write_text("/nowhere/libvgpu.so\n")
    assert kept_by(same_root=True, confined=True, **machine) == "counted"
