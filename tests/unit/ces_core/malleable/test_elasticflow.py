"""ElasticFlow as a policy, by hand."""

from __future__ import annotations

from malleable_jobs import job, moment, running

from ces_core.malleable.elasticflow import ElasticFlow

RULE = ElasticFlow(10.0)


def test_one_job_has_everything() -> None:
    found = RULE(moment(running(job("a", 100.0, 200.0))))
    assert (found.sizes, found.refused) == ({"a": 4}, frozenset())


def test_who_cannot_be_in_time_is_refused_and_harms_nobody() -> None:
    found = RULE(moment(running(job("a", 100.0, 200.0), 4), running(job("b", 1000.0, 100.0))))
    assert (found.sizes, found.refused) == ({"a": 4}, {"b"})


def test_without_admission_the_hopeless_job_takes_what_it_can() -> None:
    found = ElasticFlow(10.0, admission=False)(
        moment(running(job("a", 100.0, 200.0)), running(job("b", 1000.0, 100.0)))
    )
    assert (found.sizes, found.refused) == ({"b": 4}, frozenset())


def test_it_asks_again_when_a_plan_changes() -> None:
    """The second job starts when the first is done, which has all GPUs until then."""
    found = RULE(moment(running(job("a", 160.0, 40.0)), running(job("b", 40.0, 60.0))))
    assert found.sizes == {"a": 4}
    assert found.until_s == 40.0
