"""Joining with one-time tokens."""

from __future__ import annotations

import pytest
from manager_world import World

from ces_common.messages.api import JoinRequest, JoinToken, JoinTokenRequest
from ces_manager.errors import Forbidden, Invalid
from ces_manager.nodes import membership

NODES = ["a", "b", "c", "d"]


KEYS = ["U" + letter * 55 for letter in "ABC"]


def node_states(world: World) -> dict[str, str]:
    return {node.name: node.state for node in world.snapshot().nodes}


def request(token: JoinToken, name: str, key: str = KEYS[0], **more: object) -> JoinRequest:
    return JoinRequest.model_validate(
        {"token": token.token, "name": name, "public_key": key, "cpu": 1000, "memory": 2**30, **more}
    )


def test_a_token_admits_one_key_once(world: World) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest()))
    joined = world.write(lambda tx: membership.join_node(tx, request(token, "new")))
    assert joined.subnet == "10.64.4.0/24"
    assert node_states(world)["new"] == "unreachable"
    world.beat("new")
    assert node_states(world)["new"] == "ready"
    again = world.write(lambda tx: membership.join_node(tx, request(token, "new", cpu=500)))
    assert (again.subnet, again.cpu) == (joined.subnet, 500)
    for other in (request(token, "new", KEYS[1]), request(token, "second")):
        with pytest.raises(Forbidden):
            world.write(lambda tx, other=other: membership.join_node(tx, other))


def test_tokens_expire_and_may_be_for_one_name(world: World) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="e", ttl_s=10)))
    with pytest.raises(Forbidden, match="not for node f"):
        world.write(lambda tx: membership.join_node(tx, request(token, "f")))
    for wrong in ({"host_address": "::no"}, {"arch": "\0"}):
        with pytest.raises(Invalid, match=next(iter(wrong))):
            world.write(lambda tx, wrong=wrong: membership.join_node(tx, request(token, "e", **wrong)))
    world.wait(11)
    with pytest.raises(Forbidden, match="expired"):
        world.write(lambda tx: membership.join_node(tx, request(token, "e")))
    forged = token.model_copy(update={"token": "guess"})
    with pytest.raises(Forbidden, match="not known"):
        world.write(lambda tx: membership.join_node(tx, request(forged, "e")))
    assert "e" not in node_states(world)
