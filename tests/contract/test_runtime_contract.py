"""What every runtime promises, whatever runs the workers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Literal
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
from ces_edge_agent.ports import Refused, Runtime
from ces_edge_agent.runtimes import linux
from ces_edge_agent.runtimes.docker import DockerRuntime
from ces_edge_agent.runtimes.fake import FakeHost, FakeRuntime
from ces_edge_agent.runtimes.process import ProcessRuntime

IMAGE = "python:3.11-slim"
MEMORY = 192 * 2**20
TICK = "import itertools, time\nfor i in itertools.count(): print(i); time.sleep(0.01)"
SPIN = "import time\nstart = time.time()\nwhile time.time() - start < 1: pass\nprint(time.process_time())"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf')\nwhile True: signal.pause()"
POLITE = (
    "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('listening')\n"
    "while True: signal.pause()"
)
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
        disconnect: Literal["stop", "keep"] = "stop",
    ) -> WorkerWanted:
        return WorkerWanted(
            allocation=allocation,
            incarnation=incarnation,
            job="j1",
            job_name="job",
            task="t0",
            rank=0,
            image=IMAGE,
            command=list(command),
            env={"GREETING": "hello"},
            cpu=cpu,
            memory=MEMORY,
            paused=paused,
            disconnect=disconnect,
        )

    def exits(self, code: int) -> tuple[str, ...]:
        return ("sh", "-c", f"exit {code}")

    def prints(self, text: str) -> tuple[str, ...]:
        return ("sh", "-c", f"echo {text}")

    sleeps: tuple[str, ...] = ("sleep", "600")
    stubborn: tuple[str, ...] = ("python", "-uc", STUBBORN)
    hog: tuple[str, ...] = ("python", "-c", HOG)


class FakeBench(Bench):
    real = False
    sleeps = ("sleep",)
    stubborn = ("stubborn",)
    hog = ("hog",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.host = FakeHost()

    def make(self) -> Runtime:
        return FakeRuntime(self.folder, self.host)

    def exits(self, code: int) -> tuple[str, ...]:
        return ("exit", str(code))

    def prints(self, text: str) -> tuple[str, ...]:
        return ("print", text)


class ProcessBench(Bench):
    def make(self) -> Runtime:
        return ProcessRuntime(self.folder, self.node, self.isolates)

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


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    made: Bench = request.param(tmp_path / "state")
    return made


@pytest.fixture
async def runtime(bench: Bench) -> AsyncIterator[Runtime]:
    runtime = bench.make()
    await runtime.open()
    await runtime.ensure_holder(endpoint())
    try:
        yield runtime
    finally:
        await clean(runtime)


async def clean(runtime: Runtime) -> None:
    for key in await runtime.workers():
        await runtime.stop(key, 0)
        await runtime.remove(key)
    for allocation in await runtime.holders():
        await runtime.remove_holder(allocation)
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

    def read() -> str:
        path = runtime.log(allocation)
        return path.read_text() if path.exists() else ""

    async def holds() -> bool:
        return text in read()

    await until(holds)
    return read()


@pytest.mark.parametrize("code", [0, 3])
async def test_a_program_ends_with_its_exit_code(runtime: Runtime, bench: Bench, code: int) -> None:
    await runtime.start(bench.worker(*bench.exits(code)))
    status = await ended(runtime, "a1.0")
    assert (status.allocation, status.incarnation, status.exit_code, status.reason) == ("a1", 0, code, None)


async def test_output_of_all_incarnations_is_in_the_log(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.prints("first")))
    await ended(runtime, "a1.0")
    await runtime.start(bench.worker(*bench.prints("second"), incarnation=1))
    await ended(runtime, "a1.1")
    assert await logged(runtime, "second\n") == "first\nsecond\n"
    await runtime.remove("a1.0")
    assert set(await runtime.workers()) == {"a1.1"}
    assert await logged(runtime, "second\n") == "first\nsecond\n"


async def test_a_worker_starts_at_most_once(runtime: Runtime, bench: Bench) -> None:
    worker = bench.worker(*bench.prints("once"))
    await asyncio.gather(runtime.start(worker), runtime.start(worker))
    await ended(runtime, "a1.0")
    await runtime.start(worker)
    assert (await runtime.workers())["a1.0"].state == "exited"
    again = bench.make()
    await again.open()
    await again.start(worker)
    assert (await again.workers())["a1.0"].state == "exited"
    assert await logged(again, "once\n") == "once\n"
    await again.close()


async def test_stop_lets_a_program_end_or_kills_it(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    assert (await runtime.workers())["a1.0"].state == "running"
    await runtime.stop("a1.0", 20)
    assert (await runtime.workers())["a1.0"].exit_code == 143
    await runtime.stop("a1.0", 20)
    await runtime.start(bench.worker(*bench.stubborn, incarnation=1))
    if bench.real:
        await logged(runtime, "deaf\n")
    await runtime.stop("a1.1", 0.3)
    status = (await runtime.workers())["a1.1"]
    assert (status.state, status.exit_code) == ("exited", 137)
    await runtime.stop("never.0", 1)


async def test_an_unknown_program_is_refused_and_leaves_nothing(runtime: Runtime, bench: Bench) -> None:
    with pytest.raises(Refused, match="no-such-program"):
        await runtime.start(bench.worker("no-such-program"))
    assert await runtime.workers() == {}


async def test_too_much_memory_ends_a_worker_with_the_reason(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.hog))
    status = await ended(runtime, "a1.0")
    assert status.exit_code == 137
    assert "out of memory" in (status.reason or "")


async def test_a_worker_survives_the_runtime_and_is_adopted(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    before = (await runtime.workers())["a1.0"]
    await runtime.close()
    again = bench.make()
    await again.open()
    assert (await again.workers())["a1.0"] == before
    assert set(await again.holders()) == {"a1"}
    await again.stop("a1.0", 20)
    assert (await again.workers())["a1.0"].exit_code == 143
    await again.remove("a1.0")
    assert await again.workers() == {}
    await again.remove_holder("a1")
    assert await again.holders() == {}
    await again.close()


async def test_removing_waits_for_the_end(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    await runtime.remove("a1.0")
    assert (await runtime.workers())["a1.0"].state == "running"
    await runtime.remove("never.0")


async def test_holders_are_kept_until_removed(runtime: Runtime, bench: Bench) -> None:
    first = await runtime.ensure_holder(endpoint())
    assert await runtime.ensure_holder(endpoint()) == first
    second = await runtime.ensure_holder(endpoint("a2"))
    assert await runtime.holders() == {"a1": first, "a2": second}
    if bench.isolates:
        assert first is not None
        assert second is not None
        assert first.stat().st_ino not in (second.stat().st_ino, os.stat("/proc/self/ns/net").st_ino)
    else:
        assert first is None
    await runtime.remove_holder("a2")
    await runtime.remove_holder("a2")
    assert set(await runtime.holders()) == {"a1"}


async def test_many_holders_and_workers_at_once(runtime: Runtime, bench: Bench) -> None:
    names = [f"b{number}" for number in range(4)]
    await asyncio.gather(*(runtime.ensure_holder(endpoint(name)) for name in names))
    assert set(await runtime.holders()) == {"a1", *names}
    await asyncio.gather(*(runtime.start(bench.worker(*bench.prints(name), allocation=name)) for name in names))
    for name in names:
        assert (await ended(runtime, f"{name}.0")).exit_code == 0
        assert await logged(runtime, "\n", name) == f"{name}\n"


async def test_pause_and_resume_are_seen_and_survive(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    await runtime.pause("a1.0")
    await runtime.pause("a1.0")
    assert (await runtime.workers())["a1.0"].state == "paused"
    again = bench.make()
    await again.open()
    assert (await again.workers())["a1.0"].state == "paused"
    await again.resume("a1.0")
    await again.resume("a1.0")
    assert (await again.workers())["a1.0"].state == "running"
    await again.pause("a1.0")
    await again.stop("a1.0", 20)
    assert (await again.workers())["a1.0"].exit_code == 143
    await again.close()


async def test_a_worker_may_start_paused(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps, paused=True))
    assert (await runtime.workers())["a1.0"].state == "paused"


async def test_usage_names_live_workers(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    await runtime.usage()
    (usage,) = await runtime.usage()
    assert usage.allocation == "a1"
    assert 0 <= usage.cpu < 1000
    await runtime.stop("a1.0", 20)
    assert await runtime.usage() == []


# What only real programs can show


def real_only(bench: Bench) -> None:
    if not bench.real:
        pytest.skip("the fake runs no program")


async def test_a_paused_program_stands_still(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    await runtime.start(bench.worker("python", "-uc", TICK))
    await logged(runtime, "5\n")
    await runtime.pause("a1.0")
    lengths = [-1, -2]

    async def still() -> bool:
        await asyncio.sleep(0.2)
        lengths.append(runtime.log("a1").stat().st_size)
        return lengths[-1] == lengths[-2] == lengths[-3]

    await until(still)
    await runtime.resume("a1.0")

    async def moves() -> bool:
        return runtime.log("a1").stat().st_size > lengths[-1]

    await until(moves)


async def test_an_owner_killed_outright_leaves_the_worker_to_the_next(bench: Bench) -> None:
    real_only(bench)
    program = f"""
import asyncio, sys
from pathlib import Path
from ces_common.messages.wanted import Endpoint, WorkerWanted
async def main():
    runtime = {bench.source()}
    await runtime.open()
    await runtime.ensure_holder(Endpoint.model_validate_json(sys.argv[1]))
    await runtime.start(WorkerWanted.model_validate_json(sys.argv[2]))
    print("started", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    worker = bench.worker("python", "-uc", TICK)
    arguments = [endpoint().model_dump_json(), worker.model_dump_json()]
    command = [sys.executable, "-c", program, *arguments]
    owner = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE)
    runtime = bench.make()
    try:
        assert owner.stdout is not None
        assert await asyncio.to_thread(owner.stdout.readline) == b"started\n"
        await logged(runtime, "20\n")
        owner.kill()
        owner.wait()
        await runtime.open()
        seen = (await logged(runtime, "20\n")).splitlines()
        assert (await runtime.workers())["a1.0"].state == "running"
        await runtime.start(worker)
        await logged(runtime, f"\n{len(seen) + 30}\n")
        await runtime.stop("a1.0", 20)
        assert (await runtime.workers())["a1.0"].exit_code == 143
        lines = (await logged(runtime, "20\n")).splitlines()
        assert lines == [str(number) for number in range(len(lines))]
    finally:
        owner.kill()
        owner.communicate()
        await clean(runtime)


def alive(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_without_any_owner_the_end_of_the_lease_ends_workers_but_those_told_to_keep_going(
    runtime: Runtime, bench: Bench
) -> None:
    real_only(bench)
    programs = {"a1": bench.sleeps, "a2": ("python", "-uc", POLITE), "a3": bench.stubborn, "kept": bench.sleeps}
    for name, command in programs.items():
        await runtime.ensure_holder(endpoint(name))
        disconnect: Literal["stop", "keep"] = "keep" if name == "kept" else "stop"
        await runtime.start(bench.worker(*command, allocation=name, disconnect=disconnect))
    await logged(runtime, "listening\n", "a2")
    await logged(runtime, "deaf\n", "a3")
    pids = {key.partition(".")[0]: status.pid for key, status in (await runtime.workers()).items()}
    await runtime.close()

    bench.lease(2)
    assert all(alive(pid) for pid in pids.values())

    async def ended_by_themselves() -> bool:
        return not any(alive(pid) for name, pid in pids.items() if name != "kept")

    await until(ended_by_themselves)
    assert alive(pids["kept"])

    await runtime.open()
    for name, code in (("a1", 143), ("a2", 7), ("a3", 137)):
        status = await ended(runtime, f"{name}.0")
        assert (name, status.exit_code, status.reason, status.lapsed) == (name, code, LEASE_OVER, True)
    assert (await runtime.workers())["kept.0"].state == "running"

    bench.lease(3600)
    await runtime.ensure_holder(endpoint("a1"))
    await runtime.remove("a1.0")
    await runtime.start(bench.worker(*bench.exits(3), allocation="a1", incarnation=1))
    status = await ended(runtime, "a1.1")
    assert (status.exit_code, status.reason, status.lapsed) == (3, None, False)


async def test_a_lease_that_is_renewed_ends_nothing(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    lease_s = 5.0
    await runtime.start(bench.worker("python", "-uc", TICK))
    began = time.monotonic()

    async def outlived() -> bool:
        bench.lease(lease_s)
        return time.monotonic() - began > 1.2 * lease_s

    await until(outlived)
    count = len(runtime.log("a1").read_text().splitlines())
    await logged(runtime, f"\n{count + 10}\n")
    bench.lease(3600)
    assert (await runtime.workers())["a1.0"].state == "running"


async def test_a_program_hears_sigterm(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    await runtime.start(bench.worker("python", "-uc", POLITE))
    await logged(runtime, "listening\n")
    await runtime.stop("a1.0", 20)
    assert (await runtime.workers())["a1.0"].exit_code == 7


async def test_cpu_is_limited(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    if "cpu" not in runtime.enforced:  # type: ignore[attr-defined]
        pytest.skip("no control groups to write to")
    await runtime.start(bench.worker("python", "-c", SPIN, cpu=200))
    assert (await ended(runtime, "a1.0")).exit_code == 0
    assert float(await logged(runtime, "\n")) < 0.5


async def test_environment_and_standard_error(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    await runtime.start(bench.worker("sh", "-c", "echo $GREETING >&2"))
    await ended(runtime, "a1.0")
    assert await logged(runtime, "\n") == "hello\n"


async def test_a_worker_has_no_capabilities(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    await runtime.start(bench.worker("grep", "-E", "CapEff|CapBnd|NoNewPrivs", "/proc/self/status"))
    await ended(runtime, "a1.0")
    found = dict(line.split(":\t") for line in (await logged(runtime, "NoNewPrivs")).splitlines())
    assert int(found["CapEff"], 16) == 0
    assert found["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        assert int(found["CapBnd"], 16) == 0


async def test_a_worker_lives_in_its_holder(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    if not bench.isolates:
        pytest.skip("no network of its own")
    namespace = (await runtime.holders())["a1"]
    assert namespace is not None
    await runtime.start(bench.worker("sh", "-c", "hostname; stat -Lc %i /proc/self/ns/net; cat /etc/hosts"))
    await ended(runtime, "a1.0")
    name, inode, *hosts = (await logged(runtime, "job-t1")).splitlines()
    assert (name, int(inode)) == ("job-t0", namespace.stat().st_ino)
    assert {"10.9.0.2 job-t0", "10.9.1.2 job-t1"} <= {" ".join(line.split()) for line in hosts}
