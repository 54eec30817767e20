"""Random histories are replayed: what a replay says of now is what the tables say."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from fresh_histories import BACKEND
from history_actors import NODES, Actors
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from long_histories import play

from ces_common.db.history_tables import KeyframeRow
from ces_common.db.uow import ReadTx
from ces_common.resources import gpus_of
from ces_manager.live.picture import Picture
from ces_manager.plans.residual import held_on_nodes, loads_of_links
from ces_manager.replay.keyframes import past_of
from ces_manager.replay.past import Past, flows_of, packed, picture_of
from ces_manager.replay.replay import past_at, replayed

UNTOLD = {"expected_end_at", "deadline_at"}  # told when first known, and once more


def plain(facts: Any, leaving_out: set[str]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None and name not in leaving_out}


def told(picture: Picture) -> dict[str, Any]:
    """All that is known in it."""
    sections = {name: getattr(picture, name) for name in ("nodes", "links", "jobs")}
    plainly = {
        name: {key: plain(facts, UNTOLD) for key, facts in section.items()} for name, section in sections.items()
    }
    return plainly | {"media": picture.media, "counts": picture.counts}


class ReplayedHistories(Actors):
    kept = 0

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, Any] = {}  # number of the last event -> how it was then

    @initialize()
    def build(self) -> None:
        super().build()
        self.keep()

    @rule(really=st.sampled_from([True, False, False, False]))
    def keep_one(self, really: bool) -> None:
        if really:
            self.keep()

    def keep(self) -> None:
        with self.world.uow.read() as tx:
            past = past_of(tx, self.world.now)
        with self.world.uow.bare_write() as session:
            session.merge(KeyframeRow(sequence=past.sequence, time=self.world.now, body=packed(past)))
        self.kept += 1

    @precondition(lambda self: self.kept)
    @invariant()
    def replay_tells_what_is(self) -> None:
        with self.world.uow.read() as tx:
            past, present = past_at(tx, self.world.now), past_of(tx, self.world.now)
            self.holds(tx, past)
        assert past.sequence == present.sequence
        then = told(picture_of(past))
        assert then == told(picture_of(present))
        assert sorted(flows_of(past), key=str) == sorted(flows_of(present), key=str)
        self.seen[past.sequence] = then

    def teardown(self) -> None:
        """By now there are later keyframes, and rows of today."""
        with self.world.uow.read() as tx:
            for sequence, then in list(self.seen.items())[::3]:
                assert told(picture_of(replayed(tx, self.world.now, sequence))) == then
        super().teardown()

    def holds(self, tx: ReadTx, past: Past) -> None:
        """Exactly what the tables hold."""
        shown = picture_of(past)
        nodes, links = held_on_nodes(tx), loads_of_links(tx, NODES)
        for name, facts in shown.nodes.items():
            allocated = tuple(facts[f"{resource}_allocated"] for resource in ("cpu", "memory", "gpu"))
            cpu, memory, gpu, share = nodes.get(name, (0, 0, 0, 0))
            assert allocated == (cpu, memory, gpus_of(gpu, share)), name
        for key, facts in shown.links.items():
            src, dst = key.split(">")
            reserved, flows = links.get((src, dst), (0, 0))
            assert facts["reserved"] == reserved, key
            if not any(job.coming for job in past.jobs.values()):  # then, both sizes have flows
                assert (facts["flows"] or 0) == flows, key


TestReplayedHistories = ReplayedHistories.TestCase
TestReplayedHistories.settings = settings(
    backend=BACKEND,
    max_examples=8,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("seed", range(3))
def test_long_histories(seed: int) -> None:
    """From a keyframe that is kept at their beginning, and from others."""
    machine = ReplayedHistories()
    steps = count(1)

    def after_each() -> None:
        machine.replay_tells_what_is()
        if next(steps) % 60 == 0:
            machine.keep()

    play(machine, seed, after_each)
