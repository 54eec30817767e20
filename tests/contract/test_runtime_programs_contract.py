"""What every runtime promises that only real programs can show."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runtime_bench import Bench, clean, ended, endpoint, log_text, logged, until

from ces_edge_agent.deadline import LEASE_OVER
from ces_edge_agent.ports import Runtime

TICK = "import itertools, time\nfor i in itertools.count(): print(i); time.sleep(0.01)"
SPIN = "import time\nstart = time.time()\nwhile time.time() - start < 1: pass\nprint(time.process_time())"
POLITE = (
    "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('listening')\n"
    "while True: signal.pause()"
)


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
        lengths.append(len(await log_text(runtime)))
        return lengths[-1] == lengths[-2] == lengths[-3]

    await until(still)
    await runtime.resume("a1.0")

    async def moves() -> bool:
        return len(await log_text(runtime)) > lengths[-1]

    await until(moves)


async def test_an_owner_killed_outright_leaves_the_worker_to_the_next(bench: Bench) -> None:
    real_only(bench)
    program = f"""
import asyncio, sys
from pathlib import Path
from ces_common.messages.desired import Endpoint, DesiredWorker
async def main():
    runtime = {bench.source()}
    await runtime.open()
    await runtime.ensure_sandbox(Endpoint.model_validate_json(sys.argv[1]))
    await runtime.start(DesiredWorker.model_validate_json(sys.argv[2]))
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
        output = owner.stdout
        assert output is not None
        said = await asyncio.to_thread(lambda: next(line for line in output if b"[warning" not in line))
        assert said == b"started\n"
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
    programs["late"] = bench.sleeps
    told = {"kept": "keep", "late": "5m"}
    for name, command in programs.items():
        await runtime.ensure_sandbox(endpoint(name))
        await runtime.start(bench.worker(*command, allocation=name, disconnect=told.get(name, "stop")))
    await logged(runtime, "listening\n", "a2")
    await logged(runtime, "deaf\n", "a3")
    pids = {key.partition(".")[0]: status.pid for key, status in (await runtime.workers()).items()}
    await runtime.close()

    bench.lease(2)
    assert all(alive(pid) for pid in pids.values())

    async def ended_by_themselves() -> bool:
        return not any(alive(pid) for name, pid in pids.items() if name not in told)

    await until(ended_by_themselves)
    assert all(alive(pids[name]) for name in told)
    bench.lease(-295)  # which a machine that has just started has been up for

    async def ended_later() -> bool:
        return not alive(pids["late"])

    await until(ended_later)
    assert alive(pids["kept"])

    await runtime.open()
    for name, code in (("a1", 143), ("a2", 7), ("a3", 137), ("late", 143)):
        status = await ended(runtime, f"{name}.0")
        assert (name, status.exit_code, status.reason, status.lapsed) == (name, code, LEASE_OVER, True)
    assert (await runtime.workers())["kept.0"].state == "running"

    bench.lease(3600)
    await runtime.ensure_sandbox(endpoint("a1"))
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
    count = len((await log_text(runtime)).splitlines())
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
    if "cpu" not in runtime.enforced:
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


async def test_a_worker_lives_in_its_sandbox(runtime: Runtime, bench: Bench) -> None:
    real_only(bench)
    if not bench.isolates:
        pytest.skip("no network of its own")
    namespace = (await runtime.sandboxes())["a1"]
    assert namespace is not None
    await runtime.start(bench.worker("sh", "-c", "hostname; stat -Lc %i /proc/self/ns/net; cat /etc/hosts"))
    await ended(runtime, "a1.0")
    name, inode, *hosts = (await logged(runtime, "job-t1")).splitlines()
    assert (name, int(inode)) == ("job-t0", os.stat(namespace).st_ino)
    assert {"10.9.0.2 job-t0", "10.9.1.2 job-t1"} <= {" ".join(line.split()) for line in hosts}
