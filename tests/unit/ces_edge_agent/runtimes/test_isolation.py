"""Processes with a network of their own: they live in their sandbox, and can change nothing outside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from process_node import ENDPOINT, Node, node_in, worker

from ces_edge_agent import linux
from ces_edge_agent.ports import RuntimeUnavailable

pytestmark = pytest.mark.needs("root")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with node_in(tmp_path / "state") as node:
        yield node


async def test_a_worker_waits_for_its_sandbox(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    with pytest.raises(RuntimeUnavailable, match="no sandbox"):
        await runtime.start(worker("true"))
    assert await runtime.workers() == {}


async def test_a_broken_sandbox_is_told_and_can_be_mended(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    namespace = await runtime.ensure_sandbox(ENDPOINT)
    assert namespace is not None
    linux.unmount(namespace)
    with pytest.raises(RuntimeUnavailable, match="setns"):
        await runtime.start(worker("true"))
    assert await runtime.workers() == {}
    assert not node.groups()
    assert await runtime.ensure_sandbox(ENDPOINT) == namespace
    await runtime.start(worker("true"))
    assert (await node.ended()).exit_code == 0


async def test_a_sandbox_lost_with_a_reboot_is_forgotten(node: Node) -> None:
    runtime = await node.restart(isolate=True)
    namespace = await runtime.ensure_sandbox(ENDPOINT)
    assert namespace is not None
    linux.unmount(namespace)
    os.unlink(namespace)
    assert await (await node.restart(isolate=True)).sandboxes() == {}


INTRUDER = """
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
    """Outside /tmp, which an isolated worker may not show anyway."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="ces-rt-") as folder:
        for name in ("folder/below", "folder/token", "token"):
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("secret")
        Path(folder).chmod(0o755)  # so that only hiding it keeps a worker away
        yield Path(folder)


async def test_an_isolated_worker_can_change_nothing_outside(node: Node, secrets: Path) -> None:
    folder, file = secrets / "folder", secrets / "token"
    runtime = await node.restart(isolate=True, hide=(folder, file))
    await runtime.ensure_sandbox(ENDPOINT)
    program = f"SECRETS = {str(folder)!r}\nSECRET = {str(file)!r}\n{INTRUDER}"
    await runtime.start(worker("python", "-c", program))
    assert (await node.ended()).exit_code == 0, node.log()
    assert node.log().splitlines() == [
        "done",
        "Read-only file system",
        "done",
        "Read-only file system",
        "Operation not permitted False",  # the first process of its namespace is another user's
        "[] True []",
        "['lo'] False",
        "Operation not permitted",
        "Connection refused",  # and not "Network is unreachable": its loopback is up
    ]
