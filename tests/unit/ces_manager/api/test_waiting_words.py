"""A job says for whom it waits."""

from __future__ import annotations

from typing import cast

import httpx
from manager_world import World, ring

from ces_manager.access.identities import Identities
from ces_manager.api.app import make_app
from ces_manager.api.context import Context
from ces_manager.database import Database
from ces_manager.measurements import Measurements

TOKEN = "t"


async def test_a_job_says_for_whom_it_waits(world: World) -> None:
    database = Database(world.uow, world.clock)
    parts = {
        "database": database,
        "identities": Identities(database, TOKEN),
        "measurements": Measurements(),
        "failure_detector": world.failure_detector,
    }
    app = make_app(cast(Context, type("Parts", (), parts)), lambda: None)
    job = world.submit(ring(tasks=1))
    assert world.commit(world.propose(job, ["a"])) is None
    world.expire()
    world.controllers.clear()
    world.wait(40)
    world.expire()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://manager",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as http:
        view = (await http.get(f"/v1/jobs/{job}")).json()
        assert (view["state"], view["reason"]) == ("planned", "waiting for network-ctl, not heard for 40 s")
        world.network(job)
        world.tell(job, "running")
        world.expire()
        assert (await http.get(f"/v1/jobs/{job}")).json()["reason"] is None
    database.close()
