"""Joining with one-time tokens."""

from __future__ import annotations

import pytest
from manager_world import World, ring

from ces_common.messages.api import JoinRequest, JoinToken, JoinTokenRequest
from ces_manager.errors import Conflict, Forbidden, Invalid
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cpu": 499}, "cpu 0.499 cores, of which 0.5 cores are in use"),
        ({"memory": 2**20}, "memory 1 MiB, of which 128 MiB is in use"),
        ({"network": "none"}, "network tc -> none"),
        ({"runtime": "docker"}, "runtime process -> docker"),
    ],
)
def test_a_node_that_joins_again_still_fits_what_runs_there(world: World, change: dict[str, object], said: str) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest()))
    world.write(lambda tx: membership.join_node(tx, request(token, "new", network="tc")))
    world.beat("new")
    job = world.submit(ring(tasks=1))
    world.run(job, ["new"])
    with pytest.raises(Conflict, match=said):
        world.write(lambda tx: membership.join_node(tx, request(token, "new", **({"network": "tc"} | change))))
    assert world.write(lambda tx: membership.join_node(tx, request(token, "new", network="tc", cpu=500))).cpu == 500
    world.cancel(job)
    world.confirm(job)
    again = world.write(lambda tx: membership.join_node(tx, request(token, "new", **({"network": "tc"} | change))))
    assert all(getattr(again, name) == value for name, value in change.items())


def test_a_forgotten_nodes_subnet_rests(world: World) -> None:
    def join(name: str, key: str) -> str:
        token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest()))
        return world.write(lambda tx: membership.join_node(tx, request(token, name, key))).subnet

    first = join("one", KEYS[0])
    world.forget("one")
    assert join("two", KEYS[1]) != first


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
