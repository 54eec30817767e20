"""Nodes, links and the topology over the REST API: joining, cordoning, prober, forgetting."""

from __future__ import annotations

import asyncio
import json

import pytest
from rest_api import Api, join

from ces_common import subjects
from ces_common.bus.port import BusUnavailable, Message, RemoteError
from ces_common.messages.queries import LinkProbe, LinkProbed
from ces_common.messages.reports import Heartbeat
from ces_common.natsauth import new_user_key
from ces_manager.timeouts import Timeouts


async def test_a_token_admits_one_node_once(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
    assert (await join(api, token, "n2")).status_code == 403
    joined = await join(api, token)
    assert joined.status_code == 200
    assert joined.json()["subnet"] == "10.64.0.0/24"
    assert (await join(api, token)).status_code == 403
    assert (await join(api, "no-such-token")).status_code == 403
    nodes = (await api.http.get("/v1/nodes")).json()["items"]
    assert [(node["name"], node["state"]) for node in nodes] == [("n1", "unreachable")]


async def test_a_wrong_key_is_refused_and_the_token_stays_good(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    wrong = await join(api, token, public_key="U" + "A" * 55)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "public_key"
    assert (await join(api, token)).status_code == 200


async def test_a_node_with_a_services_name_is_refused_and_the_token_stays_good(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    wrong = await join(api, token, "manager")
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "name"
    assert (await join(api, token)).status_code == 200


async def test_cordon_and_uncordon(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    await join(api, token)
    assert (await api.http.post("/v1/nodes/n1/cordon")).json()["cordoned"] is True
    assert (await api.http.post("/v1/nodes/n1/uncordon")).json()["cordoned"] is False
    await api.refused("POST", "/v1/nodes/nobody/cordon", 404)


async def test_a_probe_asks_both_ends_and_keeps_what_they_found(api: Api) -> None:
    asked: list[tuple[str, LinkProbe]] = []

    async def answer(message: Message) -> bytes:
        query = LinkProbe.model_validate_json(message.data)
        asked.append((message.subject, query))
        rate = 100e6 if query.part == "send" else 60e6
        return LinkProbed(rate=rate, round_trip_s=0.002 if query.part == "send" else None).encode()

    for name in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, name, network="tc")).status_code == 200
        await api.bus.serve(subjects.agent_rpc(name, "probe"), answer)
    await api.http.put("/v1/topology", json={"links": [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]})
    await api.refused("POST", "/v1/links/n1/n2/probe", 409)
    await api.heard("n1", "n2")
    found = (await api.http.post("/v1/links/n1/n2/probe", json={"seconds": 0.3})).json()
    assert (found["sent"], found["received"], found["measured"]) == (100e6, 60e6, 60_000_000)
    assert {(subject.split(".")[4], query.part, query.peer) for subject, query in asked} == {
        ("n1", "send", "n2"),
        ("n2", "receive", "n1"),
    }
    kept = (await api.http.get("/v1/links")).json()["items"]
    assert [(link["measured"], link["round_trip_s"]) for link in kept] == [(60_000_000, 0.002), (None, None)]
    await api.refused("POST", "/v1/links/n1/n3/probe", 404)
    await api.refused("POST", "/v1/links/n1/n2/probe", 422, json={"seconds": 60})


async def test_a_topology_is_put_whole_and_wrong_ones_name_the_field(api: Api) -> None:
    links = [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]
    view = (await api.http.put("/v1/topology", json={"links": links})).json()
    assert [(link["src"], link["dst"], link["bandwidth"]) for link in view["links"]] == [
        ("n1", "n2", 100_000_000),
        ("n2", "n1", 100_000_000),
    ]
    problem = await api.refused("PUT", "/v1/topology", 422, json={"links": links + links})
    assert problem["errors"][0]["field"].startswith("links")
    no_medium = [{**links[0], "medium": "air"}]
    problem = await api.refused("PUT", "/v1/topology", 422, json={"links": no_medium})
    assert "air" in problem["detail"]


async def test_a_heartbeat_that_cannot_be_stored_spoils_no_other(api_on_either: Api) -> None:
    """Both are renewed in one transaction."""
    api = api_on_either
    for node in ("n1", "n2"):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, node)).status_code == 200
    beats = [Heartbeat(node="n1", boot="\0zero"), Heartbeat(node="n2", boot="b")]
    asked = [api.bus.request(f"ces.v1.hb.{beat.node}", beat.encode()) for beat in beats]
    for answer in await asyncio.gather(*asked):
        assert json.loads(answer)["lease_s"] == Timeouts().lease_s
    await api.heard("n1", "n2")


async def test_a_node_is_forgotten_and_its_name_joins_again_with_another_key(api_on_either: Api) -> None:
    api = api_on_either
    key, token = new_user_key().public, (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, public_key=key)).status_code == 200
    await api.heard("n1")
    problem = await api.refused("POST", "/v1/nodes/n1/forget", 409)
    assert problem["detail"] == "node n1 is alive: drain it first (ces node drain n1), or end its agent"
    await api.http.post("/v1/nodes/n1/drain")
    api.claims.error = BusUnavailable("away")
    gone = (await api.http.post("/v1/nodes/n1/forget")).json()
    assert gone == {"node": "n1", "jobs": [], "credential": "pending"}
    assert (await api.http.get("/v1/nodes")).json()["items"] == []
    await api.refused("POST", "/v1/nodes/n1/forget", 404)
    with pytest.raises(RemoteError, match="no node n1 has joined"):
        await api.bus.request("ces.v1.hb.n1", Heartbeat(node="n1", boot="b").encode())
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
    again = await join(api, token, public_key=key)
    assert again.status_code == 403
    assert "delete the agent's state folder" in again.json()["detail"]
    assert (await join(api, token)).status_code == 200, "the token stays good for another key"
    api.claims.error = None
    await api.http.post("/v1/nodes/n1/drain")
    assert (await api.http.post("/v1/nodes/n1/forget")).json()["credential"] == "revoked"
    assert key in api.claims.refused, "what could not be told before is told with the next"
    assert len(api.claims.refused) == 2
