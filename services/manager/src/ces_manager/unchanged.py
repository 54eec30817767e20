"""How long things have shown the same value, by this process's own clock. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping


class Unchanged:
    """For how long each thing has shown the same stamp to this process, on its own steady clock. What is seen for the
    first time has age zero, so no other clock, nor one from before a restart, plays a part. While one thread looks,
    others see the look before, whole."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Hashable, float]] = {}

    def ages(self, stamps: Mapping[str, Hashable], now: float) -> dict[str, float]:
        """Seconds since each thing was first seen with its present stamp. What is not named is forgotten."""
        before, seen = self._seen, dict[str, tuple[Hashable, float]]()
        for name, stamp in stamps.items():
            known = before.get(name)
            seen[name] = known if known is not None and known[0] == stamp else (stamp, now)
        self._seen = seen
        return {name: now - since for name, (_, since) in seen.items()}

    def shows(self, name: str, stamp: Hashable) -> bool:
        """Whether that was the thing's stamp at the last look."""
        known = self._seen.get(name)
        return known is not None and known[0] == stamp

    def stamp(self, name: str) -> Hashable | None:
        """What the thing showed at the last look; None for what was not there."""
        known = self._seen.get(name)
        return None if known is None else known[0]

    def age(self, name: str, now: float) -> float:
        """The age of one thing, as of the last look; zero for what was not there."""
        known = self._seen.get(name)
        return 0.0 if known is None else now - known[1]
