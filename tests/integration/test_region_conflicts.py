"""Jobs of three homes want the room of two other regions at the same moment, and there is less than they want."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from live_regions import one_core, running
from region_servers import running_servers
from world_audit import audit

from ces_common.messages.regions import HOLD_S
from ces_common.states import JobState

JOBS, PLACES = 200, 60
HOMES, OWNERS = ("h1", "h2", "h3"), ("o1", "o2")
WITHIN_S = float(os.environ.get("CES_CONFLICT_S", "300"))  # a limit for this test; how long it takes it prints
LOOK_S = 0.2
TRUST = {"accept": ["default"], "tenants": {"default": "default"}}


@pytest.mark.timeout(900)
async def test_two_hundred_jobs_of_three_homes_want_sixty_places(tmp_path: Path) -> None:
    rooms = dict.fromkeys(HOMES, (1, 100)) | dict.fromkeys(OWNERS, (6, PLACES // 2 // 6 * 1000))
    oldest = double = 0.0
    with running_servers(tmp_path / "servers", list(rooms)) as servers:
        async with running(servers, tmp_path / "regions", rooms, **TRUST) as regions:
            homes, owners = [regions[name] for name in HOMES], [regions[name] for name in OWNERS]
            await asyncio.gather(*(homes[i % len(homes)].submit(one_core(f"job-{i}")) for i in range(JOBS)))
            began = time.monotonic()
            used_s, late_s, looked = 0.0, 0.0, began
            while time.monotonic() - began < WITHIN_S:
                late_s, looked = max(late_s, time.monotonic() - looked - LOOK_S), time.monotonic()
                guests = [(owner, guest) for owner in owners for guest, _ in owner.guests()]
                committed = [guest for _, guest in guests if guest.committed]
                tries = Counter((guest.home, guest.home_job) for guest in committed)
                assert max(tries.values(), default=1) == 1, "a job is committed twice"
                double = max(double, len(guests) - len({(guest.home, guest.home_job) for _, guest in guests}))
                oldest = max(oldest, *(owner.oldest_hold_s() for owner in owners))
                if not used_s and len(committed) == PLACES:
                    used_s = time.monotonic() - began
                if used_s and time.monotonic() - began > used_s + 20:  # whatever is held beside has ended
                    break
                await asyncio.sleep(LOOK_S)
            elsewhere = sum(home.states().count(JobState.ELSEWHERE) for home in homes)
            print(f"all places used after {used_s:.1f} s, oldest hold {oldest:.1f} s, held twice at most {double:g}")
            assert used_s, f"{len(committed)} of {PLACES} places are used after {WITHIN_S:g} s"
            assert elsewhere == PLACES
            assert oldest <= HOLD_S + 1 + late_s, f"all regions run here, which came {late_s:.1f} s late at worst"
            for region in regions.values():
                audit(region.world)
