"""Devices that apply over REST: without a token, and only so often and so many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import new_database
from rest_api import Api, join, running_api

from ces_manager.api import context, failed_attempts

BODY: dict[str, Any] = {"name": "roof1", "host_keys": ["SHA256:" + "A" * 43]}
PLACES = 2  # of eight, for one network


async def apply(api: Api, **more: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=api.http.base_url) as stranger:
        return await stranger.post("/v1/applicants", json=BODY | more)


async def names(api: Api) -> list[str]:
    answer = await api.http.get("/v1/applicants")
    assert answer.status_code == 200
    return [each["name"] for each in answer.json()["items"]]


async def test_from_applying_to_being_a_node(api_on_either: Api) -> None:
    api = api_on_either
    told = await apply(api, arch="x86_64")
    assert told.status_code == 202
    assert (told.json()["state"], told.json()["address"]) == ("applied", "127.0.0.1")
    assert (await api.http.get("/v1/applicants")).json()["items"] == [told.json()]
    assert (await api.http.get("/v1/nodes")).json()["items"] == [], "it is no node"
    await api.refused("GET", "/v1/nodes/roof1", 404)
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "roof1"})).json()["token"]
    assert token not in told.text
    assert (await join(api, token, "roof1")).status_code == 200
    assert await names(api) == []


async def test_who_is_refused_may_apply_again(api: Api) -> None:
    await api.refused("DELETE", "/v1/applicants/roof1", 404)
    for _ in range(2):
        assert (await apply(api)).status_code == 202
        gone = await api.http.delete("/v1/applicants/roof1")
        assert gone.json() == {"name": "roof1", "addresses": ["127.0.0.1"]}
        assert await names(api) == []


async def test_to_say_the_same_again_changes_nothing(api_on_either: Api) -> None:
    first = (await apply(api_on_either)).json()
    assert (await apply(api_on_either)).json() == first
    other = (await apply(api_on_either, port=2222)).json()
    assert other["port"] == 2222
    assert other["ends_at"] > first["ends_at"]


async def test_a_network_takes_its_places_and_no_more(api: Api) -> None:
    for number in range(PLACES):
        assert (await apply(api, name=f"n{number}")).status_code == 202
    refused = await apply(api, name="another")
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/problem+json")
    assert "from 127.0.0.1" in refused.json()["detail"]
    assert await names(api) == ["n0", "n1"]


async def test_who_applies_too_often_waits_whatever_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_attempts, "APPLICATIONS_PER_S", 1e-3)  # none may do so again within this test
    monkeypatch.setattr(failed_attempts, "APPLICATIONS_AT_ONCE", 4)
    async with running_api(tmp_path, new_database("sqlite", tmp_path)) as api:
        answers = [await apply(api, **more) for more in ({}, {"name": ""}, {}, {"name": ""}, {})]
        assert [answer.status_code for answer in answers] == [202, 422, 202, 422, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token)).status_code == 200, "agents of that address are let in all the same"


async def test_all_together_are_written_down_only_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "APPLICATIONS_PER_S", 1e-3)
    monkeypatch.setattr(context, "APPLICATIONS_AT_ONCE", 2)
    async with running_api(tmp_path, new_database("sqlite", tmp_path)) as api:
        assert [(await apply(api, arch=arch)).status_code for arch in "abc"] == [202, 202, 429]
        assert (await apply(api, arch="b")).status_code == 202, "what is kept already is written down no more"


async def test_none_apply_unless_the_operator_lets_them(tmp_path: Path) -> None:
    async with running_api(tmp_path, new_database("sqlite", tmp_path), max_applicants=0) as api:
        refused = await apply(api)
        assert refused.status_code == 404
        assert "CES_MAX_APPLICANTS" in refused.json()["detail"]
        assert await names(api) == []


async def test_what_is_wrong_is_named_and_not_echoed(api: Api) -> None:
    refused = await apply(api, user="\x1b[2J", nonsense=1)
    assert refused.status_code == 422
    assert {error["field"] for error in refused.json()["errors"]} == {"user", "nonsense"}
    assert "[2J" not in refused.text
