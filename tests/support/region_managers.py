"""A manager of one region, played: what its federation service asks, and is answered."""

from __future__ import annotations

from typing import Any

from region_worlds import Region

from ces_common.bus.port import Message
from ces_common.messages.base import Message as Wire


class Manager:
    """Of one region. ``asked``: what it was asked, in order."""

    def __init__(self, region: Region) -> None:
        self.region, self.asked = region, list[tuple[str, Any]]()

    async def answers(self, operation: str, model: type[Wire], *answers: Wire | Exception) -> None:
        """One after the other; the last one again and again."""
        left = list(answers)

        async def answer(message: Message) -> bytes:
            self.asked.append((operation, model.model_validate_json(message.data)))
            said = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(said, Exception):
                raise said
            return said.encode()

        await self.region.manager_says(f"region-{operation}", answer)

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.asked]

    def last(self, operation: str) -> Any:
        return [said for name, said in self.asked if name == operation][-1]
