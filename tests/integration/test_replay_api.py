"""The cluster as it was, over the API."""

from __future__ import annotations

import asyncio
from typing import Any

from rest_api import PATIENCE_S, Api, join

from ces_common import subjects
from ces_common.messages.reports import LinkReport, LinkStatus

TOPOLOGY = {"links": [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]}


async def past(api: Api, **when: Any) -> dict[str, Any]:
    answer = await api.http.get("/v1/state", params=when)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_any_instant_since_history_began_can_be_seen(api_on_either: Api) -> None:
    api = api_on_either
    before = await api.refused("GET", "/v1/state", 404)
    assert "no history is kept yet" in before["detail"]
    assert (await api.http.put("/v1/topology", json=TOPOLOGY)).status_code == 200
    kept = await api.keep_history()
    assert kept is not None
    job = await api.submit(name="first")
    submitted = await past(api)
    assert (await api.http.delete(f"/v1/jobs/{job['id']}")).status_code == 202
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token)).status_code == 200

    now = await past(api)
    assert (await past(api, event=now["before"]))["nodes"] == {}
    assert "before" not in await past(api, event=kept.sequence)
    assert (now["jobs"], set(now["nodes"]), set(now["links"])) == ({}, {"n1"}, {"n1>n2", "n2>n1"})
    assert now["oldest"]["event"] == kept.sequence
    assert now["event"] == now["newest"]["event"] > submitted["event"]
    for when in ({"event": submitted["event"]}, {"at": submitted["newest"]["at"]}):
        then = await past(api, **when)
        assert {name: each["state"] for name, each in then["jobs"].items()} == {job["id"]: "queued"}
        assert (then["counts"], then["nodes"]) == ({"queued": 1}, {})
        assert then["links"]["n1>n2"]["reserved"] == 0


async def test_an_instant_that_is_none_is_refused_by_its_field(api: Api) -> None:
    await api.submit()
    await api.keep_history()
    for when, what in (
        ({"at": "yesterday"}, "query.at"),
        ({"at": "2026-11-27T09:30:00"}, "query.at"),
        ({"event": -1}, "query.event"),
        ({"at": "9999-12-31T23:59:59-14:00"}, "beyond all times"),
        ({"event": 1, "at": "2026-11-27T09:30:00Z"}, "one of them"),
        ({"event": 1, "failure": True}, "one of them"),
        ({"failure": "perhaps"}, "query.failure"),
    ):
        assert what in (await api.refused("GET", "/v1/state", 422, params=when))["detail"]
    assert "no event 4711" in (await api.refused("GET", "/v1/state", 404, params={"event": 4711}))["detail"]
    long_ago = {"at": "2020-01-01T00:00:00Z"}
    assert "history begins" in (await api.refused("GET", "/v1/state", 404, params=long_ago))["detail"]


async def test_a_tenant_sees_its_own_jobs_in_the_past_alone(api: Api) -> None:
    await api.keep_history()
    jobs = {tenant: (await api.submit(name=tenant, tenant=tenant))["id"] for tenant in ("red", "blue")}
    asked = {"name": "eve", "role": "viewer", "tenants": ["red"]}
    token = (await api.http.post("/v1/tokens", json=asked)).json()["token"]
    mine = (await api.http.get("/v1/state", headers={"Authorization": f"Bearer {token}"})).json()
    assert (set(mine["jobs"]), mine["counts"]) == ({jobs["red"]}, {"queued": 1})
    assert set((await past(api))["jobs"]) == set(jobs.values())


async def test_one_goes_from_change_to_change_and_begins_at_the_last_failure(api_on_either: Api) -> None:
    api = api_on_either
    assert (await api.http.put("/v1/topology", json=TOPOLOGY)).status_code == 200
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, network="tc")).status_code == 200
    assert await api.keep_history() is not None
    assert (await past(api, failure=True))["event"] == (await past(api))["event"], "nothing has failed"
    first = (await api.submit(name="first"))["id"]
    before = (await past(api))["event"]
    report = LinkReport(node="n1", links=[LinkStatus(peer="n2", state="down")])
    await api.bus.publish(subjects.report("n1", "links"), report.encode())
    async with asyncio.timeout(PATIENCE_S):
        while (await api.http.get("/v1/links/n1/n2")).json()["state"] == "up":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    down = (await past(api))["event"]
    asked = {"name": "eve", "role": "viewer", "tenants": ["red"]}
    assert (await api.http.post("/v1/tokens", json=asked)).status_code == 201
    assert (await api.http.delete(f"/v1/jobs/{first}")).status_code == 202

    then = await past(api, failure=True)
    assert (then["event"], then["links"]["n1>n2"]["state"]) == (down, "down")
    assert then["change_before"] == before
    cancelled = then["change_after"]
    assert cancelled > down + 1, "a token changes nothing that is drawn"
    later = await past(api, event=cancelled)
    assert later["jobs"] == {}
    assert "change_after" not in later
    assert later["change_before"] == down
    page = (await api.http.get("/v1/events/page", params={"changes": True, "limit": 3})).json()["items"]
    assert [each["number"] for each in page] == [cancelled, down, before]
    both = {"changes": True, "kind": "ces.v1.job."}
    assert "not both" in (await api.refused("GET", "/v1/events/page", 422, params=both))["detail"]

    link = (await api.http.get("/v1/links/n1/n2")).json()
    assert link["last_up"] == before
    assert (await past(api, event=before))["links"]["n1>n2"]["state"] == "up"
    assert (await api.http.get("/v1/links/n2/n1")).json()["last_up"] is None
