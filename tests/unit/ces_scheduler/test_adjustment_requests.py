"""The decision on a running job over the bus: in a process of its own, one at a time, within a limit."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

from bus_manager import FakeManager
from cluster_state import MBIT, job
from memory_bus import MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.adjustments import AdjustmentAnswer, AdjustmentQuery
from ces_common.state_reader import StateReader
from ces_scheduler.adjustment_requests import BUSY, FAILED, LATE, LATE_AT_ALL, adjusting
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.service import Scheduler

QUERY = AdjustmentQuery(job="j")
MESSAGE = Message("ces.v1.rpc.scheduler.adjust", QUERY.encode())


def ends(status: int) -> tuple[str, ...]:
    return (sys.executable, "-c", f"raise SystemExit({status})")


async def test_the_manager_asks_over_the_bus(running: Scheduler, bus: MemoryBus, wired: FakeManager) -> None:
    """A job without goals: what the process says comes back."""
    wired.change(jobs=[job("j", ["a", "b"], [(0, 1, MBIT, ["a", "s", "b"])])])

    async def ask(name: str) -> AdjustmentAnswer:
        raw = await bus.request(subjects.rpc("scheduler", "adjust"), AdjustmentQuery(job=name).encode(), timeout_s=60)
        return AdjustmentAnswer.model_validate_json(raw)

    assert str((await ask("j")).refusal).startswith("job: has no goals to be adjusted for")
    assert "does not know yet" in str((await ask("other")).refusal)


async def test_a_process_that_hangs_or_fails_is_said(bus: MemoryBus, wired: FakeManager) -> None:
    wired.change(jobs=[job("j", ["a", "b"])])
    reader = StateReader(bus)

    def offer() -> Offer:
        return offer_of(reader.view)

    sleeps = (sys.executable, "-c", "import time; time.sleep(60)")
    assert await adjusting(reader, offer, None, sleeps, 1.0)(MESSAGE) == LATE.encode()
    in_place = Message(MESSAGE.subject, AdjustmentQuery(job="j", moves=0).encode())
    assert await adjusting(reader, offer, None, sleeps, 1.0)(in_place) == LATE_AT_ALL.encode()
    assert await adjusting(reader, offer, None, ends(3))(MESSAGE) == FAILED.encode()
    assert AdjustmentAnswer.model_validate_json(BUSY.encode()).busy


async def test_a_question_is_put_when_its_turn_has_come(bus: MemoryBus, wired: FakeManager) -> None:
    """Whoever asks while another is answered costs nothing."""
    wired.change(jobs=[job("j", ["a", "b"])])
    reader, begun = StateReader(bus), asyncio.Event()
    looks: list[int] = []

    def offer() -> Offer | None:
        begun.set()
        looks.append(1)
        return offer_of(reader.view)

    sleeps = (sys.executable, "-c", "import time; time.sleep(60)")
    answer = adjusting(reader, offer, None, sleeps, 2.0, 0.1)
    first = asyncio.create_task(answer(MESSAGE))
    await begun.wait()
    assert await answer(MESSAGE) == BUSY.encode()
    assert looks == [1]
    assert await first == LATE.encode()


def test_its_process_ends_by_itself() -> None:
    spins = (
        "from ces_scheduler import adjustment_process as p; p.CPU_S = 1; import ces_scheduler.adjustment_decision as d"
    )
    spins += "; d.decided = lambda question: [None for _ in iter(int, 1)]; p.main()"
    ended = subprocess.run([sys.executable, "-c", spins], input=b"{}", timeout=60, check=False)
    assert ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
