"""What every runtime promises, whatever runs the workers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from runtime_bench import Bench, ended, endpoint, logged, until

from ces_edge_agent.ports import Refused, Runtime


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
    assert set(await again.sandboxes()) == {"a1"}
    await again.stop("a1.0", 20)
    assert (await again.workers())["a1.0"].exit_code == 143
    await again.remove("a1.0")
    assert await again.workers() == {}
    await again.remove_sandbox("a1")
    assert await again.sandboxes() == {}
    await again.close()


async def test_removing_waits_for_the_end(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    await runtime.remove("a1.0")
    assert (await runtime.workers())["a1.0"].state == "running"
    await runtime.remove("never.0")


async def test_sandboxes_are_kept_until_removed(runtime: Runtime, bench: Bench) -> None:
    first = await runtime.ensure_sandbox(endpoint())
    assert await runtime.ensure_sandbox(endpoint()) == first
    second = await runtime.ensure_sandbox(endpoint("a2"))
    assert await runtime.sandboxes() == {"a1": first, "a2": second}
    if bench.isolates:
        assert first is not None
        assert second is not None
        assert os.stat(first).st_ino not in (os.stat(second).st_ino, os.stat("/proc/self/ns/net").st_ino)
    else:
        assert first is None
    await runtime.remove_sandbox("a2")
    await runtime.remove_sandbox("a2")
    assert set(await runtime.sandboxes()) == {"a1"}


async def test_many_sandboxes_and_workers_at_once(runtime: Runtime, bench: Bench) -> None:
    names = [f"b{number}" for number in range(4)]
    await asyncio.gather(*(runtime.ensure_sandbox(endpoint(name)) for name in names))
    assert set(await runtime.sandboxes()) == {"a1", *names}
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


async def test_a_worker_can_be_left_with_little_cpu(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.spins))
    if "cpu" in getattr(runtime, "enforced", ()):

        async def used() -> float:
            await asyncio.sleep(1)
            return (await runtime.usage())[0].cpu

        for _ in range(60):
            if await used() >= 100:
                break
        else:
            pytest.fail("the machine is too busy to tell: a worker that spins gets less than a tenth of a core")
        await runtime.limit_cpu("a1.0", 20)
        await used()
        assert await used() < 60
        await runtime.limit_cpu("a1.0", 1000)  # an engine may be unable to freeze one that is throttled
    await runtime.pause("a1.0")
    await runtime.limit_cpu("a1.0", 30)
    assert (await runtime.workers())["a1.0"].state == "paused"
    await runtime.stop("a1.0", 0)
    await runtime.limit_cpu("a1.0", 20)
    await runtime.limit_cpu("never.0", 20)


async def test_usage_names_live_workers(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.sleeps))
    await runtime.usage()
    (usage,) = await runtime.usage()
    assert usage.allocation == "a1"
    assert 0 <= usage.cpu < 1000
    await runtime.stop("a1.0", 20)
    assert await runtime.usage() == []


async def test_usage_counts_all_cpu_time_since_the_start(runtime: Runtime, bench: Bench) -> None:
    await runtime.start(bench.worker(*bench.lavish))
    if bench.real:
        await logged(runtime, "spent\n")

    async def told(by: Runtime = runtime) -> float:
        (usage,) = await by.usage()
        assert usage.cpu_s is not None
        return usage.cpu_s

    first = await told()
    assert first >= bench.lavish_s  # of a process that has ended
    if bench.real:
        await until(lambda: grown(told, first + 0.2))
    await runtime.pause("a1.0")
    before = await told()
    await asyncio.sleep(0.3)
    assert first <= before <= await told() <= before + 0.1
    again = bench.make()
    await again.open()
    assert await told(again) >= before  # whoever counts
    await again.close()


async def grown(told: Callable[[], Awaitable[float]], least: float) -> bool:
    return await told() >= least
