"""Regions on real servers and databases that choose each other by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_regions import one_core, running
from region_policies import write_policy
from region_servers import World as Servers
from region_servers import running_servers
from waiting import until

from ces_common.states import JobState
from ces_federation.policy import SHIPPED, load_policy

ROOMS = {"home": (1, 100), "small": (1, 2000), "large": (2, 4000)}
TRUST: dict[str, Any] = {"accept": ["default"], "tenants": {"default": "default"}}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with running_servers(tmp_path_factory.mktemp("choice"), list(ROOMS)) as made:
        yield made


@pytest.mark.parametrize(("least", "where"), [(True, "small"), (False, "large")])
async def test_a_job_goes_where_the_policy_says_and_says_so(
    servers: Servers, tmp_path: Path, least: bool, where: str
) -> None:
    """Both regions have room; one is free to 2 cores, the other to 8."""
    policy = write_policy(tmp_path / "policy.onnx", "nodes", least=least)
    async with running(servers, tmp_path / "regions", ROOMS, choice="policy", policy=policy, **TRUST) as regions:
        home = regions["home"]
        await until(lambda: len(home.federation.board.usable(home.federation._clock())) == 2)
        job = await home.submit(one_core("leaves"))
        await until(lambda: home.state(job) is JobState.ELSEWHERE)
        assert f"in region {where}, chosen by policy by-hand-1 (sha256 " in str(home.reason(job))


@pytest.mark.parametrize(("given", "says"), [(SHIPPED, "by policy"), (Path("/gone.onnx"), "by the rule, since /gone")])
async def test_the_shipped_policy_places_jobs_and_so_does_the_rule_in_its_stead(
    servers: Servers, tmp_path: Path, given: Path, says: str
) -> None:
    async with running(servers, tmp_path / "regions", ROOMS, choice="policy", policy=given, **TRUST) as regions:
        home = regions["home"]
        job = await home.submit(one_core("leaves"))
        await until(lambda: home.state(job) is JobState.ELSEWHERE)
        assert f"chosen {says}" in str(home.reason(job))
        if given == SHIPPED:
            assert str(load_policy(SHIPPED)) in str(home.reason(job))
