"""Graphs of applications that the scheduler divides for whoever looks: the answer, and its process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from ces_common.bus.port import Message
from ces_common.graphfile import GraphFile
from ces_common.jobfile import JobFile
from ces_common.messages.decompositions import DecompositionAnswer, DecompositionQuery
from ces_scheduler.decomposition import decomposed
from ces_scheduler.decomposition_requests import BUSY, FAILED, LATE, dividing

MBIT = 1_000_000


def asked(by: str = "clusters", **more: Any) -> DecompositionQuery:
    """Two pairs that talk much, and little between them; a part has room for one pair."""
    pairs = [("a", "b", 100), ("c", "d", 100), ("b", "c", 1)]
    graph = {
        "name": "pairs",
        "capacity": {"cpu": "500m", "memory": "1Gi"},
        "run": {"command": ["true"]},
        "vertices": [{"name": name, "cpu": "250m", "class": name} for name in "abcd"],
        "edges": [
            {"src": src, "dst": dst, "bandwidth": {"min": f"{rate}Mbit", "max": f"{rate}Mbit"}}
            for src, dst, rate in pairs
        ],
    }
    file = GraphFile.model_validate({"graph": graph | more.pop("graph", {})})
    return DecompositionQuery.model_validate({"graph": file.graph, "by": by, **more})


def message(query: DecompositionQuery) -> Message:
    return Message("ces.v1.rpc.scheduler.decompose", query.encode())


@pytest.mark.parametrize("by", ["clusters", "optimal"])
def test_pairs_stay_together_and_the_job_is_a_good_one(by: str) -> None:
    answer = decomposed(asked(by, parts=2))
    assert [part.vertices for part in answer.parts] == [["a", "b"], ["c", "d"]]
    (level,) = answer.levels
    assert (level.chosen, level.parts, level.cut, level.cpu) == (True, 2, MBIT, 500)
    assert level.gap == (0.0 if by == "optimal" else None)
    assert [(each.name, each.note) for each in answer.others if each.name == "unsplit"] == [
        ("unsplit", "part 0 is above its capacity")
    ]
    assert [(each.src, each.dst, each.max) for each in answer.traffic] == [("part1", "part2", MBIT)]
    job = JobFile.model_validate(answer.job)
    assert [task.env["CES_VERTICES"] for task in job.tasks] == ["a,b", "c,d"]


def test_what_cannot_be_is_refused_with_what_to_change() -> None:
    answer = decomposed(asked(parts=1))
    assert (answer.refusal is not None, answer.parts, answer.job) == (True, [], None)
    answer = decomposed(asked(graph={"capacity": {"cpu": "100m"}}))
    assert answer.field == "cpu"
    assert answer.refusal == "the vertex a alone asks for 250 millicores, and a part may for 100"


def test_without_a_program_there_is_no_job() -> None:
    answer = decomposed(asked(graph={"run": None}))
    assert (answer.job, answer.remark, len(answer.parts)) == (None, None, 2)


async def test_a_process_divides_and_one_at_a_time() -> None:
    answer = dividing()
    query = asked(parts=2)
    first, second = await asyncio.gather(answer(message(query)), answer(message(query)))
    assert DecompositionAnswer.model_validate_json(first) == decomposed(query)
    assert second == BUSY.encode()
    assert DecompositionAnswer.model_validate_json(await answer(message(query))).job is not None


async def test_a_process_that_hangs_or_fails_is_ended_and_said() -> None:
    hangs = (sys.executable, "-c", "import time; time.sleep(60)")
    assert await dividing(hangs, 0.2)(message(asked())) == LATE.encode()
    assert await dividing((sys.executable, "-c", "raise SystemExit(3)"))(message(asked())) == FAILED.encode()
