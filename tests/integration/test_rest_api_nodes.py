"""Nodes, links and the topology over the REST API: joining, cordoning, prober, forgetting."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from rest_api import Api, join, say, signed

from ces_common import subjects
from ces_common.bus.port import BusUnavailable, Message, RemoteError
from ces_common.messages.agent_queries import LinkProbe, LinkProbed
from ces_common.messages.reports import Heartbeat
from ces_common.messages.scores import Measurement, ScoreReport
from ces_common.natsauth import UserKey, new_user_key
from ces_common.natsauth.jwt import claims_of
from ces_common.scores import REFERENCE
from ces_manager.api import cluster
from ces_manager.api.failed_attempts import BURST
from ces_manager.database import Database
from ces_manager.nodes.credentials import RENEWAL_BURST, Issuer
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


async def test_when_an_owner_usually_needs_its_device(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, "n1")).status_code == 200
    usual = {"times": "Mon-Fri 08:00-18:00", "zone": "Europe/Berlin"}
    said = await api.http.put("/v1/nodes/n1/calendar", json=usual)
    assert said.json()["calendar"] == usual
    assert (await api.http.get("/v1/nodes")).json()["items"][0]["calendar"] == usual
    assert "already" in (await api.http.put("/v1/nodes/n1/calendar", json=usual)).json()["remark"]
    for field, wrong in (("times", "weekdays"), ("zone", "Mars/Olympus"), ("colour", "red")):
        refused = await api.http.put("/v1/nodes/n1/calendar", json=usual | {field: wrong})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == field
    assert (await api.http.put("/v1/nodes/nobody/calendar", json=usual)).status_code == 404
    cleared = await api.http.delete("/v1/nodes/n1/calendar")
    assert "calendar" not in cleared.json() or cleared.json()["calendar"] is None


async def test_a_join_that_somebody_saw_cannot_be_sent_again_with_changes(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    key = new_user_key()
    body = {"token": token, "name": "n1", "public_key": key.public, "cpu": 2000, "memory": 2**30}
    route, data, headers = signed("join", body, key)
    admitted = await say(api, route, data, headers)
    assert admitted.status_code == 200
    changed = json.dumps(body | {"labels": {"site": "cellar"}, "cpu": 1}).encode()
    assert (await say(api, route, changed, headers)).status_code == 403
    unsigned = await say(api, route, changed, {"Content-Type": "application/json"})
    assert unsigned.status_code in (403, 422)
    by_another = signed("join", body | {"cpu": 1}, new_user_key())
    assert (await say(api, *by_another)).status_code == 403
    again = await say(api, route, data, headers)
    assert (again.status_code, again.json()["subnet"]) == (200, admitted.json()["subnet"]), "its answer may be lost"
    (node,) = (await api.http.get("/v1/nodes")).json()["items"]
    assert (node["cpu"], node["labels"]) == (2000, {})


async def test_an_agent_that_does_not_sign_is_told_to_be_upgraded(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    body = {"token": token, "name": "n1", "public_key": new_user_key().public, "cpu": 2000, "memory": 2**30}
    problem = await api.refused("POST", "/v1/nodes/join", 422, json=body)
    assert problem["errors"][0]["field"] == "header.Ces-Signature"
    assert "upgrade the agent" in problem["detail"]
    assert (await join(api, token)).status_code == 200, "the token stays good"


async def test_who_has_no_token_costs_no_signature_and_no_turn_of_the_writer(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("too dear for whoever comes along")

    for where, what in ((Database, "requested_write"), (Issuer, "issue"), (cluster, "is_signed")):
        monkeypatch.setattr(where, what, never)
    assert (await join(api, "no-such-token")).status_code == 403


async def test_an_address_that_fails_again_and_again_must_wait_and_valid_ones_never(api: Api) -> None:
    for number in range(2 * BURST):
        token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(api, token, f"n{number}")).status_code == 200
    answers = [await join(api, "no-such-token") for _ in range(BURST + 20)]
    assert {answer.status_code for answer in answers} == {403, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["Retry-After"]) >= 1
    assert "too many attempts" in refused.json()["detail"]
    assert (await api.http.get("/v1/nodes")).status_code == 200, "of joining alone"


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "roof1"])
async def test_an_address_that_is_no_hosts_is_refused_and_the_token_stays_good(api: Api, address: str) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    wrong = await join(api, token, host_address=address)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "host_address"
    assert "CES_HOST_ADDRESS" in wrong.json()["detail"]
    assert (await join(api, token, host_address="192.0.2.11")).status_code == 200


async def test_a_member_gets_another_credential_for_its_own_key_alone(api: Api) -> None:
    former, key = new_user_key(), new_user_key()
    for each in (former, key):
        token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
        assert (await join(api, token, key=each)).status_code == 200
    assert former.public in api.claims.refused

    async def renewed(name: str, by: UserKey, signer: UserKey) -> httpx.Response:
        return await say(api, *signed("renew", {"name": name, "public_key": by.public}, signer))

    answer = await renewed("n1", key, key)
    assert answer.status_code == 200
    claims = claims_of(answer.json()["jwt"])
    assert (claims["sub"], claims["name"], claims["exp"] - claims["iat"]) == (key.public, "n1", 86400)
    for wrong, said in (
        (await renewed("n1", former, former), "ces node token --node n1"),
        (await renewed("n2", key, key), "no node n2 has joined"),
        (await renewed("n1", key, former), "has not signed it"),
    ):
        assert wrong.status_code == 403
        assert said in wrong.json()["detail"]


async def test_a_member_that_asks_for_credentials_without_end_is_told_to_wait(api: Api) -> None:
    key = new_user_key()
    token = (await api.http.post("/v1/nodes/tokens", json={"node": "n1"})).json()["token"]
    assert (await join(api, token, key=key)).status_code == 200
    request = signed("renew", {"name": "n1", "public_key": key.public}, key)
    answers = [await say(api, *request) for _ in range(2 * RENEWAL_BURST)]
    assert answers[0].status_code == 200
    refused = next(answer for answer in answers if answer.status_code != 200)
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)


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
    key, token = new_user_key(), (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, key=key)).status_code == 200
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
    again = await join(api, token, key=key)
    assert again.status_code == 403
    assert "delete the agent's state folder" in again.json()["detail"]
    assert (await join(api, token)).status_code == 200, "the token stays good for another key"
    api.claims.error = None
    await api.http.post("/v1/nodes/n1/drain")
    assert (await api.http.post("/v1/nodes/n1/forget")).json()["credential"] == "revoked"
    assert key.public in api.claims.refused, "what could not be told before is told with the next"
    assert len(api.claims.refused) == 2


async def test_one_node_and_one_link_by_their_addresses(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    await join(api, token)
    await api.http.put("/v1/topology", json={"links": [{"src": "n1", "dst": "n2", "bandwidth": "100Mbit"}]})
    nodes, links = (await api.http.get("/v1/nodes")).json(), (await api.http.get("/v1/links")).json()
    assert (await api.http.get("/v1/nodes/n1")).json() == nodes["items"][0]
    assert [(await api.http.get(f"/v1/links/{link['src']}/{link['dst']}")).json() for link in links["items"]] == links[
        "items"
    ]
    await api.refused("GET", "/v1/nodes/n2", 404)
    await api.refused("GET", "/v1/links/n2/n3", 404)
    await api.refused("GET", f"/v1/nodes/{'n' * 200}", 422)


async def test_a_drain_is_tried_without_doing_it(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    await join(api, token)
    told = await api.http.post("/v1/nodes/n1/drain?dry_run=true")
    assert (told.status_code, told.json()) == (200, {"node": "n1", "cordoned": False, "jobs": [], "remark": None})
    assert (await api.http.get("/v1/nodes/n1")).json()["cordoned"] is False
    await api.refused("POST", "/v1/nodes/nobody/drain?dry_run=true", 404)
    await api.refused("POST", "/v1/nodes/n1/drain?dry_run=perhaps", 422)
    drained = await api.http.post("/v1/nodes/n1/drain")
    assert (drained.status_code, drained.json()["cordoned"]) == (202, True)


async def test_large_answers_are_compressed_and_streams_are_not(api: Api) -> None:
    job = (await api.submit())["id"]
    for _ in range(10):
        await api.submit()
    large = await api.http.get("/v1/jobs")
    assert (large.headers["content-encoding"], len(large.json()["items"])) == ("gzip", 11)
    assert large.headers["vary"] == "Authorization, Accept-Encoding"
    plain = await api.http.get("/v1/jobs", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == large.json()
    for path in ("/v1/whoami", f"/v1/jobs/{job}/logs"):
        assert "content-encoding" not in (await api.http.get(path)).headers
    for path in ("/v1/events", "/v1/live"):
        async with asyncio.timeout(30), api.http.stream("GET", path) as answer:
            assert "content-encoding" not in answer.headers
            assert await anext(answer.aiter_lines())


async def test_how_fast_a_node_is_as_its_agent_tells(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, "n1")).status_code == 200
    assert (await api.http.get("/v1/nodes/n1")).json()["scores"] is None
    integer = Measurement(kind="integer", rates=[REFERENCE["integer"]] * 5, source="a test")
    report = ScoreReport(node="n1", measurements=[integer])
    await api.bus.publish(subjects.report("n2", "scores"), report.encode())  # in another node's name
    await api.bus.publish(subjects.report("n1", "scores"), b'{"node": "n1", "measurements": [{"kind": "luck"}]}')
    assert (await api.http.get("/v1/nodes/n1")).json()["scores"] is None
    await api.bus.publish(subjects.report("n1", "scores"), report.encode())
    async with asyncio.timeout(60):
        while (found := (await api.http.get("/v1/nodes/n1")).json()["scores"]) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (found["level"], found["noisy"], found["raw"][0]["score"]) == (5.0, False, 1.0)
    assert (await api.http.get("/v1/nodes")).json()["items"][0]["scores"] == found


async def test_a_node_is_measured_again_when_an_operator_asks(api: Api) -> None:
    token = (await api.http.post("/v1/nodes/tokens", json={})).json()["token"]
    assert (await join(api, token, "n1")).status_code == 200
    assert "unreachable" in (await api.refused("POST", "/v1/nodes/n1/measure", 409))["detail"]
    await api.refused("POST", "/v1/nodes/nobody/measure", 404)
    await api.heard("n1")
    assert "nobody answers" in (await api.refused("POST", "/v1/nodes/n1/measure", 503))["detail"]
    needed = ["workers run there"]

    async def measures(_: Message) -> bytes:
        if needed:
            raise RemoteError("not-measured", needed[0])
        return b""

    await api.bus.serve(subjects.agent_rpc("n1", "measure"), measures)
    refused = await api.refused("POST", "/v1/nodes/n1/measure", 409)
    assert refused["detail"] == "node n1 does not measure: workers run there"
    needed.clear()
    assert (await api.http.post("/v1/nodes/n1/measure")).status_code == 202
