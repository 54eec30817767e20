"""What is particular to the process runtime: its records, its shim, limits without control groups, its logs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_node import ENDPOINT, ORPHAN, Node, node_in, worker
from waiting import until

from ces_common import cgroups
from ces_edge_agent import linux
from ces_edge_agent.ports import RuntimeUnavailable
from ces_edge_agent.runtimes import log_file, process, record
from ces_edge_agent.runtimes.process import ProcessRuntime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
root = pytest.mark.needs("root")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with node_in(tmp_path / "state") as node:
        yield node


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
sys.path += sys.argv[2:]
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
    await runtime.ensure_sandbox(ENDPOINT)
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
    monkeypatch.setattr(cgroups, "hierarchies", dict)
    runtime = await node.restart()
    assert runtime.enforced == frozenset()
    program = "import time\nheld = bytearray(96 << 20)\nheld[::4096] = b'x' * len(held[::4096])\ntime.sleep(600)"
    await runtime.start(worker("python", "-c", program, memory=64 * 2**20))
    status = await node.ended()
    assert status.exit_code == 137
    assert "out of memory" in (status.reason or "")


async def test_without_groups_pause_and_usage_still_work(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", dict)
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


async def test_a_full_log_keeps_its_end_and_the_program_goes_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LIMIT", 1000)
    await node.runtime.start(worker("sh", "-c", "yes | head -c 500000; echo the error; exit 5"))
    assert (await node.ended()).exit_code == 5
    assert node.log() == "y\n" * 250
    tail = await node.runtime.logs.read("a1", 500, 10**6)
    assert tail is not None
    assert tail.data.endswith(b"y\nthe error\n")
    assert tail.offset + len(tail.data) == 500_000 + len("the error\n")
    assert len(node.log()) + len(tail.data) <= 1000


async def test_output_before_the_end_is_all_in_the_log(node: Node) -> None:
    await node.runtime.start(worker("sh", "-c", "yes | head -c 3000000"))
    await node.ended()
    assert len(node.log()) == 3_000_000


async def test_a_state_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeUnavailable):
        await ProcessRuntime(tmp_path / "file" / "state", "n0", isolate=False).open()


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
