"""Profiles of jobs over the API, as the SDK reads them."""

from __future__ import annotations

import asyncio

from rest_api import TOKEN, Api, join

from ces_client.client import Client
from ces_common.messages.work import JobProfile


async def test_a_job_that_was_not_seen_has_a_profile_that_says_so(api_on_either: Api) -> None:
    api = api_on_either
    for node in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, node)).status_code == 200
    job = (await api.submit())["id"]

    def read() -> JobProfile:
        with Client(str(api.http.base_url), TOKEN) as client:
            assert client.jobs.get(job).work_error is None
            return client.profiles.job(job, ["n1", "n2"])

    found = await asyncio.to_thread(read)
    assert found.job == job
    assert all((each.seen, each.predicted, each.runs) == ([], [], 0) for each in found.groups)
    assert all("node n2 tells no speed of a core: ces node measure n2" in each.doubts for each in found.groups)
    await api.refused("GET", "/v1/jobs/nobody/profile", 404)
    await api.refused("GET", f"/v1/jobs/{job}/profile?node=nowhere", 404)
    await api.refused("GET", f"/v1/jobs/{job}/profile?node=", 422)
    await api.refused("GET", f"/v1/jobs/{job}/profile?node=%00", 422)
    many = "&".join(f"node=n{number}" for number in range(101))
    await api.refused("GET", f"/v1/jobs/{job}/profile?{many}", 422)
    await api.refused("GET", f"/v1/jobs/{job}/profile?node={'n' * 200}", 422)
