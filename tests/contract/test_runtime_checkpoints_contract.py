"""What every runtime promises of checkpoints: what a job's worker wrote is there for its next one, and for no other
job's, until it is no longer kept."""

from __future__ import annotations

import os

import pytest
from runtime_bench import Bench, ProcessBench, clean, ended, endpoint, logged

from ces_edge_agent.ports import Runtime
from ces_edge_agent.runtimes.process import ProcessRuntime

WRITES = (
    "cat $CES_CHECKPOINT/* 2>/dev/null; echo {0} >$CES_CHECKPOINT/new && mv $CES_CHECKPOINT/new $CES_CHECKPOINT/{0}"
)


async def write(runtime: Runtime, bench: Bench, allocation: str, job: str, text: str) -> str:
    """A worker of the job reads what is there, and writes the text; returns what it has read."""
    await runtime.ensure_sandbox(endpoint(allocation))
    program = ("sh", "-c", WRITES.format(text)) if bench.real else ("checkpoint", text)
    worker = bench.worker(*program, allocation=allocation, job=job, checkpoint=True)
    await runtime.prepare(worker)
    await runtime.start(worker)
    status = await ended(runtime, worker.key)
    assert (status.exit_code, status.reason) == (0, None)
    await runtime.remove(worker.key)
    await runtime.remove_sandbox(allocation)
    chunk = await runtime.logs.read(allocation, 0, 10_000)
    return "" if chunk is None else chunk.data.decode().strip()


async def test_checkpoints_outlive_allocations_and_are_their_jobs_alone(runtime: Runtime, bench: Bench) -> None:
    assert await write(runtime, bench, "c1", "01JOB", "first") == ""
    assert await write(runtime, bench, "c2", "01OTHER", "foreign") == ""
    assert await write(runtime, bench, "c3", "01JOB", "second") == "first"
    again = bench.make()  # an agent that starts again
    await again.open()
    await again.keep_checkpoints({"01JOB"})
    assert await write(again, bench, "c4", "01JOB", "third") in ("first\nsecond", "second")
    assert await write(again, bench, "c5", "01OTHER", "anew") == ""
    await again.keep_checkpoints(())
    assert await write(again, bench, "c6", "01JOB", "anew") == ""
    await again.keep_checkpoints(())
    await again.close()


async def test_a_worker_without_checkpoints_has_no_folder_for_them(runtime: Runtime, bench: Bench) -> None:
    if not bench.real:
        pytest.skip("the fake runs no program")
    await runtime.start(bench.worker("sh", "-c", "echo folder: $CES_CHECKPOINT."))
    assert "folder: ." in await logged(runtime, "folder: .")


async def test_checkpoints_count_for_the_disk_that_a_worker_may_keep(bench: Bench) -> None:
    if not isinstance(bench, ProcessBench) or os.geteuid() != 0:
        pytest.skip("this bench limits nothing")
    runtime = ProcessRuntime(bench.folder, bench.node, bench.isolates, disk=2**22)
    await runtime.open()
    await runtime.ensure_sandbox(endpoint())
    fills = "cd $CES_CHECKPOINT; while true; do head -c 1000000 /dev/zero >f$((i=i+1)) || sleep 1; done"
    worker = bench.worker("sh", "-c", fills, checkpoint=True)
    await runtime.start(worker)
    assert "disk limit exceeded" in ((await ended(runtime, worker.key)).reason or "")
    await clean(runtime)
