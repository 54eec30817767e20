"""Connections among neighbours: several at once, who is named when one is lost, and no wait without an end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from wired_workers import together, wired

from ces_common.topologies import topology_pairs
from ces_workloads.connections import Connections, PeerLost

NOTHING: dict[int, memoryview] = {}


def waiting_for(rank: int) -> dict[int, memoryview]:
    return {rank: memoryview(bytearray(1))}


def why_lost(link: Connections, waited_for: int) -> str:
    with pytest.raises(PeerLost) as loss:
        link.exchange(NOTHING, waiting_for(waited_for))
    link.close()
    return str(loss.value)


def test_all_neighbours_are_served_at_once_beyond_the_socket_buffers() -> None:
    n, size = 4, 3_000_000
    with wired(n, topology_pairs("star", n)) as links:
        got = {rank: bytearray(size) for rank in range(1, n)}

        def work(rank: int) -> None:
            content = memoryview(bytes([rank]) * size)
            if rank:
                links[rank].exchange({0: content}, {0: memoryview(bytearray(size))})
            else:
                links[0].exchange(dict.fromkeys(got, content), {r: memoryview(buffer) for r, buffer in got.items()})

        together(n, work)
        assert all(bytes(buffer) == bytes([rank]) * size for rank, buffer in got.items())
        counted = [(link.bytes_sent, link.bytes_received) for link in links]
    assert counted == [(3 * size, 3 * size)] + [(size, size)] * 3


@pytest.mark.parametrize(
    ("topology", "gone", "waits"),
    [
        ("ring", 2, {0: 4, 1: 0, 3: 2, 4: 3}),
        ("star", 2, {0: 2, 1: 0, 3: 0, 4: 0}),
        ("star", 0, {1: 0, 2: 0, 3: 0, 4: 0}),
        ("tree", 3, {0: 1, 1: 3, 2: 0, 4: 1}),  # over three edges from its place to rank 2
        ("gossip", 4, {0: 1, 1: 2, 2: 3, 3: 4}),
    ],
)
def test_every_rank_names_the_one_that_was_lost(topology: str, gone: int, waits: dict[int, int]) -> None:
    with wired(5, topology_pairs(topology, 5)) as links, ThreadPoolExecutor(4) as threads:
        running = [threads.submit(why_lost, links[rank], peer) for rank, peer in waits.items()]
        links[gone].close()
        messages = [future.result(timeout=30) for future in running]
    assert all(f"lost rank {gone} (worker-{gone} on n{gone}" in message for message in messages), messages


def test_a_silent_previous_rank_is_named_though_nobody_else_heard() -> None:
    with wired(3, topology_pairs("ring", 3)) as links:
        links[0].close()
        assert "lost rank 0 (worker-0 on n0" in why_lost(links[1], 0)


@pytest.mark.parametrize(
    ("outgoing", "incoming", "words"),
    [
        (NOTHING, {1: memoryview(bytearray(1))}, "it sent nothing for 1 s"),
        ({1: memoryview(bytes(50_000_000))}, NOTHING, "it took nothing for 1 s"),
    ],
)
def test_a_neighbour_that_does_nothing_for_too_long_is_lost(
    outgoing: dict[int, memoryview], incoming: dict[int, memoryview], words: str
) -> None:
    with (
        wired(2, topology_pairs("ring", 2), patience=1) as links,
        pytest.raises(PeerLost, match=rf"lost rank 1 \(worker-1 on n1.*{words}"),
    ):
        links[0].exchange(outgoing, incoming)


def test_all_name_the_silent_rank_and_not_one_that_only_waits_for_it() -> None:
    with wired(3, topology_pairs("tree", 3), patience=2) as links, ThreadPoolExecutor(2) as threads:
        # Rank 1 lives and says nothing; rank 2 waits for the root, which waits for rank 1.
        running = [threads.submit(why_lost, links[rank], peer) for rank, peer in ((0, 1), (2, 0))]
        messages = [future.result(timeout=30) for future in running]
    assert all("lost rank 1 (worker-1 on n1" in message for message in messages), messages


def test_leaving_in_order_waits_for_those_that_still_send() -> None:
    with wired(2, topology_pairs("ring", 2)) as links, ThreadPoolExecutor(1) as threads:
        leaving = threads.submit(links[0].finish)
        # Rank 0 is done, yet rank 1 can still send to it what remains.
        links[1].exchange({0: memoryview(b"last")}, NOTHING)
        assert not leaving.done()
        links[1].finish()
        leaving.result(timeout=10)


def test_who_is_done_stays_for_a_neighbour_that_trains_for_longer_than_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ces_workloads.connections._SLICE_SECONDS", 0.01)
    with wired(2, topology_pairs("ring", 2), patience=0.02) as links, ThreadPoolExecutor(1) as threads:
        leaving = threads.submit(links[0].finish)
        with pytest.raises(TimeoutError):
            leaving.result(timeout=0.3)
        links[1].finish()
        leaving.result(timeout=10)


def test_leaving_does_not_wait_for_ever() -> None:
    with wired(2, topology_pairs("ring", 2), leaving=1) as links:
        links[0].finish()
