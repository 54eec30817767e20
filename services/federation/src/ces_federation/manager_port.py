"""What this service asks its region's manager."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, Bus, BusError
from ces_common.messages.base import Message

A = TypeVar("A", bound=BaseModel)
ANSWER_S = 8.0  # a dry run takes up to five


class Manager:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def ask(self, operation: str, model: type[A], question: Message | None = None) -> A:
        """Raises BusError: RemoteError where the manager refuses, anything else where it may or may not have acted."""
        data = b"" if question is None else question.encode()
        raw = await self._bus.request(
            subjects.rpc("manager", operation), data, timeout_s=ANSWER_S, largest=LARGEST_REQUEST
        )
        try:
            return model.model_validate_json(raw)
        except ValueError as error:
            raise BusError(f"the manager answers {operation} with what cannot be read") from error
