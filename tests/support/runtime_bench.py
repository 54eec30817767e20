"""Every kind of runtime on a folder of its own, with programs that each of them can run."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import uuid4

import docker
import pytest
from fake_runtime import FakeHost, FakeRuntime

from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_common.messages.reports import WorkerStatus
from ces_edge_agent import linux
from ces_edge_agent.deadline import Deadline, boot_clock, deadline_file, make_deadline_file, write_deadline
from ces_edge_agent.ports import Runtime
from ces_edge_agent.runtimes.docker import DockerRuntime
from ces_edge_agent.runtimes.process import ProcessRuntime

IMAGE = "python:3.11-slim"
MEMORY = 192 * 2**20
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf')\nwhile True: signal.pause()"
LAVISH = """import subprocess, sys
work = "import time\\nwhile time.process_time() < 0.5: pass"
subprocess.run([sys.executable, "-c", work])
print("spent", flush=True)
while True: pass"""
HOG = "held = []\nwhile True: held.append(bytearray(8 << 20))"


class Bench:
    """One kind of runtime on a folder of its own."""

    isolates = False
    real = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = f"rt{uuid4().hex[:8]}"
        make_deadline_file(deadline_file(folder))
        self.lease(3600)

    def lease(self, seconds: float) -> None:
        """As an agent writes it down: its lease ends so many seconds from now."""
        write_deadline(deadline_file(self.folder), Deadline(linux.boot_id(), boot_clock() + seconds))

    def make(self) -> Runtime:
        raise NotImplementedError

    def source(self) -> str:
        """An expression that makes the same runtime in another process."""
        raise NotImplementedError

    def worker(
        self,
        *command: str,
        allocation: str = "a1",
        incarnation: int = 0,
        cpu: int = 1000,
        paused: bool = False,
        disconnect: str = "stop",
        secrets: Sequence[str] = (),
        job: str = "j1",
        checkpoint: bool = False,
    ) -> DesiredWorker:
        return DesiredWorker(
            allocation=allocation,
            incarnation=incarnation,
            job=job,
            job_name="job",
            task="t0",
            rank=0,
            image=IMAGE,
            command=list(command),
            env={"GREETING": "hello"},
            secrets=list(secrets),
            cpu=cpu,
            memory=MEMORY,
            paused=paused,
            disconnect=disconnect,
            checkpoint=checkpoint,
        )

    async def vanish(self, runtime: Runtime, key: str) -> None:
        """Remove a running worker behind the agent's back, with all that tells of it."""
        raise NotImplementedError

    def exits(self, code: int) -> tuple[str, ...]:
        return ("sh", "-c", f"exit {code}")

    def prints(self, text: str) -> tuple[str, ...]:
        return ("sh", "-c", f"echo {text}")

    def reveals(self, secret: str) -> tuple[str, ...]:
        return ("sh", "-c", f"cat $CES_SECRETS_DIR/{secret}; echo")

    sleeps: tuple[str, ...] = ("sleep", "600")
    spins: tuple[str, ...] = ("python", "-c", "while True: pass")
    stubborn: tuple[str, ...] = ("python", "-uc", STUBBORN)
    hog: tuple[str, ...] = ("python", "-c", HOG)
    lavish: tuple[str, ...] = ("python", "-c", LAVISH)
    lavish_s = 0.5
    """Of CPU time, that a process has used which has ended when it says ``spent``."""


class FakeBench(Bench):
    real = False
    sleeps = ("sleep",)
    spins = ("spin",)
    stubborn = ("stubborn",)
    hog = ("hog",)
    lavish = ("spin",)
    lavish_s = 0.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.host = FakeHost()

    def make(self) -> Runtime:
        return FakeRuntime(self.folder, self.host)

    async def vanish(self, runtime: Runtime, key: str) -> None:
        del self.host.workers[key]

    def exits(self, code: int) -> tuple[str, ...]:
        return ("exit", str(code))

    def prints(self, text: str) -> tuple[str, ...]:
        return ("print", text)

    def reveals(self, secret: str) -> tuple[str, ...]:
        return ("reveal", secret)


class ProcessBench(Bench):
    def make(self) -> Runtime:
        return ProcessRuntime(self.folder, self.node, self.isolates)

    async def vanish(self, runtime: Runtime, key: str) -> None:
        folder = self.folder / "workers" / key
        os.kill(int((folder / "claim").read_text()), signal.SIGKILL)  # the shim, and its worker with it
        await ended(runtime, key)
        shutil.rmtree(folder)

    def source(self) -> str:
        module = "ces_edge_agent.runtimes.process"
        return f"__import__({module!r}, fromlist='_').ProcessRuntime(Path({str(self.folder)!r}), {self.node!r}, \
{self.isolates})"


class IsolatedBench(ProcessBench):
    isolates = True


class DockerBench(Bench):
    isolates = True

    def make(self) -> Runtime:
        return DockerRuntime(self.folder, self.node, IMAGE, ["python:*"])

    async def vanish(self, runtime: Runtime, key: str) -> None:
        docker.from_env().api.remove_container(f"ces.ces.{self.node}.{key}", force=True, v=True)

    def source(self) -> str:
        module = "ces_edge_agent.runtimes.docker"
        return f"__import__({module!r}, fromlist='_').DockerRuntime(Path({str(self.folder)!r}), {self.node!r}, \
{IMAGE!r}, ['python:*'])"


KINDS = [
    pytest.param(FakeBench, id="fake"),
    pytest.param(ProcessBench, id="process", marks=pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")),
    pytest.param(IsolatedBench, id="isolated", marks=pytest.mark.needs("root")),
    pytest.param(DockerBench, id="docker", marks=pytest.mark.needs("engine")),
]


async def clean(runtime: Runtime) -> None:
    for key in await runtime.workers():
        await runtime.stop(key, 0)
        await runtime.remove(key)
    for allocation in await runtime.sandboxes():
        await runtime.remove_sandbox(allocation)
    await runtime.keep_checkpoints(())
    await runtime.close()


def endpoint(allocation: str = "a1") -> Endpoint:
    hosts = {"job-t0": "10.9.0.2", "job-t1": "10.9.1.2"}
    return Endpoint(allocation=allocation, job="j1.1", address="10.9.0.2", hostname="job-t0", hosts=hosts)


async def until(condition: Callable[[], Awaitable[object]], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not await condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.02)


async def ended(runtime: Runtime, key: str) -> WorkerStatus:
    async def has_ended() -> bool:
        return (await runtime.workers())[key].state == "exited"

    await until(has_ended)
    return (await runtime.workers())[key]


async def logged(runtime: Runtime, text: str, allocation: str = "a1") -> str:
    """The allocation's log, once it holds ``text``."""

    async def holds() -> bool:
        return text in await log_text(runtime, allocation)

    await until(holds)
    return await log_text(runtime, allocation)


async def log_text(runtime: Runtime, allocation: str = "a1") -> str:
    """The allocation's log; empty where there is none."""
    chunk = await runtime.logs.read(allocation, 0, 2**24)
    return "" if chunk is None else chunk.data.decode()
