"""The controllers' signs of life, which every manager hears for itself."""

from __future__ import annotations

from ces_common.bus.port import Bus, Message
from ces_common.messages.reports import Alive
from ces_common.sign_of_life import SUBJECT
from ces_manager.nodes.failure_detector import FailureDetector


async def hear_controllers(bus: Bus, failure_detector: FailureDetector) -> None:
    async def heard(message: Message) -> None:
        failure_detector.heard(Alive.model_validate_json(message.data).service)

    await bus.subscribe(SUBJECT, heard)
