"""The three published inputs as the unmodified public simulator counts them, and its variants."""

from __future__ import annotations

import pytest

from ces_experiments.malleable.contenders import AS_PUBLISHED
from ces_experiments.malleable.inputs import GOLDEN, KNOWN, TOLERANCES, USUAL_TOLERANCE
from ces_sim.malleable.compat import caps, elastic

pytestmark = pytest.mark.needs("dl-jobs")
CASES = [(trace, policy) for trace, policies in GOLDEN.items() for policy in policies]
SLOW = {("cluster10", "elasticflow-all")}


@pytest.mark.parametrize(("trace", "policy"), [case for case in CASES if case not in SLOW])
def test_on_time_by_submitted(trace: str, policy: str) -> None:
    jobs = KNOWN[trace].jobs()
    tally = AS_PUBLISHED[policy](KNOWN[trace], jobs)
    assert len(tally.on_time) / len(jobs) == pytest.approx(
        GOLDEN[trace][policy], abs=TOLERANCES.get(policy, USUAL_TOLERANCE)
    )
    assert sorted([*tally.on_time, *tally.late, *tally.refused]) == sorted(job.name for job in jobs)


@pytest.mark.parametrize(
    ("slot", "quirks", "on_time"),
    [(240, elastic.Quirks(), 146), (60, elastic.Quirks(), 171), (240, elastic.Quirks(costs=False), 157)],
)
def test_variants_of_195job(slot: int, quirks: elastic.Quirks, on_time: int) -> None:
    given = KNOWN["195job"]
    jobs = [job.malleable(128) for job in given.jobs()]
    capped = [
        type(one)(one.name, one.arrived_s, one.work, one.deadline_s, caps.profile(job, caps.elastic_cap(job, "A100")))
        for one, job in zip(jobs, given.jobs(), strict=True)
    ]
    tally = elastic.run(capped, 128, 8, slot, admission=True, quirks=quirks)
    assert len(tally.on_time) == on_time
