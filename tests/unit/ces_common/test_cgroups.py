"""Control groups on folders that stand for the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_common.cgroups import Group, group_of, hierarchies

MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
35 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
"""


def test_version_1_hierarchies_are_found_by_controller(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    both = "/sys/fs/cgroup/cpu,cpuacct"
    assert hierarchies(str(tmp_path / "mountinfo")) == {"cpu": both, "cpuacct": both, "memory": "/sys/fs/cgroup/memory"}
    assert hierarchies(str(tmp_path / "none")) == {}


@pytest.mark.parametrize(("controllers", "found"), [("cpu memory pids", True), ("hugetlb", False)])
def test_version_2_counts_where_it_has_the_controllers(tmp_path: Path, controllers: str, found: bool) -> None:
    (tmp_path / "cgroup.controllers").write_text(controllers)
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw shared:4 - cgroup2 cgroup2 rw\n")
    assert hierarchies(str(tmp_path / "mountinfo")) == ({"unified": str(tmp_path)} if found else {})


def tree(folder: Path, *files: str) -> None:
    """A control group's folder as the kernel would fill it."""
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).touch()


def test_limits_of_version_2(tmp_path: Path) -> None:
    folder = tmp_path / "ces/n0/a.0"
    tree(folder, "cpu.max", "memory.max", "memory.swap.max", "pids.max", "cgroup.freeze", "cgroup.procs")
    group = Group({"unified": str(tmp_path)}, "ces/n0/a.0")
    assert group.create(cpu=250, memory=4096, pids=7) == {"cpu", "memory", "pids", "freezer"}
    assert (folder / "cpu.max").read_text() == "25000 100000"
    assert (folder / "memory.max").read_text() == "4096"
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "7"
    for parent in (tmp_path, tmp_path / "ces", tmp_path / "ces/n0"):
        assert (parent / "cgroup.subtree_control").read_text() == "+pids"  # the last of three writes
    assert group.freeze(True)
    assert (folder / "cgroup.freeze").read_text() == "1"
    (folder / "memory.current").write_text("9000\n")
    (folder / "memory.stat").write_text("anon 5000\ninactive_file 1000\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (folder / "memory.events").write_text("oom 3\noom_kill 2\n")
    assert (group.memory(), group.processor_time(), group.memory_kills()) == (8000, 2.5, 2)


def test_limits_of_version_1(tmp_path: Path) -> None:
    roots = {name: str(tmp_path / name) for name in ("cpu", "memory", "freezer")}
    tree(tmp_path / "cpu/ces/a.0", "cpu.cfs_period_us", "cpu.cfs_quota_us")
    tree(tmp_path / "memory/ces/a.0", "memory.limit_in_bytes")
    tree(tmp_path / "freezer/ces/a.0", "freezer.state")
    group = Group(roots, "ces/a.0")
    assert group.create(cpu=1, memory=4096, pids=7) == {"cpu", "memory", "freezer"}
    assert (tmp_path / "cpu/ces/a.0/cpu.cfs_quota_us").read_text() == "1000"  # the kernel takes no less
    assert group.freeze(True)
    assert (tmp_path / "freezer/ces/a.0/freezer.state").read_text() == "FROZEN"
    assert group.processor_time() is None


def test_what_cannot_be_written_is_not_enforced(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    group = Group({"memory": str(tmp_path / "file"), "cpu": str(tmp_path / "cpu")}, "ces/a.0")
    assert group.create(cpu=100, memory=4096, pids=7) == frozenset()
    assert not group.freeze(True)
    assert group.members() == set()


@pytest.mark.parametrize(
    ("version", "file", "lowest", "ordinary"),
    [("cpu", "cpu.idle", "1", "0"), ("cpu", "cpu.shares", "2", "1024"), ("unified", "cpu.weight", "1", "100")],
)
def test_workers_of_a_lent_node_weigh_least_until_they_are_left_with_little(
    tmp_path: Path, version: str, file: str, lowest: str, ordinary: str
) -> None:
    quota = "cpu.max" if version == "unified" else "cpu.cfs_quota_us"
    folders = [tmp_path / "ces-lent", tmp_path / "ces-lent/n0", tmp_path / "ces-lent/n0/a.0"]
    for folder in folders:
        tree(folder, file, quota, "cpu.cfs_period_us")
    group = Group({version: str(tmp_path)}, "ces-lent/n0/a.0")
    group.create(cpu=1000, memory=4096, pids=7, lowest=True)
    assert {(folder / file).read_text() for folder in folders} == {lowest}
    (folders[-1] / quota).write_text("")
    for folder in folders:
        (folder / file).write_text("")
    assert group.limit_cpu(200)
    assert {(folder / file).read_text() for folder in folders} == {""}, "another amount gives it no other weight"
    assert (folders[-1] / quota).read_text().split()[0] == "20000"
    assert group.limit_cpu(100, usual_weight=True)
    assert {(folder / file).read_text() for folder in folders} == {ordinary}
    assert (folders[-1] / quota).read_text().split()[0] == "10000"


def test_the_group_of_a_process_is_where_its_cpu_time_is_counted(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("4:memory:/m\n3:cpu,cpuacct:/ces-lent/n0/a.0\n0::/u\n")
    for roots, name in (({"cpuacct": "/c"}, "ces-lent/n0/a.0"), ({"unified": "/u"}, "u")):
        found = group_of(roots, "7", tmp_path)
        assert found is not None
        assert found.name == name
    assert group_of({"unified": "/u"}, "8", tmp_path) is None


def test_a_limit_that_cannot_be_set_is_told(tmp_path: Path) -> None:
    group = Group({"cpu": str(tmp_path)}, "ces/n0/a.0")
    assert group.limit_cpu(100), "there is nothing to limit"
    (tmp_path / "ces/n0/a.0").mkdir(parents=True)
    assert not group.limit_cpu(100)
