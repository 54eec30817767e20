"""A region as the owner of capacity: as what it takes the jobs of others, and which it refuses."""

from __future__ import annotations

import pytest
from region_managers import FILE, OFFERED, home, owner
from region_worlds import Region

from ces_federation import home as home_module


async def test_a_guest_has_the_tenant_the_priority_and_the_home_that_this_region_says(
    regions: dict[str, Region],
) -> None:
    await home(regions["a"])
    there = await owner(regions["b"])
    await regions["a"].federation.home.offer(OFFERED)
    held = there.last("hold")
    assert (held.home, held.file.tenant, held.file.priority, held.file.regions) == ("a", "guests", 40, [])


@pytest.mark.parametrize("tenant", ["blue", "default"])
async def test_a_tenant_that_is_not_accepted_is_refused_by_the_region_itself(
    regions: dict[str, Region], tenant: str
) -> None:
    """Whatever the home takes the summary to say."""
    there = await owner(regions["b"])
    file = FILE.model_copy(update={"tenant": tenant})
    asked = regions["a"].federation
    for operation, question in (("bid", {"file": file}), ("hold", {"job": "j", "attempt": 1, "file": file})):
        model = home_module.Bid if operation == "bid" else home_module.Hold
        raw = await asked.wire.ask("b", operation, model.model_validate(question).encode())
        assert b"not accepted from region a" in raw
    assert there.operations() == []
