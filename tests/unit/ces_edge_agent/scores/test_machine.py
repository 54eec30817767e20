"""Types of cores, and what tells one machine from another, from folders that stand for the kernel's."""

from __future__ import annotations

from pathlib import Path

from ces_edge_agent.scores.machine import core_types, hardware
from ces_edge_agent.scores.plan import Cores


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_machine_of_equal_cores_has_one_type_without_a_name(tmp_path: Path) -> None:
    assert core_types([1, 0], tmp_path / "system/cpu") == [Cores("", [0, 1])]


def test_big_and_little_cores_are_told_by_their_capacity_and_the_fastest_come_first(tmp_path: Path) -> None:
    for cpu, capacity in enumerate((446, 446, 1024, 1024)):
        write(tmp_path / f"system/cpu/cpu{cpu}/cpu_capacity", f"{capacity}\n")
    cpus = tmp_path / "system/cpu"
    assert core_types(range(4), cpus) == [Cores("capacity 1024", [2, 3]), Cores("capacity 446", [0, 1])]
    assert core_types([0, 1], cpus) == [Cores("", [0, 1])], "only those that this process may use"


def test_hybrid_cores_of_x86_are_named_by_the_kernel(tmp_path: Path) -> None:
    write(tmp_path / "cpu_core/cpus", "0-3\n")
    write(tmp_path / "cpu_atom/cpus", "4-5,7\n")
    found = core_types(range(7), tmp_path / "system/cpu")
    assert found == [Cores("cpu_core", [0, 1, 2, 3]), Cores("cpu_atom", [4, 5])]


def machine(folder: Path, *, memory: int = 1000, quota: str = "max 100000") -> str:
    proc, root = folder / "proc", folder / "cgroup"
    write(proc / "cpuinfo", "model name\t: A\nmodel name\t: A\n")
    write(proc / "meminfo", f"MemTotal:  {memory} kB\n")
    write(proc / "self/cgroup", "0::/system.slice/agent\n")
    write(root / "system.slice/cpu.max", quota)
    return hardware(proc, {"unified": str(root)})


def test_another_quota_or_more_memory_is_another_machine(tmp_path: Path) -> None:
    first = machine(tmp_path)
    assert machine(tmp_path) == first
    assert machine(tmp_path, quota="50000 100000") != first
    assert machine(tmp_path, memory=2000) != first


def test_version_1_has_its_quota_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "3:cpu,cpuacct:/agent\n2:memory:/other\n")
    write(tmp_path / "cpu/agent/cpu.cfs_quota_us", "25000")
    assert "25000" in hardware(tmp_path / "proc", {"cpu": str(tmp_path / "cpu"), "memory": str(tmp_path)})
