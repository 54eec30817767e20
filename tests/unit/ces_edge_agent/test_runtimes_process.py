"""What is particular to the process runtime: its records, its shim, its sandbox."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ces_common.messages.reports import WorkerStatus
from ces_common.messages.wanted import Endpoint, WorkerWanted
from ces_edge_agent.deadline import (
    LEASE_OVER,
    Deadline,
    boot_clock,
    deadline_file,
    make_deadline_file,
    write_deadline,
)
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes import cgroups, linux, logfile, process, record
from ces_edge_agent.runtimes.process import ProcessRuntime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
root = pytest.mark.needs("root")

ORPHAN = "setsid sleep 613 & echo started; exec sleep 612"


class Node:
    """A process runtime that can be made anew, as after the agent's end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"rt{uuid4().hex[:8]}"
        self.runtime = ProcessRuntime(folder, self.name, isolate=False)
        self.deadline = deadline_file(folder)
        make_deadline_file(self.deadline)
        self.lease(3600)

    def lease(self, seconds: float, boot: str | None = None) -> None:
        """As an agent writes it down, whose lease ends so many seconds from now."""
        write_deadline(self.deadline, Deadline(boot or linux.boot_id(), boot_clock() + seconds))

    async def restart(self, isolate: bool = False, hide: tuple[Path, ...] = ()) -> ProcessRuntime:
        await self.runtime.close()
        self.runtime = ProcessRuntime(self.folder, self.name, isolate, hide=hide)
        await self.runtime.open()
        return self.runtime

    def directory(self, key: str = "a1.0") -> Path:
        return self.folder / "workers" / key

    async def status(self, key: str = "a1.0") -> WorkerStatus:
        return (await self.runtime.workers())[key]

    async def ended(self, key: str = "a1.0") -> WorkerStatus:
        async with asyncio.timeout(60):
            while (status := await self.status(key)).state != "exited":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return status

    def groups(self) -> list[Path]:
        return list(Path("/sys/fs/cgroup").glob(f"*/ces/*{self.name}*"))

    def log(self) -> str:
        path = self.runtime.log("a1")
        return path.read_text() if path.exists() else ""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path / "state")
    await node.runtime.open()
    try:
        yield node
    finally:
        for key in await node.runtime.workers():
            await node.runtime.stop(key, 0)
            await node.runtime.remove(key)
        for allocation in await node.runtime.holders():
            await node.runtime.remove_holder(allocation)


def worker(*command: str, incarnation: int = 0, memory: int = 256 * 2**20) -> WorkerWanted:
    return WorkerWanted(
        allocation="a1",
        incarnation=incarnation,
        job="j1",
        job_name="job",
        task="t0",
        rank=0,
        command=list(command),
        cpu=1000,
        memory=memory,
    )


async def until(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


ENDPOINT = Endpoint(allocation="a1", job="j1.1", address="10.9.0.2", hostname="t0", hosts={"t0": "10.9.0.2"})


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=root)])
async def test_nothing_outlives_the_program(node: Node, isolate: bool) -> None:
    runtime = await node.restart(isolate)
    await runtime.ensure_holder(ENDPOINT)
    await runtime.start(worker("sh", "-c", ORPHAN))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    assert len(below) >= 2
    await runtime.stop("a1.0", 20)
    assert not {shim, *below} & set(linux.descendants(1))
    assert (await node.status()).exit_code == 143
    assert not node.groups()


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=root)])
@pytest.mark.parametrize("paused", [False, True])
async def test_a_killed_shim_takes_the_worker_with_it(node: Node, isolate: bool, paused: bool) -> None:
    runtime = await node.restart(isolate)
    await runtime.ensure_holder(ENDPOINT)
    await runtime.start(worker("sh", "-c", ORPHAN))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    if paused:
        await runtime.pause("a1.0")
    os.kill(shim, signal.SIGKILL)
    await until(lambda: record.claimant(node.directory()) is None)
    status = await node.ended()
    assert (status.exit_code, status.reason) == (record.UNKNOWN_EXIT, "shim vanished")
    await until(lambda: not set(below) & set(linux.descendants(1)))
    assert not node.groups()


POLITE = """
import signal, sys
def end(*_):
    print("told", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("started", flush=True)
while True: signal.pause()
"""


@pytest.mark.parametrize("state", ["running", "paused"])
@pytest.mark.parametrize(("command", "code"), [(("python", "-c", POLITE), 0), (("sh", "-c", ORPHAN), 143)])
async def test_a_lease_that_ends_ends_the_worker_with_all_it_left_behind(
    node: Node, state: str, command: tuple[str, ...], code: int
) -> None:
    await node.runtime.start(worker(*command))
    shim = record.claimant(node.directory())
    assert shim is not None
    await until(lambda: "started" in node.log())
    below = linux.descendants(shim)
    if state == "paused":
        await node.runtime.pause("a1.0")
    node.lease(0)
    status = await node.ended()
    assert (status.exit_code, status.reason, status.lapsed) == (code, LEASE_OVER, True)
    await until(lambda: not {shim, *below} & set(linux.descendants(1)))
    assert node.log().count("told") == (1 if code == 0 else 0)


async def test_a_worker_that_ended_before_its_lease_did_has_its_own_exit(node: Node) -> None:
    await node.runtime.start(worker("sh", "-c", "exit 3"))
    status = await node.ended()
    node.lease(0)
    assert (status.exit_code, status.reason, status.lapsed) == (3, None, False)
    assert await node.status() == status


async def test_an_agent_that_stops_a_worker_after_its_lease_gives_it_no_more_time(node: Node) -> None:
    await node.runtime.start(worker("python", "-c", POLITE.replace("sys.exit(0)", "pass")))
    await until(lambda: "started" in node.log())
    node.lease(0)
    await until(lambda: "told" in node.log())
    began = boot_clock()
    await node.runtime.stop("a1.0", 600)
    assert boot_clock() - began < 60
    status = await node.status()
    assert (status.exit_code, status.lapsed) == (137, True)
    assert node.log().count("told") == 1


async def test_a_lease_of_another_boot_is_none(node: Node) -> None:
    await node.runtime.start(worker("sleep", "616"))
    node.lease(3600, boot="another")
    assert (await node.ended()).lapsed


async def test_a_record_whose_shim_never_came_is_as_if_it_had_never_been(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As if the agent were killed right there."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    asked = worker("sh", "-c", "echo once")
    with monkeypatch.context() as patch:
        patch.setattr(process.subprocess, "run", killed)
        with pytest.raises(Killed):
            await node.runtime.start(asked)
    assert (await node.status()).state == "starting"
    late = node.directory() / "worker.json"
    assert late.exists()
    runtime = await node.restart()
    assert await runtime.workers() == {}
    with pytest.raises(FileNotFoundError):
        record.claim(node.directory())  # a shim that comes late finds nothing to start
    await runtime.start(asked)
    assert (await node.ended()).exit_code == 0
    await node.restart()
    await node.runtime.start(asked)
    assert (await node.status()).state == "exited"
    assert node.log() == "once\n"


# What a shim does instead of writing down that its program runs.
DIES = "os.kill(os.getpid(), 9)"
FAILS = "record.write = write\n    raise OSError(28, 'No space left on device')"
FAILS_FOR_GOOD = "raise OSError(28, 'No space left on device')"


def shim_that(does: str) -> str:
    return f"""
import os, sys
sys.path.append(sys.argv[2])
from ces_edge_agent.runtimes import record, shim
write = record.write
def instead(*_):
    {does}
record.write = instead
shim.main(sys.argv[1])
"""


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=root)])
@pytest.mark.parametrize(
    ("does", "code", "reason"),
    [
        (DIES, record.UNKNOWN_EXIT, "shim vanished"),
        (FAILS, 137, "its start could not be recorded: [Errno 28] No space left on device"),
        (FAILS_FOR_GOOD, record.UNKNOWN_EXIT, "shim vanished: OSError: [Errno 28] No space left on device"),
    ],
    ids=["dies", "fails", "fails for good"],
)
async def test_a_shim_that_ends_without_an_answer_leaves_nothing_and_is_not_started_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, isolate: bool, does: str, code: int, reason: str
) -> None:
    runtime = await node.restart(isolate)
    await runtime.ensure_holder(ENDPOINT)
    monkeypatch.setattr(process, "_SHIM", shim_that(does))
    await runtime.start(worker("sh", "-c", ORPHAN))
    status = await node.ended()
    assert (status.exit_code, status.reason) == (code, reason)
    mark = runtime._mark("a1.0")
    await until(lambda: linux.carrying(mark) == [] and not node.groups())
    monkeypatch.undo()
    await runtime.start(worker("sh", "-c", ORPHAN))
    assert (await node.status()).state == "exited"
    assert linux.carrying(mark) == []


async def test_a_shim_that_cannot_begin_is_told_and_may_be_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_SHIM", "raise SystemExit('no such module')")
    with pytest.raises(RuntimeUnavailable, match="before it began: no such module"):
        await node.runtime.start(worker("true"))
    assert await node.runtime.workers() == {}
    monkeypatch.undo()
    await node.runtime.start(worker("true"))
    assert (await node.ended()).exit_code == 0


async def test_records_that_cannot_be_read_or_written_do_not_end_the_agent(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await node.runtime.start(worker("true"))
    await node.ended()
    for name in ("worker.json", "exit.json"):
        (node.directory() / name).write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(record, "write_exit", full)
        assert (await node.status()).reason == "shim vanished"
    assert (node.directory() / "exit.json").read_text() == ""
    assert (await node.status()).reason == "shim vanished"
    assert record.read_exit(node.directory()) is not None


async def test_after_a_reboot_workers_have_ended(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.runtime.start(worker("sh", "-c", "true"))
    await node.ended()
    (node.directory() / "exit.json").unlink()
    monkeypatch.setattr(linux, "boot_id", lambda: "another boot")
    await node.restart()
    assert (await node.status()).reason == "node rebooted"


async def test_memory_is_watched_where_no_group_limits_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "hierarchies", dict)
    runtime = await node.restart()
    assert runtime.enforced == frozenset()
    program = "import time\nheld = bytearray(96 << 20)\nheld[::4096] = b'x' * len(held[::4096])\ntime.sleep(600)"
    await runtime.start(worker("python", "-c", program, memory=64 * 2**20))
    status = await node.ended()
    assert status.exit_code == 137
    assert "out of memory" in (status.reason or "")


async def test_without_groups_pause_and_usage_still_work(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "hierarchies", dict)
    runtime = await node.restart()
    await runtime.start(worker("python", "-c", "while True: pass"))
    status = await node.status()

    def state() -> str:
        return Path(f"/proc/{status.pid}/stat").read_text().rpartition(")")[2].split()[0]

    (usage,) = await runtime.usage()
    assert usage.memory > 2**20
    await runtime.pause("a1.0")
    await until(lambda: state() == "T")
    await runtime.resume("a1.0")
    await until(lambda: state() != "T")


async def test_a_full_log_stops_growing_and_the_program_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "LIMIT", 1000)
    await node.runtime.start(worker("sh", "-c", "yes | head -c 500000; exit 5"))
    assert (await node.ended()).exit_code == 5
    assert node.log().startswith("y\n" * 500)
    assert len(node.log()) < 1200


async def test_output_before_the_end_is_all_in_the_log(node: Node) -> None:
    await node.runtime.start(worker("sh", "-c", "yes | head -c 3000000"))
    await node.ended()
    assert len(node.log()) == 3_000_000


async def test_a_state_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeUnavailable):
        await ProcessRuntime(tmp_path / "file" / "state", "n0", isolate=False).open()


@root
async def test_a_worker_waits_for_its_holder(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    with pytest.raises(RuntimeUnavailable, match="no holder"):
        await runtime.start(worker("true"))
    assert await runtime.workers() == {}


@root
async def test_a_broken_holder_is_told_and_can_be_mended(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    namespace = await runtime.ensure_holder(ENDPOINT)
    assert namespace is not None
    linux.unmount(str(namespace))
    with pytest.raises(RuntimeUnavailable, match="setns"):
        await runtime.start(worker("true"))
    assert await runtime.workers() == {}
    assert not node.groups()
    assert await runtime.ensure_holder(ENDPOINT) == namespace
    await runtime.start(worker("true"))
    assert (await node.ended()).exit_code == 0


@root
async def test_a_holder_lost_with_a_reboot_is_forgotten(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    namespace = await runtime.ensure_holder(ENDPOINT)
    assert namespace is not None
    linux.unmount(str(namespace))
    namespace.unlink()
    assert await (await node.restart(isolate=True)).holders() == {}


SANDBOX = """
import os, socket
def tries(what):
    try:
        what()
    except OSError as error:
        return error.strerror
    return "done"
print(tries(lambda: open("mine", "w")))
print(tries(lambda: open("/etc/ces-test", "w")))
print(tries(lambda: open("/dev/shm/x", "w")))
print(tries(lambda: open("/proc/sys/vm/swappiness", "w")))
print(tries(lambda: os.kill(1, 9)), os.path.exists("/proc/1/ns/net"))
print(sorted(os.listdir(SECRETS)), open(SECRET).read() == "", sorted(os.listdir("/run")))
print(sorted(os.listdir("/sys/class/net")), os.path.exists("/sys/fs/cgroup/memory"))
print(tries(lambda: os.mknod("/dev/shm/sda", 0o600 | 0o060000, os.makedev(8, 0))))
print(tries(lambda: socket.create_connection(("127.0.0.1", 9))))
"""


@pytest.fixture
def secrets() -> Iterator[Path]:
    """Outside /tmp, which a sandbox may not show anyway."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="ces-rt-") as folder:
        for name in ("folder/below", "folder/token", "token"):
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("secret")
        yield Path(folder)


@root
async def test_a_sandboxed_worker_can_change_nothing_outside(node: Node, secrets: Path) -> None:
    folder, file = secrets / "folder", secrets / "token"
    runtime = await node.restart(isolate=True, hide=(folder, file))
    await runtime.ensure_holder(ENDPOINT)
    program = f"SECRETS = {str(folder)!r}\nSECRET = {str(file)!r}\n{SANDBOX}"
    await runtime.start(worker("python", "-c", program))
    assert (await node.ended()).exit_code == 0, node.log()
    assert node.log().splitlines() == [
        "done",
        "Read-only file system",
        "done",
        "Read-only file system",
        "done False",  # the first process of its namespace takes no signals from inside, nor can it be looked into
        "[] True []",
        "['lo'] False",
        "Operation not permitted",
        "Connection refused",  # and not "Network is unreachable": its loopback is up
    ]


@root
async def test_groups_are_made_where_the_kernel_has_them(node: Node) -> None:
    if not cgroups.hierarchies():
        pytest.skip("no control groups are mounted")
    runtime = await node.restart()
    if "memory" not in runtime.enforced:
        pytest.skip("control groups cannot be written to")
    await runtime.start(worker("sleep", "611"))
    status = await node.status()
    group = cgroups.Group(cgroups.hierarchies(), record.WorkerRecord.load(node.directory()).cgroup)
    assert group.members() == {status.pid}
    await runtime.stop("a1.0", 20)
    assert group.members() == set()
    assert group.processor_time() is None
