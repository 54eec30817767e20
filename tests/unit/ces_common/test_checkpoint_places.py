"""Which node copies a job's checkpoints, and between which nodes these travel."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_state import NOW, job

from ces_common.checkpoint_places import copy_holder, transfers
from ces_common.messages.checkpoints import JobCheckpoints, StoredCheckpoint
from ces_common.messages.records import JobRecord

NODES = {"a", "b", "c", "d"}


def stored(*nodes: str, attempt: int = 1, digest: str = "0") -> StoredCheckpoint:
    return StoredCheckpoint(
        attempt=attempt, incarnation=1, name="step", size=9, digest=digest * 64, nodes=list(nodes), at=NOW
    )


def on(*placement: str, **known: Any) -> JobRecord:
    return job("j", placement, checkpoint_node=placement[0], checkpoints=JobCheckpoints.model_validate(known))


@pytest.mark.parametrize(
    ("record", "holder"),
    [
        (on("a", "a", "b", "c"), "b"),
        (on("a"), None),
        (on("a", stored=[stored("d"), stored("b")]), "d"),
        (on("a", "c", stored=[stored("d")]), "c"),
        (on("a", stored=[stored("gone"), stored("b")]), "b"),
        (job("rigid", ["a", "b"]), None),
        (on("a", "b").model_copy(update={"state": "failed"}), None),
    ],
)
def test_one_other_node_of_the_job_holds_copies(record: JobRecord, holder: str | None) -> None:
    assert copy_holder(record, NODES) == holder


def test_while_the_first_task_goes_elsewhere_its_node_fetches_from_where_it_was_and_from_copies() -> None:
    moving = on("b", "c", restoring=True, former="a", stored=[stored("d", "b"), stored("gone", digest="1")])
    assert transfers(moving, NODES) == [("a", "b"), ("d", "b"), ("b", "c")]
    assert transfers(moving, NODES - {"b"}) == []
    begun = on("b", "c", stored=[stored("d")])
    assert transfers(begun, NODES) == [("b", "c")]
