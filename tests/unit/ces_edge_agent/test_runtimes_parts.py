from __future__ import annotations

import os
from pathlib import Path

import pytest

from ces_common.messages.wanted import Endpoint
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes import record
from ces_edge_agent.runtimes.cgroups import Group, hierarchies
from ces_edge_agent.runtimes.holders import Holders, check_name, hosts_file
from ces_edge_agent.runtimes.logfile import LogFile
from ces_edge_agent.runtimes.process import resolve
from ces_edge_agent.runtimes.sandbox import private_tmp

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


def test_only_the_first_claim_counts_and_it_shows_who_lives(tmp_path: Path) -> None:
    assert record.claimant(tmp_path) is None
    first = record.claim(tmp_path)
    assert first is not None
    assert record.claim(tmp_path) is None
    assert record.claimant(tmp_path) == os.getpid()
    os.close(first)
    assert record.claimant(tmp_path) is None
    assert record.claim(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


def test_an_exit_record_that_is_not_whole_is_none(tmp_path: Path) -> None:
    assert record.read_exit(tmp_path) is None
    (tmp_path / "exit.json").write_text('{"code": 3, "rea')
    assert record.read_exit(tmp_path) is None
    record.write_exit(tmp_path, record.Exit(3, "because", 1.0, 2.0))
    assert record.read_exit(tmp_path) == record.Exit(3, "because", 1.0, 2.0)


def test_a_log_is_bounded_with_one_notice(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = LogFile(str(path), limit=10)
    log.write(b"12345")
    log.write(b"678901234")
    log.write(b"more")
    log.close()
    text = path.read_text()
    assert text.startswith("1234567890\n[ces] the log has reached its limit of 10 bytes")
    again = LogFile(str(path), limit=10)
    again.write(b"next")
    again.close()
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "-x", "a" * 200, "a\n"])
def test_names_that_would_leave_their_folder_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="cannot name an allocation"):
        check_name(name)


def endpoint(**hosts: str) -> Endpoint:
    return Endpoint(allocation="a1", job="j.1", address="10.9.0.2", hostname="t0", hosts=hosts)


def test_hosts_file_has_localhost_and_every_peer() -> None:
    assert hosts_file(endpoint(t1="10.9.1.2", t0="10.9.0.2")).splitlines() == [
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost",
        "10.9.0.2\tt0",
        "10.9.1.2\tt1",
    ]


@pytest.mark.parametrize("hosts", [{"t1": "10.9.1.2\n6.6.6.6 bank"}, {"t1 bank": "10.9.1.2"}, {"t1": "nowhere"}])
def test_hosts_that_are_none_are_refused(hosts: dict[str, str]) -> None:
    with pytest.raises(Refused):
        hosts_file(endpoint(**hosts))


def test_a_holder_brings_its_hosts_file_up_to_date_in_place(tmp_path: Path) -> None:
    holders = Holders(tmp_path, "n0", isolate=False)
    assert holders.ensure(endpoint(t0="10.9.0.2")) is None
    inode = holders.hosts("a1").stat().st_ino
    holders.ensure(endpoint(t0="10.9.0.2", t1="10.9.1.2"))
    assert "t1" in holders.hosts("a1").read_text()
    assert holders.hosts("a1").stat().st_ino == inode  # running workers have it mounted
    assert Holders(tmp_path, "n0", isolate=False).all() == {"a1": None}


def test_programs_are_looked_up_as_the_worker_would(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "train"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    with pytest.raises(Refused, match=r"train: .*"):
        resolve(["train"], str(script.parent), tmp_path)
    script.chmod(0o755)
    assert resolve(["train", "-x"], str(script.parent), tmp_path) == (str(script), ["train", "-x"])
    assert resolve(["bin/train"], "", tmp_path)[0] == str(script)
    with pytest.raises(Refused, match="names no command"):
        resolve([], "/bin", tmp_path)
    with pytest.raises(Refused, match="cannot be executed"):
        resolve([str(tmp_path)], "/bin", tmp_path)


def test_tmp_is_shared_only_where_the_program_lies_there() -> None:
    assert private_tmp("/usr/bin/python3", ["python3", "-m", "train"])
    assert not private_tmp("/usr/bin/python3", ["python3", "/tmp/train.py"])
    assert not private_tmp("/tmp/venv/bin/python3", ["python3"])
