"""Composing documents: only what changed is made, and the outcome does not show it."""

from collections.abc import Sequence

from cluster_state import job

from ces_common.composer import Composer
from ces_common.messages.desired import DesiredCompute, DesiredWorker
from ces_common.messages.records import JobRecord


class Counting:
    """Counts what is made."""

    def __init__(self) -> None:
        self.shares: list[str] = []
        self.documents: list[str] = []
        self.composer = Composer[object, list[DesiredWorker], DesiredCompute](self.share, self.make)

    def share(self, record: JobRecord, ground: object) -> dict[str, list[DesiredWorker]]:
        self.shares.append(record.id)
        workers: dict[str, list[DesiredWorker]] = {}
        for each in record.allocations:
            workers.setdefault(each.node, []).append(
                DesiredWorker(
                    allocation=each.id,
                    incarnation=each.incarnation,
                    job=record.id,
                    job_name=record.name,
                    task=each.task,
                    rank=each.rank,
                    cpu=1,
                    memory=1,
                )
            )
        return workers

    def make(self, base: DesiredCompute, parts: Sequence[list[DesiredWorker]]) -> DesiredCompute:
        self.documents.append(base.node)
        return base.model_copy(update={"workers": [worker for part in parts for worker in part]})

    def made(self) -> tuple[list[str], list[str]]:
        made = sorted(self.shares), sorted(self.documents)
        self.shares, self.documents = [], []
        return made


BASES = {name: DesiredCompute(node=name, generation=1) for name in ("a", "b", "c")}


def test_only_what_changed_is_made_anew() -> None:
    counting, ground = Counting(), object()
    one, two = job("1", ["a", "b"]), job("2", ["b"])
    first = counting.composer.compose(ground, BASES, [two, one])
    assert counting.made() == (["1", "2"], ["a", "b", "c"])
    assert [worker.allocation for worker in first["b"].workers] == ["1-w-1", "2-w-0"]

    again = counting.composer.compose(ground, BASES, [one, two])
    assert counting.made() == ([], [])
    assert all(again[name] is first[name] for name in BASES)

    counting.composer.compose(ground, BASES, [one, job("2", ["c"])])
    assert counting.made() == (["2"], ["b", "c"])

    fewer = counting.composer.compose(ground, BASES, [one])
    assert counting.made() == ([], ["c"])
    assert fewer["c"].workers == []


def test_a_new_context_voids_all_shares() -> None:
    counting = Counting()
    one = job("1", ["a"])
    counting.composer.compose(object(), BASES, [one])
    counting.made()
    counting.composer.compose(object(), BASES, [one])
    assert counting.made()[0] == ["1"]


def test_nodes_come_and_go() -> None:
    counting, ground = Counting(), object()
    counting.composer.compose(ground, BASES, [])
    documents = counting.composer.compose(ground, {"d": DesiredCompute(node="d", generation=1)}, [])
    assert set(documents) == {"d"}


def test_a_record_that_asks_the_same_is_not_looked_into_again() -> None:
    counting, ground = Counting(), object()
    counting.composer = Composer(
        counting.share, counting.make, alike=lambda before, now: before.allocations == now.allocations
    )
    first = counting.composer.compose(ground, BASES, [job("1", ["a", "b"])])
    counting.made()
    paused, moved = job("1", ["a", "b"], state="paused", attempt=2), job("1", ["a", "c"])
    again = counting.composer.compose(ground, BASES, [paused])
    assert counting.made() == ([], [])
    assert all(again[name] is first[name] for name in BASES)
    assert counting.composer.nodes_of(paused) == {"a", "b"}
    counting.composer.compose(ground, BASES, [moved])
    assert counting.made() == (["1"], ["a", "b", "c"])
    counting.composer.compose(object(), BASES, [moved])
    assert counting.made()[0] == ["1"], "another context"
