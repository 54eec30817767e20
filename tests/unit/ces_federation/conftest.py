"""Three regions that know each other, by their real services; their managers are played."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from memory_bus import MemoryBroker
from region_policies import write_policy
from region_worlds import Region
from waiting import until

from ces_federation import owner as owner_module
from ces_federation import wire as wire_module

TRUST = {"accept": ["red"], "tenants": {"red": "guests", "blue": "guests"}, "max_priority": 40}


@pytest.fixture
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """By which all regions choose others; None without a parameter: they do so by the rule."""
    by = getattr(request, "param", None)
    return None if by is None else write_policy(tmp_path / "policy.onnx", by)


@pytest.fixture
async def regions(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, policy: Path | None
) -> AsyncIterator[dict[str, Region]]:
    monkeypatch.setattr(wire_module, "SIGN_S", 0.3)
    monkeypatch.setattr(wire_module, "SIGN_EVERY_S", 0.05)
    monkeypatch.setattr(owner_module, "LOOK_S", 0.001)
    made = {name: Region(name, broker, "abc", policy, **TRUST) for name in "abc"}
    for region in made.values():
        await region.start()
    for region in made.values():
        await region.federation.tell()
    await until(lambda: len(made["a"].federation.board.usable(0.0)) == 2)
    yield made
    for region in made.values():
        await region.close()
