"""What is news to somebody who waits, and what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cluster_state import NOW

from ces_common.messages.events import Reason, TooFewNodes
from ces_core.model.parts import Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.model.reason import Reason as CoreReason
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.parameters import Parameters
from ces_core.queue.scores import Score
from ces_core.queue.status import QueueStatus as CoreQueueStatus
from ces_scheduler.queue_status import CALM_S, LastReport, is_news, queue_statuses

FULL = Reason(code="cpu-per-node", text="", resource="cpu", needed=2000.0, available=1000.0, where="n1")
REPORTS_AT_ONCE = LastReport(1, FULL, NOW, held_by=frozenset({"b"}), start_at=NOW + timedelta(minutes=20))
LATER = NOW + timedelta(seconds=CALM_S)


@pytest.mark.parametrize(
    ("change", "at_once", "later"),
    [
        ({}, False, False),
        ({"attempt": 2}, True, True),
        ({"reserved": True}, True, True),
        ({"reason": FULL.model_copy(update={"forever": True})}, True, True),
        ({"held_by": frozenset({"c"})}, False, True),
        ({"start_at": None}, False, True),
        ({"start_at": NOW + timedelta(minutes=23)}, False, True),
        ({"start_at": NOW + timedelta(minutes=21)}, False, False),
        ({"reason": FULL.model_copy(update={"code": "packing"})}, False, True),
        ({"reason": FULL.model_copy(update={"available": 500.0})}, False, True),
        ({"reason": FULL.model_copy(update={"available": 950.0, "where": "n2"})}, False, False),
    ],
)
def test_promises_are_told_at_once_and_the_rest_when_it_matters(
    change: dict[str, Any], at_once: bool, later: bool
) -> None:
    assert is_news(replace(REPORTS_AT_ONCE, **change), REPORTS_AT_ONCE) == at_once
    assert is_news(replace(REPORTS_AT_ONCE, at=LATER, **change), REPORTS_AT_ONCE) == later


ONE_OF_FOUR = TooFewNodes(each={"cpu": 900}, needed=4, available=1, nodes=1, apart=True)


@pytest.mark.parametrize("reason", [FULL, Reason(code="packing", text="t")])
@pytest.mark.parametrize(
    ("nodes", "news"),
    [
        (ONE_OF_FOUR, False),
        (None, True),
        (ONE_OF_FOUR.model_copy(update={"available": 2, "nodes": 2}), True),
        (ONE_OF_FOUR.model_copy(update={"each": {"cpu": 800}}), True),
        (ONE_OF_FOUR.model_copy(update={"needed": 5}), True),
    ],
)
def test_another_count_of_nodes_is_news(reason: Reason, nodes: TooFewNodes | None, news: bool) -> None:
    last = replace(REPORTS_AT_ONCE, reason=reason.model_copy(update={"nodes": ONE_OF_FOUR, "text": "1 of 4"}))
    now = replace(last, at=LATER, reason=reason.model_copy(update={"nodes": nodes, "text": "said"}))
    assert is_news(now, last) == news


def test_one_node_more_of_very_many_is_no_news() -> None:
    many = ONE_OF_FOUR.model_copy(update={"needed": 100, "available": 50, "nodes": 50})
    last = replace(REPORTS_AT_ONCE, reason=Reason(code="packing", text="50", nodes=many))
    more = many.model_copy(update={"available": 51, "nodes": 51})
    assert not is_news(replace(last, at=LATER, reason=Reason(code="packing", text="51", nodes=more)), last)


def test_the_first_word_is_news_and_a_promise_that_moves_is_too() -> None:
    assert is_news(REPORTS_AT_ONCE, None)
    promised = replace(REPORTS_AT_ONCE, reserved=True)
    assert is_news(replace(promised, start_at=NOW + timedelta(minutes=30)), promised)
    forever = replace(REPORTS_AT_ONCE, reason=FULL.model_copy(update={"forever": True}))
    assert is_news(replace(forever, reason=forever.reason.model_copy(update={"available": 999.0})), forever)


def test_a_queue_status_says_what_the_cycle_said() -> None:
    cluster = Cluster.make([Node("n", cpu=1)], [])
    waiting = [
        WaitingJob(name, Problem.make(cluster, [Task("t", cpu=1)]), since) for name, since in (("j", 0), ("k", 5000))
    ]
    score = Score(-1.0, 0.25, 2.0, 0.125, "cpu")
    reason = CoreReason("cpu-per-node", False, True, "cpu", 1500.0, 500.0, "n", "t")
    first = CoreQueueStatus("j", 1, score, reason, True, 9000.0, ("r",))
    second = CoreQueueStatus("k", 2, score, None, False, 7300.0, ())
    told, other = queue_statuses([first, second], waiting, 7300.0, Parameters())
    assert told.reason is not None
    assert told.reason.text == "task t needs 1.5 cores on one node; the largest free node (n) has 0.5 cores"
    assert (told.job, told.position, told.overdue, told.reserved, told.held_by) == ("j", 1, True, True, ["r"])
    assert (told.score.total, told.score.scarce) == (score.total, "cpu")
    assert told.start_at is not None
    assert told.start_at.timestamp() == 9000
    assert (other.overdue, other.reason) == (False, None)
    assert other.start_at is None, "nobody knows when something will be that could be now"
