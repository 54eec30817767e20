"""The scheduler's word on how fast a job is, and its silence."""

from __future__ import annotations

import pytest
from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.bus.port import Message
from ces_common.messages.speeds import SpeedAnswer, SpeedQuery
from ces_manager.jobs.speed_forecast import predicted_speeds


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (SpeedAnswer(rates={1: 2.0, 2: 3.5}).encode(), {1: 2.0, 2: 3.5}),
        (SpeedAnswer().encode(), {}),
        (b"?", {}),
        (b'{"rates": {"1": -2}}', {}),
        (b'{"rates": {"1": 1, "2": 1, "3": 1, "4": 1}}', {}),
    ],
)
async def test_what_the_scheduler_says_is_read_within_bounds(answer: bytes, told: dict[int, float]) -> None:
    bus, asked = MemoryBus(MemoryBroker()), []

    async def reply(message: Message) -> bytes:
        asked.append(SpeedQuery.model_validate_json(message.data).job)
        return answer

    await bus.connect()
    await bus.serve(subjects.rpc("scheduler", "speed"), reply)
    assert await predicted_speeds(bus, "j") == told
    assert asked == ["j"]


async def test_without_a_scheduler_nothing_is_predicted() -> None:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    assert await predicted_speeds(bus, "j") == {}
