from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wired_workers import together, wired

from ces_common.topologies import topology_pairs
from ces_workloads.connections import Connections
from ces_workloads.model import Vector
from ces_workloads.ring import Ring, agreed_digest, chunks, schedule
from ces_workloads.rounds import TrainingFailed

T = TypeVar("T")


def on_every_rank(n: int, work: Callable[[int, Ring], T]) -> tuple[list[T], list[Connections]]:
    with wired(n, topology_pairs("ring", n)) as links:
        return together(n, lambda rank: work(rank, Ring(rank, n, links[rank]))), links


@given(length=st.integers(0, 200), parts=st.integers(1, 30))
def test_chunks_cover_a_vector_in_order_and_evenly(length: int, parts: int) -> None:
    cut = chunks(length, parts)
    assert len(cut) == parts
    assert [index for part in cut for index in range(part.start, part.stop)] == list(range(length))
    lengths = [part.stop - part.start for part in cut]
    assert max(lengths) - min(lengths) <= 1


@given(n=st.integers(1, 40))
def test_what_a_rank_sends_is_what_the_next_expects(n: int) -> None:
    schedules = [schedule(rank, n) for rank in range(n)]
    assert all(len(steps) == 2 * (n - 1) for steps in schedules)
    for rank in range(n):
        following = schedules[(rank + 1) % n]
        assert [step.send for step in schedules[rank]] == [step.receive for step in following]


@given(n=st.integers(1, 12))
def test_the_schedule_gives_every_rank_every_contribution_once(n: int) -> None:
    # Chunks as lists of who contributed: a sum that counts nobody twice and forgets nobody.
    held = [[[rank] for _ in range(n)] for rank in range(n)]
    for steps in zip(*(schedule(rank, n) for rank in range(n)), strict=True):
        moving = [list(held[rank][steps[rank].send]) for rank in range(n)]
        for rank in range(n):
            arrived, step = moving[rank - 1], steps[rank]
            held[rank][step.receive] = held[rank][step.receive] + arrived if step.add else arrived
    assert all(sorted(chunk) == list(range(n)) for row in held for chunk in row)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 7), length=st.integers(0, 50), seed=st.integers(0, 1000))
def test_all_reduce_over_sockets_is_the_sum_with_the_same_bits_everywhere(n: int, length: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, length)).astype(np.float32)
    expected = vectors.sum(axis=0)

    def work(rank: int, ring: Ring) -> bytes:
        own: Vector = vectors[rank].copy()
        ring.all_reduce(own)
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)
        return own.tobytes()

    results, _ = on_every_rank(n, work)
    assert len(set(results)) == 1


def test_vectors_larger_than_the_socket_buffers_do_not_block_the_ring() -> None:
    n, length = 3, 3_000_000

    def work(rank: int, ring: Ring) -> float:
        own = np.full(length, rank + 1, dtype=np.float32)
        ring.all_reduce(own)
        return float(own.min()) if own.min() == own.max() else float("nan")

    results, links = on_every_rank(n, work)
    assert results == [6.0] * n
    assert [link.bytes_sent for link in links] == [2 * (n - 1) * length * 4 // n] * n


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_gather_orders_by_rank(n: int) -> None:
    results, _ = on_every_rank(n, lambda rank, ring: ring.all_gather(bytes([rank, rank])))
    assert results == [[bytes([rank, rank]) for rank in range(n)]] * n


def test_replicas_that_differ_are_refused_at_every_rank() -> None:
    def work(rank: int, ring: Ring) -> str:
        with pytest.raises(TrainingFailed) as refusal:
            agreed_digest(ring, "same" if rank != 2 else "else", rank)
        return str(refusal.value)

    messages, _ = on_every_rank(3, work)
    assert "ranks [2]" in messages[0]
    assert "ranks [0, 1]" in messages[2]
