"""What an attack may not change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ces_experiments.security.watch import Look, differences, failures

STREAM = {"config": {"name": "S"}, "consumers": ["manager"], "first": 1, "last": 9}
BEFORE = Look(starts={"manager": 1}, streams={"S": STREAM}, nodes={"n1": {"state": "ready"}}, failures={"manager": 0})


def test_more_messages_are_no_difference() -> None:
    assert list(differences(BEFORE, BEFORE)) == []
    assert list(differences(BEFORE, replace(BEFORE, streams={"S": STREAM | {"last": 12}}))) == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (replace(BEFORE, starts={"manager": 3}), "manager has started 2 times"),
        (replace(BEFORE, failures={"manager": 1}), "the log of manager tells of 1 failures"),
        (replace(BEFORE, streams={}), "stream S is gone"),
        (replace(BEFORE, streams={"S": STREAM | {"first": 5}}), "stream S: first was 1 and is 5"),
        (replace(BEFORE, streams={"S": STREAM | {"last": 3}}), "stream S has lost its last messages"),
        (replace(BEFORE, streams={"S": STREAM | {"consumers": []}}), "stream S: consumers was ['manager'] and is []"),
        (replace(BEFORE, nodes={"n1": {"state": "unreachable"}}), "node n1: state was ready and is unreachable"),
        (replace(BEFORE, nodes={}), "node n1: state was ready and is None"),
    ],
)
def test_what_is_not_as_it_was_is_told(after: Look, said: str) -> None:
    assert list(differences(BEFORE, after)) == [said]


def test_failures_are_counted_in_logs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(
        b'{"event": "message handler failed"}\nTraceback (most recent call last):\n\xff{"event": "ready"}\n'
    )
    assert failures(log) == 2
