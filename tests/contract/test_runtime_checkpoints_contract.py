"""What every runtime promises of checkpoints: what a job's worker wrote is there for its next one, and for no other
job's, until it is no longer kept."""

from __future__ import annotations

import io
import os
from typing import IO

import pytest
from runtime_bench import Bench, ProcessBench, clean, ended, endpoint, logged

from ces_edge_agent.checkpoints.archive import Packed, Unfit
from ces_edge_agent.ports import Runtime
from ces_edge_agent.runtimes.process import ProcessRuntime

WRITES = (
    "cat $CES_CHECKPOINT/* 2>/dev/null; sleep 1.1; "  # an engine tells the time of files in seconds
    "echo {0} >$CES_CHECKPOINT/.new && mv $CES_CHECKPOINT/.new $CES_CHECKPOINT/{0}"
)


async def write(
    runtime: Runtime, bench: Bench, allocation: str, job: str, text: str, checkpoint: IO[bytes] | None = None
) -> str:
    """A worker of the job reads what is there, and writes the text; returns what it has read. ``checkpoint``: what it
    begins from."""
    await runtime.ensure_sandbox(endpoint(allocation))
    program = ("sh", "-c", WRITES.format(text)) if bench.real else ("checkpoint", text)
    worker = bench.worker(*program, allocation=allocation, job=job, checkpoint=True)
    await runtime.prepare(worker)
    await runtime.start(worker, checkpoint=checkpoint)
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


async def packed(runtime: Runtime, job: str, seen: str | None = None) -> tuple[Packed | None, io.BytesIO]:
    into = io.BytesIO()
    found = await runtime.pack_checkpoint(job, into, 2**20, seen)
    into.seek(0)
    return found, into


async def test_the_newest_checkpoint_goes_to_another_node(runtime: Runtime, bench: Bench) -> None:
    """Here another job stands for it: nothing of either is the other's otherwise."""
    assert (await packed(runtime, "01JOB"))[0] is None
    await write(runtime, bench, "m1", "01JOB", "first")
    await write(runtime, bench, "m2", "01JOB", "second")
    found, archive = await packed(runtime, "01JOB")
    assert found is not None
    assert found.name == "second"
    assert (await packed(runtime, "01JOB", found.mark))[0] is None
    await write(runtime, bench, "m3", "01OTHER", "stale")
    assert await write(runtime, bench, "m4", "01OTHER", "third", archive) == "second", "and what lay there is gone"
    again, _ = await packed(runtime, "01OTHER", found.mark)
    assert again is not None
    assert again.name == "third", "the worker could write beside what it was given"
    if bench.real:
        assert await write(runtime, bench, "m5", "01OTHER", "second") in ("second\nthird", "third\nsecond")
        overwritten, _ = await packed(runtime, "01OTHER")
        assert overwritten is not None
        assert overwritten.name == "second", "and over it"
    await runtime.keep_checkpoints(())


async def test_what_is_being_written_is_not_packed(runtime: Runtime, bench: Bench) -> None:
    if not bench.real:
        pytest.skip("the fake runs no program")
    await runtime.ensure_sandbox(endpoint("p1"))
    writes = "cd $CES_CHECKPOINT; echo 1 >step; sleep 1.1; echo 2 >tmp-2; echo 3 >3.part; echo 4 >.4; ln -s step link"
    worker = bench.worker("sh", "-c", writes, allocation="p1", job="01JOB", checkpoint=True)
    await runtime.prepare(worker)
    await runtime.start(worker)
    assert (await ended(runtime, worker.key)).exit_code == 0
    found, _ = await packed(runtime, "01JOB")
    assert found is not None
    assert found.name == "step"
    with pytest.raises(Unfit, match="more than 1 bytes"):
        await runtime.pack_checkpoint("01JOB", io.BytesIO(), 1, None)
    await runtime.remove(worker.key)
    await runtime.remove_sandbox("p1")
    await runtime.keep_checkpoints(())


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
