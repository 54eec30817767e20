"""Who has applied: bounded, for a day, and believed in nothing."""

from __future__ import annotations

from typing import Any

import pytest
from manager_world import World
from pydantic import ValidationError
from sqlalchemy import select

from ces_common.db.access_tables import ApplicantRow
from ces_common.messages.membership import Applicant, ApplicantRequest, JoinRequest, JoinTokenRequest
from ces_manager.api.applicants import SITE
from ces_manager.api.failure_counts import network_of
from ces_manager.errors import Conflict, NotFound
from ces_manager.nodes import applicants, membership

NODES = ["a", "b", "c", "d"]
KEYS = ["SHA256:" + letter * 43 for letter in "AB"]
MOST = 8


def request(name: str = "roof1", **more: Any) -> ApplicantRequest:
    return ApplicantRequest.model_validate({"name": name, "host_keys": KEYS[:1]} | more)


def applies(world: World, name: str = "roof1", address: str = "192.0.2.11", most: int = MOST, **more: Any) -> Applicant:
    body = request(name, **more)
    return world.write(lambda tx: applicants.keep_applicant(tx, body, address, address, most))


def listed(world: World, limit: int = 100, cursor: str | None = None) -> list[Applicant]:
    with world.uow.read() as tx:
        return applicants.list_applicants(tx, world.now, cursor=cursor, limit=limit).items


def test_who_applies_is_on_the_list_for_a_day(world: World) -> None:
    told = applies(world, arch="aarch64", user="pi", port=2222)
    assert (told.state, told.address, told.user, told.port, told.host_keys) == (
        "applied", "192.0.2.11", "pi", 2222, KEYS[:1],
    )  # fmt: skip
    assert listed(world) == [told]
    assert told.ends_at - told.applied_at == applicants.LASTS
    world.wait(applicants.LASTS.total_seconds() - 1)
    assert listed(world) == [told]
    world.wait(1)
    assert listed(world) == []
    with pytest.raises(NotFound):
        world.write(lambda tx: applicants.refuse_applicants(tx, "roof1"))
    world.prune()
    with world.uow.read() as tx:
        assert tx.session.scalars(select(ApplicantRow)).all() == []


def test_it_is_no_news_and_no_version(world: World) -> None:
    before, version = world.events(), world.snapshot().version
    applies(world)
    world.write(lambda tx: applicants.refuse_applicants(tx, "roof1"))
    assert (world.events(), world.snapshot().version) == (before, version)


def test_who_applies_again_takes_no_second_place(world: World) -> None:
    for _ in range(3 * MOST):
        applies(world)
    applies(world, host_keys=KEYS)
    assert [each.host_keys for each in listed(world)] == [KEYS]


def test_who_says_the_same_again_is_only_read_and_stays_no_longer(world: World) -> None:
    def looked_up(address: str = "192.0.2.11", **more: Any) -> Applicant | None:
        with world.uow.read() as tx:
            return applicants.look_up(tx, request(**more), address, address, MOST, world.now)

    assert looked_up() is None
    first = applies(world)
    world.wait(60)
    assert looked_up() == first
    assert looked_up(address="192.0.2.66") is None
    assert [looked_up(**more) for more in ({"port": 2222}, {"host_keys": KEYS}, {"arch": "x"})] == [None] * 3
    world.wait(applicants.LASTS.total_seconds() - 60)
    assert looked_up() is None


def test_a_site_counts_as_one_network() -> None:
    assert network_of("2001:db8:7:1::1", SITE) == network_of("2001:db8:7:ffff::1", SITE) == "2001:db8:7::/48"
    assert network_of("2001:db8:7:1::1") == "2001:db8:7:1::/64"
    assert network_of("::ffff:192.0.2.1", SITE) == network_of("192.0.2.1", SITE) == "192.0.2.1"


def test_nobody_elsewhere_changes_what_a_device_has_said(world: World) -> None:
    first = applies(world)
    applies(world, address="192.0.2.66", host_keys=KEYS[1:])
    assert [each.address for each in listed(world)] == ["192.0.2.11", "192.0.2.66"]
    assert listed(world)[0] == first
    gone = world.write(lambda tx: applicants.refuse_applicants(tx, "roof1"))
    assert gone.addresses == ["192.0.2.11", "192.0.2.66"]
    assert listed(world) == []


def test_one_network_takes_a_part_of_the_places_and_all_of_them_no_more_than_there_are(world: World) -> None:
    part = MOST // applicants.ONE_NETWORK
    for number in range(part):
        applies(world, f"n{number}")
    with pytest.raises(Conflict, match=f"^{part} devices have applied from 192.0.2.11"):
        applies(world, "another")
    for network in range(1, applicants.ONE_NETWORK):
        for number in range(part):
            applies(world, f"n{number}", address=f"198.51.100.{network}")
    with pytest.raises(Conflict, match=f"^{MOST} devices have applied, "):
        applies(world, "another", address="203.0.113.1")
    assert len(listed(world)) == MOST
    assert applies(world, "n0").name == "n0", "who is on the list may say something else"
    world.wait(applicants.LASTS.total_seconds())
    assert applies(world, "another").name == "another"


def test_none_may_apply_where_the_operator_has_not_said_so(world: World) -> None:
    with pytest.raises(NotFound, match="CES_MAX_APPLICANTS"):
        applies(world, most=0)


def test_a_list_comes_in_pages(world: World) -> None:
    for name in ("c", "a", "b"):
        applies(world, name, address=f"192.0.2.{ord(name)}")
    with world.uow.read() as tx:
        first = applicants.list_applicants(tx, world.now, cursor=None, limit=2)
        rest = applicants.list_applicants(tx, world.now, cursor=first.next, limit=2)
    assert [each.name for each in (*first.items, *rest.items)] == ["a", "b", "c"]
    assert (first.next, rest.next) == ("2", None)


def test_a_node_that_joins_is_off_the_list(world: World) -> None:
    applies(world)
    applies(world, "roof2")
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="roof1")))
    asked = {"token": token.token, "name": "roof1", "public_key": "U" + "A" * 55, "cpu": 1000, "memory": 2**30}
    world.write(lambda tx: membership.join_node(tx, JoinRequest.model_validate(asked)))
    assert [each.name for each in listed(world)] == ["roof2"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "roof 1"},
        {"name": "r" * 64},
        {"host_keys": []},
        {"host_keys": KEYS[:1] * 5},
        {"host_keys": ["SHA256:" + "A" * 42]},
        {"host_keys": ["\x1b[2J"]},
        {"user": "-oProxyCommand=id"},
        {"user": "root@elsewhere"},
        {"user": "root\n"},
        {"port": 0},
        {"port": 65536},
        {"arch": "x86_64; rm"},
        {"address": "192.0.2.1"},
    ],
)
def test_what_would_be_something_else_for_ssh_or_a_terminal_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        request(**wrong)
