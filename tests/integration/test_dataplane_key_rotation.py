"""Keys of encrypted links that are replaced under connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dataplane_row import MBIT, Row, ip
from encrypted_row import KINDS, Watched, all_up, encrypted_row, have_only, state, until
from namespace_traffic import streams

from ces_edge_agent.dataplane.wireguard import keys
from ces_edge_agent.dataplane.wireguard.implementations import Kind
from ces_edge_agent.dataplane.wireguard.keys import KeyRotation

pytestmark = pytest.mark.needs("root")
LONGEST_GAP_S = 4.0  # in which nothing arrives, on a busy machine: half of what a try takes that fails


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    return have_only(request.param, monkeypatch)


@pytest.fixture
async def row(kind: Kind) -> AsyncIterator[Row]:
    async with encrypted_row() as row:
        yield row


async def test_a_key_is_replaced_under_a_connection(row: Row, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SETTLE_S", 0.2)
    one, two = row.worker("one", 1, "a"), row.worker("two", 3, "a")
    row.reserve(1, one, two, 20 * MBIT)
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    (first,) = row.keys[2]
    with streams((one.file, two.file, two.address)) as (stream,):
        watched = Watched(row, stream)
        await watched.flows()
        await row.networks[2].rotate_key()

        async def told(count: int) -> bool:
            await watched.look()
            await row.tell_keys()
            return len(row.keys[2]) == count

        await until(lambda: told(2), "n2 tells its next key")
        before, second = row.keys[2]
        assert before == first
        await row.apply()
        await until(lambda: told(1), "the next key is the only one")
        assert row.keys[2] == [second]
        await watched.flows()
        await row.apply()
        await watched.flows()
    for neighbour in (1, 3):
        assert first not in state(row, neighbour, kind).peers
        assert state(row, neighbour, kind).peers[second].allowed == {"10.2.0.1/32"}
    assert state(row, 2, kind).public == second


async def test_a_key_stays_where_a_neighbour_does_not_know_the_next(
    row: Row, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be cut off from the manager. Connections to it stay, and so does the key."""
    monkeypatch.setattr(keys, "SETTLE_S", 0.2)
    one, two = row.worker("one", 1, "a"), row.worker("two", 2, "a")
    row.reserve(1, one, two, 20 * MBIT)
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    (first,) = row.keys[2]
    with streams((one.file, two.file, two.address)) as (stream,):
        await row.networks[2].rotate_key()

        async def told() -> bool:
            await row.tell_keys()
            return len(row.keys[2]) == 2

        await until(told, "n2 tells its next key")
        for host in (2, 3):
            assert await row.networks[host].apply(row.desired(host, 2), row.sandboxes(host)) == {}

        async def on_trial() -> bool:
            return state(row, 2, kind).public == row.keys[2][1]

        async def back() -> bool:
            return state(row, 2, kind).public == first

        await until(on_trial, "n2 tries its next key")
        await until(back, "n2 is back at the key that all neighbours know")
        received = stream.received

        async def more() -> bool:
            return stream.received > received + 100_000

        await until(more, "the stream goes on")
        assert stream.failed is None
    await until(lambda: all_up(row), "links are up")


async def all_have_others(row: Row, watched: Watched, first: dict[int, list[str]]) -> bool:
    """Pass on what the hosts tell; whether each has another key than at first."""
    await watched.look()
    before = dict(row.keys)
    await row.tell_keys()
    if row.keys != before:
        await row.apply()
    return all(len(row.keys[host]) == 1 and row.keys[host] != first[host] for host in row.hosts)


@asynccontextmanager
async def all_rotate(row: Row, to: int) -> AsyncIterator[tuple[Watched, dict[int, list[str]]]]:
    """All hosts are to replace their keys, while the first one sends to another. Gives the keys at first, too."""
    one, two = row.worker("one", 1, "a"), row.worker("two", to, "a")
    row.reserve(1, one, two, 20 * MBIT)
    await row.apply()
    await until(lambda: all_up(row), "links are up")
    first = dict(row.keys)
    with streams((one.file, two.file, two.address)) as (stream,):
        watched = Watched(row, stream)
        await watched.flows()
        for network in row.networks.values():
            await network.rotate_key()
        yield watched, first


async def test_keys_of_all_that_are_replaced_at_once_cost_no_more_than_those_of_one(
    row: Row, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "SETTLE_S", 1.0)  # until each knows of the others
    async with all_rotate(row, to=3) as (watched, first):
        await until(lambda: all_have_others(row, watched, first), "all have other keys", patience_s=60.0)
        await watched.flows()
    assert watched.longest_s < LONGEST_GAP_S
    assert [state(row, host, kind).public for host in row.hosts] == [row.keys[host][0] for host in row.hosts]


async def test_of_two_that_cannot_hear_each_other_one_waits_with_its_next_key(
    row: Row, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If both went over then, neither would understand the other once they can."""
    monkeypatch.setattr(keys, "SETTLE_S", 1.0)
    monkeypatch.setattr(keys, "TRIAL_S", 30.0)  # with the wire cut for some of it: handshakes are tried every 5 s
    looks: Counter[KeyRotation] = Counter()
    look = KeyRotation.look

    def counted(rotation: KeyRotation, *arguments: Any) -> None:
        looks[rotation] += 1
        look(rotation, *arguments)

    monkeypatch.setattr(KeyRotation, "look", counted)
    async with all_rotate(row, to=2) as (watched, first):

        async def told() -> bool:
            await row.tell_keys()
            return all(len(told) == 2 for told in row.keys.values())

        async def on_trial() -> bool:
            return state(row, 1, kind).public == row.keys[1][1]

        await until(told, "all tell their next keys")
        ip("-n", f"{row.prefix}lan", "link", "set", "port1", "down")
        await row.apply()
        await until(on_trial, "n1 tries its next key")
        looks.clear()

        async def all_looked() -> bool:
            return len(looks) == 3 and min(looks.values()) > 10

        await until(all_looked, "the others could have gone over as well")
        ip("-n", f"{row.prefix}lan", "link", "set", "port1", "up")
        await until(lambda: all_have_others(row, watched, first), "all have other keys", patience_s=60.0)
        await until(lambda: all_up(row), "links are up again")
        watched.down.clear()  # the wire was cut, on a busy machine for longer than a link may be silent
        await watched.flows()
