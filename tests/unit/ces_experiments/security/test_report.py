"""When the security benchmark fails, and what it counts."""

from __future__ import annotations

from typing import Any

import pytest

from ces_experiments.security import forbidden
from ces_experiments.security.honest import honest_nodes, while_attacked
from ces_experiments.security.report import broken, failure
from ces_experiments.security.tally import Tallies, Tally, of_the_broker

GOOD: dict[str, Any] = {"changed": [], "wrong": {}, "attacked": {"lapses": 0}, "audit": []}


def test_where_no_promise_is_broken_it_is_no_failure() -> None:
    assert failure({"fuzz": GOOD, "campaign": GOOD}) is None
    assert failure({}) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"changed": ["stream S is gone"]}, "stream S is gone"),
        ({"wrong": {"every verb: answered": 3}}, "every verb: answered (3 times)"),
        ({"attacked": {"lapses": 2}}, "rogue agent: 2 leases of honest nodes ended"),
        ({"audit": ["overbooked"]}, "audit: overbooked"),
    ],
)
def test_each_broken_promise_is_named(found: dict[str, Any], said: str) -> None:
    assert list(broken({"campaign": GOOD | found})) == [said]
    assert failure({"campaign": GOOD | found}) == said


def test_many_are_counted() -> None:
    assert str(failure({"fuzz": GOOD | {"changed": [str(i) for i in range(25)]}})).endswith("and 5 more")


def test_tries_are_refused_answered_or_ignored() -> None:
    tally = of_the_broker(10, {"refused": 2}, {"refused": 5, "answered": 1, "refused by a service": 2})
    assert tally.as_row() == {"tries": 10, "refused": 5, "ignored": 4, "answered": 1}
    tallies = Tallies()
    for _ in range(2):
        tallies.add("x", tally)
    assert tallies.rows() == [{"attack": "x", "tries": 20, "refused": 10, "ignored": 8, "answered": 2}]
    assert Tally(1, refused=3).ignored == 0


def test_heartbeats_count_with_the_attack_during_which_they_were_sent() -> None:
    [one, other] = honest_nodes(2, "127.0.0.1")
    one.beats += [(1.0, 0.1), (2.5, 0.2)]
    other.beats += [(0.5, 0.3), (3.5, 0.4), (9.0, 0.5)]
    found = while_attacked([one, other], [("a", 1.0, 2.0), ("b", 2.1, 3.0), ("a", 3.0, 4.0)])
    assert {attack: times["count"] for attack, times in found.items()} == {"a": 2, "b": 1}
    assert (found["a"]["worst"], found["b"]["worst"]) == (400.0, 200.0)


def test_what_is_forbidden_has_every_stream_and_nothing_of_its_own() -> None:
    verbs = list(forbidden.jetstream())
    assert len(verbs) == len(set(verbs))
    for stream in forbidden.STREAMS:
        assert f"$JS.API.STREAM.DELETE.{stream}" in verbs
    assert all("rogue" not in pattern for pattern in forbidden.patterns(["n1"]))
    assert "_INBOX.n1.1" in forbidden.of_services("rogue", ["n1"])
