"""What holds of every policy: sizes of the job, never more than there is, the same answer to the same question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from malleable_jobs import jobs, moment, running

from ces_core.malleable.elasticflow import ElasticFlow
from ces_core.malleable.model import MalleableJob
from ces_core.malleable.peers.afs import afs
from ces_core.malleable.peers.edf import EarliestDeadlineFirst
from ces_core.malleable.peers.gandiva import Gandiva
from ces_core.malleable.peers.optimus import Optimus
from ces_core.malleable.peers.pollux import Pollux
from ces_core.malleable.peers.simple import RandomSize, smallest
from ces_core.malleable.peers.themis import Themis
from ces_core.malleable.peers.tiresias import Gittins, Tiresias
from ces_core.malleable.policy import Policy

POLICIES: dict[str, Policy] = {
    "elasticflow": ElasticFlow(10.0),
    "elasticflow-all": ElasticFlow(10.0, admission=False),
    "edf": EarliestDeadlineFirst(),
    "edf-admission": EarliestDeadlineFirst(admission=True),
    "tiresias": Tiresias((50.0, 100.0), promote=2.0),
    "gittins": Gittins((10.0, 100.0, 1000.0), 50.0),
    "gandiva": Gandiva(),
    "themis": Themis(60.0),
    "afs": afs,
    "optimus": Optimus(),
    "pollux": Pollux(4),
    "min": smallest,
    "random": RandomSize(1),
}


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=40)
@given(jobs(), st.sampled_from([1, 3, 8, 16]), st.data())
def test_capacity_and_sizes(name: str, found: list[MalleableJob], gpus: int, data: st.DataObject) -> None:
    active, held = [], 0
    for one in found:
        size = data.draw(st.sampled_from([0, *one.profile.sizes]))
        size = size if held + size <= gpus else 0
        held += size
        active.append(running(one, size, ran_s=5.0 * (size > 0), attained=5.0 * size))
    now = moment(*active, gpus=gpus, now_s=120.0)
    decision = POLICIES[name](now)
    assert sum(decision.sizes.values()) <= gpus
    by_name = {each.name: each for each in active}
    assert all(size in by_name[job].job.speeds.sizes for job, size in decision.sizes.items())
    assert not decision.refused & decision.sizes.keys()
    assert decision.refused <= now.arrived
    if {each.name for each in active} - decision.refused:
        assert decision.sizes, "the cluster is idle although somebody waits"
    assert POLICIES[name](now) == decision
