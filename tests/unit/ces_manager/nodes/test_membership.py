"""Joining with one-time tokens."""

from __future__ import annotations

import pytest
from manager_world import World, ring
from pydantic import ValidationError

from ces_common.db.tables import NodeRow
from ces_common.jobfile import JobFile
from ces_common.messages.membership import JoinRequest, JoinToken, JoinTokenRequest
from ces_manager.errors import Conflict, Forbidden, Invalid
from ces_manager.nodes import membership
from ces_manager.nodes.credentials import check_member
from ces_manager.nodes.revocation import revoked_keys

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
    for other in (request(token, "new", KEYS[1]), request(token, "second")):
        with pytest.raises(Forbidden):
            world.write(lambda tx, other=other: membership.join_node(tx, other))


def test_a_request_that_is_seen_and_sent_again_changes_nothing(world: World) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest()))
    first = request(token, "new", labels={"site": "roof"})
    joined = world.write(lambda tx: membership.join_node(tx, first))
    for change in ({"cpu": 500}, {"labels": {"site": "cellar"}}, {"host_address": "192.0.2.66"}):
        changed = first.model_copy(update=change)
        with pytest.raises(Forbidden, match="with other settings: to change them, make another one"):
            world.write(lambda tx, changed=changed: membership.join_node(tx, changed))
    another = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="new")))
    world.write(lambda tx: membership.join_node(tx, request(another, "new", cpu=700)))
    before = world.events()
    assert world.write(lambda tx: membership.join_node(tx, first)) == joined, "the answer may have been lost"
    assert world.events() == before
    with world.uow.read() as tx:
        row = tx.session.get_one(NodeRow, "new")
        assert (row.cpu, row.labels) == (700, {})


def test_another_key_takes_the_place_of_the_one_before(world: World) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest()))
    world.write(lambda tx: membership.join_node(tx, request(token, "new", KEYS[0], network="tc")))
    world.beat("new")
    job = world.submit(ring(tasks=1))
    world.run(job, ["new"])
    open_to_all, for_it = (
        world.write(lambda tx, name=name: membership.create_token(tx, JoinTokenRequest(node=name)))
        for name in (None, "new")
    )
    with pytest.raises(Forbidden, match="make a token for it alone"):
        world.write(lambda tx: membership.join_node(tx, request(open_to_all, "new", KEYS[1])))
    with pytest.raises(Conflict, match=r"the device with that key may still run ring/w-0: drain the node first"):
        world.write(lambda tx: membership.join_node(tx, request(for_it, "new", KEYS[1])))
    world.cancel(job)
    world.confirm(job)
    assert world.write(lambda tx: membership.join_node(tx, request(for_it, "new", KEYS[1]))).replaced
    with world.uow.read() as tx:
        row = tx.session.get_one(NodeRow, "new")
        assert (row.public_key, row.least_generation) == (KEYS[1], world.snapshot().version)
        assert revoked_keys(tx) == [KEYS[0]]
        check_member(tx, "new", KEYS[1])
        with pytest.raises(Forbidden, match="another device has joined in the place of node new"):
            check_member(tx, "new", KEYS[0])
    with pytest.raises(Forbidden, match="delete the agent's state folder"):
        world.write(lambda tx: membership.join_node(tx, request(token, "new", KEYS[0], network="tc")))


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
    def join(**settings: object) -> None:
        token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="new")))
        world.write(lambda tx: membership.join_node(tx, request(token, "new", **({"network": "tc"} | settings))))

    def kept(name: str) -> object:
        with world.uow.read() as tx:
            return getattr(tx.session.get_one(NodeRow, "new"), name)

    join()
    world.beat("new")
    job = world.submit(ring(tasks=1))
    world.run(job, ["new"])
    with pytest.raises(Conflict, match=said):
        join(**change)
    join(cpu=500)
    assert kept("cpu") == 500
    world.cancel(job)
    world.confirm(job)
    join(**change)
    assert all(kept(name) == value for name, value in change.items())


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
    with pytest.raises(Invalid, match="arch"):
        world.write(lambda tx: membership.join_node(tx, request(token, "e", arch="\0")))
    world.wait(11)
    with pytest.raises(Forbidden, match="expired"):
        world.write(lambda tx: membership.join_node(tx, request(token, "e")))
    forged = token.model_copy(update={"token": "guess"})
    with pytest.raises(Forbidden, match="not known"):
        world.write(lambda tx: membership.join_node(tx, request(forged, "e")))
    assert "e" not in node_states(world)


def rejoin(world: World, name: str, **more: object) -> None:
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node=name)))
    world.write(lambda tx: membership.join_node(tx, request(token, name, **more)))


def test_cards_are_those_that_a_node_names_and_numbers_for_the_rest(world: World) -> None:
    named = {"id": "GPU-1", "model": "Tesla T4", "memory": 2**34, "shareable": "counted"}
    rejoin(world, "new", gpu=2, cards=[named])
    (node,) = (each for each in world.snapshot().nodes if each.name == "new")
    assert [card.id for card in node.cards] == ["GPU-1", "gpu1"]
    assert node.cards[0].model_dump() == named


def test_a_node_whose_cards_are_in_use_keeps_them(world: World) -> None:
    rejoin(world, "new", gpu=1)
    world.beat("new")
    job = world.submit(ring(tasks=1, gpu=1))
    world.run(job, ["new"])
    with pytest.raises(Conflict, match="card gpu0 is in use"):
        rejoin(world, "new", gpu=1, cards=[{"id": "GPU-1"}])
    rejoin(world, "new", gpu=2)
    world.cancel(job)
    world.confirm(job)
    rejoin(world, "new", gpu=1, cards=[{"id": "GPU-1"}])


T4 = {"id": "GPU-1", "model": "Tesla T4", "memory": 16 * 2**30, "shareable": "counted"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"memory": 7 * 2**30}, "card GPU-1 has 7 GiB, of which 8 GiB is in use"),
        ({"shareable": "no"}, "card GPU-1 is not shared any more, and shares of it are in use"),
        ({"model": "Tesla P100"}, "card GPU-1 is Tesla P100, and a job has it as T4"),
        ({"model": ""}, "card GPU-1 is of unknown model, and a job has it as T4"),
        ({"memory": 9 * 2**30, "model": "NVIDIA T4", "shareable": "mps"}, None),
    ],
)
def test_a_card_goes_on_being_what_is_held_of_it(world: World, changed: dict[str, object], why: str | None) -> None:
    rejoin(world, "new", gpu=1, cards=[T4])
    world.beat("new")
    group = {"name": "w", "command": ["true"], "resources": {"cpu": "500m", "memory": "128Mi", "gpu": "500m"}}
    file = {"name": "share", "tasks": [group | {"constraints": {"gpu_model": ["T4"]}}]}
    job = world.submit(JobFile.model_validate(file))
    world.run(job, ["new"])
    if why is None:
        rejoin(world, "new", gpu=1, cards=[T4 | changed])
        return
    with pytest.raises(Conflict, match=why):
        rejoin(world, "new", gpu=1, cards=[T4 | changed])
    world.cancel(job)
    world.confirm(job)
    rejoin(world, "new", gpu=1, cards=[T4 | changed])


def test_a_number_that_a_card_has_already_goes_to_no_other(world: World) -> None:
    rejoin(world, "new", gpu=2, cards=[{"id": "gpu1"}])
    (node,) = (each for each in world.snapshot().nodes if each.name == "new")
    assert [card.id for card in node.cards] == ["gpu1", "gpu0"]


@pytest.mark.parametrize(
    ("cards", "why"),
    [
        ([{"id": "GPU-1"}, {"id": "GPU-1"}], "card GPU-1 is named twice"),
        ([{"id": "GPU-1"}, {"id": "GPU-2"}, {"id": "GPU-3"}], "names 3 cards, and gpu says 2"),
        ([{"id": "GPU 1"}], "should match pattern"),
    ],
)
def test_cards_that_cannot_be(world: World, cards: list[dict[str, str]], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        rejoin(world, "new", gpu=2, cards=cards)
