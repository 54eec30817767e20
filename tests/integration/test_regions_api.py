"""What the API says of other regions, with a federation service that is played here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from databases import new_database
from rest_api import Api, running_api

from ces_common import subjects
from ces_common.jobfile import JobFile
from ces_common.messages.regions import HoldQuery, RegionList, RegionView
from ces_common.queuefile import QueueFile
from ces_manager.regions import guests


@pytest.fixture
async def region(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, new_database("sqlite", tmp_path), region="north") as made:
        yield made


async def federation(api: Api) -> None:
    known = RegionList(items=[RegionView(name="north", state="here"), RegionView(name="south", state="silent")])

    async def say(_: object) -> bytes:
        return known.encode()

    await api.bus.serve(subjects.rpc("federation", "regions"), say)


async def test_regions_are_told_as_the_federation_service_knows_them(region: Api) -> None:
    problem = await region.refused("GET", "/v1/regions", 503)
    assert "the federation service is not there" in problem["detail"]
    await federation(region)
    items = (await region.http.get("/v1/regions")).json()["items"]
    assert [(each["name"], each["state"]) for each in items] == [("north", "here"), ("south", "silent")]


@pytest.mark.parametrize(("named", "status"), [(["south"], 201), (["any"], 201), (["nowhere"], 422), (["South"], 422)])
async def test_a_job_names_regions_that_there_are(region: Api, named: list[str], status: int) -> None:
    await federation(region)
    answer = await region.http.post("/v1/jobs", json=job(named))
    assert answer.status_code == status, answer.text
    if status == 201:
        assert answer.json()["regions"] == named
    else:
        assert "regions" in answer.json()["errors"][0]["field"]


async def test_a_submission_does_not_wait_for_the_federation_service(region: Api) -> None:
    assert (await region.http.post("/v1/jobs", json=job(["nowhere"]))).status_code == 201


async def test_what_is_held_for_others_is_told_to_those_whose_tenant_it_counts_for(region: Api) -> None:
    """Whether or not the federation service is there."""
    file = JobFile.model_validate({**job([]), "tenant": "red"})
    asked = HoldQuery(home="south", job="job-1", attempt=1, file=file)
    held = await region.database.write(lambda tx: guests.hold(tx, asked, QueueFile()), "region:south")
    found = (await region.http.get("/v1/regions/holds")).json()
    [told] = found["here"]
    assert (told["job"], told["region"], told["state"]) == (held.remote, "south", "waiting")
    assert (found["there"], found["more"]) == ([], False)
    for tenant, seen in (("red", 1), ("blue", 0)):
        made = await region.http.post("/v1/tokens", json={"name": tenant, "role": "viewer", "tenants": [tenant]})
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        answer = await region.http.get("/v1/regions/holds", headers=headers)
        assert len(answer.json()["here"]) == seen
        assert ("job-1" in answer.text) == bool(seen)


async def test_a_cluster_that_is_no_region_knows_no_other(api: Api) -> None:
    for path in ("/v1/regions", "/v1/regions/holds"):
        assert "no region" in (await api.refused("GET", path, 404))["detail"]
    problem = await api.refused("POST", "/v1/jobs", 422, json=job(["any"]))
    assert "leave it out" in problem["detail"]


def job(regions: list[str]) -> dict[str, Any]:
    return {"name": "x", "tasks": [{"name": "w", "command": ["true"]}], "regions": regions}
