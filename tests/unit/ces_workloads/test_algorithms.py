"""Each algorithm against the same arithmetic in one process, over real sockets, with what it sends counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Event
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wired_workers import Pairs, member, small_data, small_settings, together, wired

from ces_common.topologies import topology_pairs
from ces_workloads.connections import Connections
from ces_workloads.etree import ROOT_EVERY, ETree
from ces_workloads.gossip import Gossip, pairs
from ces_workloads.model import Vector
from ces_workloads.overlay import MissingFlow
from ces_workloads.parameter_server import ParameterServer
from ces_workloads.replica import Learner, Replica
from ces_workloads.ring import RingTraining
from ces_workloads.rounds import Outcome, taking_part

T = TypeVar("T")
DATA = small_data()
SETTINGS = small_settings()
MODEL = Replica(SETTINGS, DATA).parameters
SMALL = 2 * 8  # bytes of two 64-bit numbers: a loss and a count


@contextmanager
def workers(kind: Callable[..., T], n: int, flows: Pairs, **more: Any) -> Iterator[tuple[list[T], list[Connections]]]:
    """Every worker of a job, its counters at zero as before the first round."""
    with wired(n, flows) as links:
        made = together(n, lambda rank: kind(SETTINGS, DATA, member(rank, n, flows), links[rank], **more))
        for link in links:
            link.bytes_sent = link.bytes_received = 0
        yield made, links


def rounds(made: list[Any], count: int) -> list[list[Outcome]]:
    return together(len(made), lambda rank: [made[rank].round(number) for number in range(1, count + 1)])


def carried(links: list[Connections]) -> list[tuple[int, int]]:
    """Bytes sent and received."""
    return [(link.bytes_sent, link.bytes_received) for link in links]


def told_of(learners: list[Learner], losses: Sequence[float]) -> tuple[float, float]:
    """The mean loss, and the accuracy over all."""
    return float(np.mean(losses)), sum(learner.count_correct() for learner in learners) / len(DATA.test)


def assert_all_told(outcomes: list[list[Outcome]], told: list[tuple[float, float]]) -> None:
    """Every worker, in every round."""
    for each in outcomes:
        np.testing.assert_allclose([(outcome.loss, outcome.accuracy) for outcome in each], told, rtol=1e-4)


def in_one_process(shares: int, count: int) -> tuple[list[Learner], list[tuple[float, float]]]:
    """Data-parallel training as a loop: the mean gradient of all shares, one step, then the accuracy over all."""
    learners = [Learner(SETTINGS, DATA, share, shares) for share in range(shares)]
    told = []
    for _ in range(count):
        losses, gradients = zip(*(learner.gradient() for learner in learners), strict=True)
        for learner in learners:
            learner.update(np.mean(gradients, axis=0, dtype=np.float32))
        told.append(told_of(learners, losses))
    return learners, told


@pytest.mark.parametrize(
    ("kind", "topology", "shares"), [(ParameterServer, "star", 3), (RingTraining, "ring", 4)], ids=["server", "ring"]
)
def test_gradients_averaged_over_the_network_train_as_in_one_process(
    kind: Callable[..., Any], topology: str, shares: int
) -> None:
    expected, told = in_one_process(shares, 5)
    with workers(kind, 4, topology_pairs(topology, 4)) as (made, _):
        outcomes = rounds(made, 5)
        digests = together(4, lambda rank: made[rank].end())
        learner = (made[1]._part if kind is ParameterServer else made[1])._learner
        np.testing.assert_allclose(learner.parameters, expected[0].parameters, rtol=1e-4, atol=1e-5)
    assert len(set(digests)) == 1
    assert_all_told(outcomes, told)


def test_what_a_parameter_server_carries() -> None:
    n, count = 4, 3
    with workers(ParameterServer, n, topology_pairs("star", n)) as (made, links):
        rounds(made, count)
        counted = carried(links)
    worker = count * (MODEL.nbytes + SMALL)
    assert counted == [((n - 1) * worker,) * 2] + [(worker, worker)] * (n - 1)


def scattered(made: list[Any]) -> Vector:
    """Give each worker other parameters; all of them, by rank."""
    for rank, worker in enumerate(made):
        worker.learner.parameters[:] = np.random.default_rng(rank).normal(size=len(MODEL)).astype(np.float32)
    return np.array([worker.learner.parameters for worker in made])


# A binary tree of seven, one of five, a star, a chain, and a worker by itself.
TREES = [topology_pairs("tree", 7), topology_pairs("tree", 5), topology_pairs("star", 4)]
TREES += [[(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)], []]


@pytest.mark.parametrize("flows", TREES, ids=["seven", "five", "star", "chain", "alone"])
def test_a_tree_averages_all_models_by_the_images_they_saw(flows: Pairs) -> None:
    n = 1 + max((rank for pair in flows for rank in pair), default=0)
    with workers(ETree, n, flows) as (made, _):
        images = [worker.learner.images for worker in made]
        expected = np.average(scattered(made), axis=0, weights=images)
        together(n, lambda rank: made[rank].average(with_root=True))
        for worker in made:
            np.testing.assert_allclose(worker.learner.parameters, expected, rtol=1e-5, atol=1e-6)
        assert len({worker.end() for worker in made}) == 1
    assert sum(images) == len(DATA.train)
    assert len(set(images)) > 1 or n == 1


def test_clusters_average_without_the_root() -> None:
    clusters = [[0], [1, 3, 4], [2, 5, 6]]
    with workers(ETree, 7, topology_pairs("tree", 7)) as (made, links):
        before = scattered(made)
        together(7, lambda rank: made[rank].average(with_root=False))
        for cluster in clusters:
            images = [made[rank].learner.images for rank in cluster]
            expected = np.average(before[cluster], axis=0, weights=images)
            for rank in cluster:
                np.testing.assert_allclose(made[rank].learner.parameters, expected, rtol=1e-5, atol=1e-6)
        assert links[0].bytes_sent == links[0].bytes_received == 0


def test_a_tree_that_averages_all_after_every_step_is_federated_averaging() -> None:
    n, count = 5, 4
    learners = [Learner(SETTINGS, DATA, share, n) for share in range(n)]
    told = []
    for _ in range(count):
        losses = [learner.step() for learner in learners]
        mean = np.average([each.parameters for each in learners], axis=0, weights=[each.images for each in learners])
        for learner in learners:
            learner.parameters[:] = mean
        told.append(told_of(learners, losses))
    with workers(ETree, n, topology_pairs("tree", n), root_every=1) as (made, _):
        outcomes = rounds(made, count)
        np.testing.assert_allclose(made[3].learner.parameters, mean, rtol=1e-4, atol=1e-5)
    assert_all_told(outcomes, told)


def test_what_a_tree_carries() -> None:
    n, count = 5, 3
    with workers(ETree, n, topology_pairs("tree", n)) as (made, links):
        rounds(made, count)
        counted = carried(links)
    device = ROOT_EVERY * MODEL.nbytes + SMALL  # to its head after every step
    lone = MODEL.nbytes + SMALL  # to the root once in a round: worker 2, and the head for its cluster
    assert counted == [(count * each,) * 2 for each in (2 * lone, 2 * device + lone, lone, device, device)]


edges = st.integers(2, 9).flatmap(
    lambda n: st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]))
)


@given(some=edges, seed=st.integers(0, 99), number=st.integers(1, 99))
def test_pairs_are_a_matching_that_leaves_no_two_neighbours_idle(
    some: set[tuple[int, int]], seed: int, number: int
) -> None:
    drawn = pairs(sorted(some), seed, number)
    assert all(drawn[partner] == rank and rank != partner for rank, partner in drawn.items())
    assert all(tuple(sorted(pair)) in some for pair in drawn.items())
    assert all(one in drawn or other in drawn for one, other in some)
    assert drawn == pairs(sorted(some), seed, number)


@pytest.mark.parametrize("flows", [topology_pairs("gossip", 6), topology_pairs("tree", 5)], ids=["gossip", "tree"])
def test_gossip_keeps_the_mean_and_lets_the_variance_fall(flows: Pairs) -> None:
    n = 1 + max(rank for pair in flows for rank in pair)
    drawn = [pairs(sorted({(a, b) for a, b in flows if a < b}), SETTINGS.seed, number) for number in range(1, 21)]
    with workers(Gossip, n, flows) as (made, _):
        before = scattered(made)
        variance = [before.var(axis=0).sum()]
        for partners in drawn:
            together(n, lambda rank: partners.get(rank) is None or made[rank].meet(partners[rank]))  # noqa: B023
            models = np.array([worker.learner.parameters for worker in made])
            np.testing.assert_allclose(models.mean(axis=0), before.mean(axis=0), rtol=1e-4, atol=1e-5)
            variance.append(models.var(axis=0).sum())
    assert all(later <= earlier * (1 + 1e-5) for earlier, later in pairwise(variance))
    assert variance[-1] < variance[0] / 100


def test_gossip_trains_hears_and_carries_as_in_one_process() -> None:
    n, count = 5, 8
    flows = topology_pairs("gossip", n)
    drawn = [
        pairs(sorted({(a, b) for a, b in flows if a < b}), SETTINGS.seed, number) for number in range(1, count + 1)
    ]
    learners = [Learner(SETTINGS, DATA, share, n) for share in range(n)]
    heard: list[dict[int, tuple[int, float, int]]] = [{} for _ in range(n)]  # round, loss and right ones, by rank
    told: list[list[tuple[float, float]]] = [[] for _ in range(n)]
    for number, partners in enumerate(drawn, start=1):
        losses = [learner.step() for learner in learners]
        for one, other in partners.items():
            if one < other:
                mean = (learners[one].parameters + learners[other].parameters) / 2
                learners[one].parameters[:] = learners[other].parameters[:] = mean
                either = heard[one], heard[other]
                heard[one] = {r: max(h[r] for h in either if r in h) for r in either[0].keys() | either[1].keys()}
                heard[other] = dict(heard[one])
        for rank, learner in enumerate(learners):
            heard[rank][rank] = (number, losses[rank], learner.count_correct())
            _, known, right = zip(*heard[rank].values(), strict=True)
            told[rank].append((float(np.mean(known)), sum(right) / len(DATA.test)))

    with workers(Gossip, n, flows) as (made, links):
        outcomes = rounds(made, count)
        counted = carried(links)
        for rank in range(n):
            np.testing.assert_allclose(made[rank].learner.parameters, learners[rank].parameters, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose([(o.loss, o.accuracy) for o in outcomes[rank]], told[rank], rtol=1e-5)
    news = (n + 1) * 3 * 8
    assert counted == [(sum(rank in each for each in drawn) * (MODEL.nbytes + news),) * 2 for rank in range(n)]


@pytest.mark.parametrize(
    ("kind", "topology"), [(RingTraining, "ring"), (Gossip, "gossip"), (ETree, "tree"), (ParameterServer, "star")]
)
def test_the_same_seed_gives_the_same_bits(kind: Callable[..., Any], topology: str) -> None:
    found = []
    for _ in range(2):
        with workers(kind, 5, topology_pairs(topology, 5)) as (made, _):
            rounds(made, 4)
            found.append(together(5, lambda rank: made[rank].end()))
    assert found[0] == found[1]


def test_a_worker_that_stops_is_not_waited_for() -> None:
    flows = topology_pairs("gossip", 2)
    with workers(Gossip, 2, flows) as (made, links):
        stopped = made[0].learner.parameters.copy()

        def work(rank: int) -> list[bool]:
            over = [made[rank].round(1).over]
            if rank == 0:
                made[0].end()
                stopped[:] = made[0].learner.parameters
                links[0].finish()
                return over
            over.append(made[1].round(2).over)
            links[1].finish()
            return over

        assert together(2, work) == [[False], [False, True]]
        assert not np.array_equal(made[1].learner.parameters, stopped)  # it made a step of its own since


def test_islands_are_refused_at_every_worker_though_some_leave_before_others_know() -> None:
    flows = [(a + b, a + c) for a in (0, 3) for b, c in ((0, 1), (1, 0), (1, 2), (2, 1))]
    left = Event()

    class Late:
        """Holds the last exchange back until rank 0 has left, or shows that it does not."""

        def __init__(self, links: Connections) -> None:
            self._links, self._exchanges = links, 0

        def exchange(self, outgoing: Mapping[int, memoryview], incoming: Mapping[int, memoryview]) -> None:
            self._exchanges += 1
            if self._exchanges == 5:
                left.wait(0.3)
            self._links.exchange(outgoing, incoming)

    with wired(6, flows) as links:

        def work(rank: int) -> str:
            with pytest.raises(MissingFlow) as missing, taking_part(links[rank]):
                Gossip(SETTINGS, DATA, member(rank, 6, flows), Late(links[rank]) if rank == 2 else links[rank])
            if rank == 0:
                left.set()
            return str(missing.value)

        messages = together(6, work)
    assert "from worker-0 to all others, but none lead to worker-3, worker-4, worker-5" in messages[0]
    assert "but none lead to worker-0, worker-1, worker-2" in messages[5]
