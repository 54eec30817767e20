"""The hub between two regions is stopped: their own jobs are placed as before, what runs elsewhere is never placed
again, and once the hub is back both say the same."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from live_regions import LiveRegion, one_core, running
from region_servers import running_servers
from waiting import until

from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.states import JobState
from ces_manager.jobs.commands import cancel_job

OUTAGE_S = float(os.environ.get("CES_OUTAGE_S", "12"))  # longer than a region may be silent
EVERY_S = 0.2
ROOMS = {"one": (4, 2000), "two": (4, 4000)}
TRUST = {"accept": ["default"], "tenants": {"default": "default"}}


async def own_jobs(region: LiveRegion, seconds: float) -> list[float]:
    """How long each job waited for its place, that was submitted while others came and went."""
    waits, until_ = list[float](), time.monotonic() + seconds
    while time.monotonic() < until_:
        began = time.monotonic()
        job = await region.submit(one_core(f"own-{len(waits)}", regions=[]))
        while await region.database.read(lambda tx, job=job: waiting(tx, job)):  # noqa: ASYNC110 - it is being timed
            await asyncio.sleep(0.002)
        waits.append(time.monotonic() - began)
        await region.database.write(lambda tx, job=job: cancel_job(tx, job))
        await asyncio.sleep(EVERY_S)
    return waits


def waiting(tx: ReadTx, job: str) -> bool:
    return tx.session.get_one(JobRow, job).state is JobState.QUEUED


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


async def both(*regions: LiveRegion) -> dict[str, list[float]]:
    found = await asyncio.gather(*(own_jobs(each, OUTAGE_S) for each in regions))
    return {region.name: waits for region, waits in zip(regions, found, strict=True)}


@pytest.mark.timeout(1800)
async def test_without_the_hub_own_jobs_go_on_and_afterwards_states_agree(tmp_path: Path) -> None:
    with running_servers(tmp_path / "servers", list(ROOMS)) as servers:
        async with running(servers, tmp_path / "regions", ROOMS, **TRUST) as regions:
            one, two = regions["one"], regions["two"]
            await until(lambda: all(each.federation.board.usable(time.monotonic()) for each in (one, two)))
            away = await one.submit(one_core("elsewhere", cpu="3"))
            await until(lambda: one.state(away) is JobState.ELSEWHERE)
            [(guest, _)] = two.guests()
            await until(lambda: not any(not each.committed for each, _ in two.guests()))
            before = await both(one, two)
            servers.hub_server.kill()
            during = await both(one, two)
            for name in regions:
                print(
                    f"{name}: p99 {p99(before[name]) * 1000:.0f} ms of {len(before[name])} with the hub, "
                    f"{p99(during[name]) * 1000:.0f} ms of {len(during[name])} without it"
                )
            assert one.state(away) is JobState.ELSEWHERE
            assert one.world.job(away).attempt == 1
            two.world.now = two.database.clock.now()
            two.world.network(guest.job)
            two.world.tell(guest.job, "running")
            two.world.tell(guest.job, "exited", exit_code=0)
            assert two.state(guest.job) is JobState.SUCCEEDED
            servers.hub_server.start()
            back = time.monotonic()
            await until(lambda: one.state(away) is JobState.SUCCEEDED)
            print(f"states agree {time.monotonic() - back:.1f} s after the hub is back")
            assert one.world.job(away).attempt == 1
            assert len([row for row in two.states() if row is JobState.SUCCEEDED]) == 1
