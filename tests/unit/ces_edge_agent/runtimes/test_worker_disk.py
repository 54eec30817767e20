"""A worker that fills the disk is ended, however it tries."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_node import ENDPOINT, Node, node_in, worker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
DISK = 8 * 2**20
ONE_FILE = "exec dd if=/dev/zero of=big bs=1M count=64 2>/dev/null"
IN_PYTHON = """
import os
name = f"/dev/shm/{os.getpid()}"
try:
    with open(name, "wb") as file:
        while True: file.write(bytes(1 << 20))
except OSError as error:
    print(error.strerror, flush=True)
finally:
    os.unlink(name)
"""
MANY_FILES = "i=0; while true; do i=$((i+1)); head -c 65536 /dev/zero >f$i; done"
EMPTY_FILES = "import os\nfor i in range(10**7): os.close(os.open(f'e{i}', os.O_CREAT))"
DELETED = """
import os, time
held = []
for i in range(4):
    held.append(open("gone", "wb"))
    os.unlink("gone")
    held[-1].write(bytes(4 << 20))
    held[-1].flush()
while True: time.sleep(1)
"""


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.needs("root"))], ids=["alone", "networked"])
async def node(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Node]:
    async with node_in(tmp_path / "state") as node:
        runtime = await node.restart(request.param, disk=DISK)
        await runtime.ensure_sandbox(ENDPOINT)
        yield node


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("sh", "-c", ONE_FILE), f"disk limit exceeded: a file of more than {DISK} bytes"),
        (("sh", "-c", MANY_FILES), f"disk limit exceeded: more than {DISK} bytes in its folder"),
        (("python", "-c", EMPTY_FILES), f"disk limit exceeded: more than {DISK} bytes in its folder"),
        (("python", "-c", DELETED), f"disk limit exceeded: more than {DISK} bytes in its folder"),
    ],
    ids=["one large file", "many small files", "empty files", "deleted files"],
)
async def test_who_keeps_too_much_is_ended_and_told_why(node: Node, command: tuple[str, ...], reason: str) -> None:
    await node.runtime.start(worker(*command))
    status = await node.ended()
    assert status.exit_code not in (None, 0)
    assert status.reason == reason
    largest = max(each.stat().st_size for each in (node.folder / "work" / "a1").iterdir()) if command[0] == "sh" else 0
    assert largest <= DISK


async def test_a_program_that_can_be_told_is_told_that_a_file_is_too_large(node: Node) -> None:
    await node.runtime.start(worker("python", "-c", IN_PYTHON))
    status = await node.ended()
    assert (status.exit_code, status.reason) == (0, None)
    assert node.log() == "File too large\n"
