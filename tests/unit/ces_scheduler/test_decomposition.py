"""Graphs of applications that the scheduler divides for whoever looks: the answer, and its process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from ces_common.bus.port import Message
from ces_common.graphfile import GraphFile
from ces_common.jobfile import JobFile
from ces_common.messages.decompositions import DecompositionAnswer, DecompositionQuery
from ces_scheduler.decomposition import decomposed
from ces_scheduler.decomposition_requests import BUSY, FAILED, LATE, dividing

MBIT = 1_000_000
SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")


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


def test_what_every_part_repeats_makes_no_huge_job() -> None:
    env = {f"VARIABLE_{number}": "x" * 32_000 for number in range(20)}
    answer = decomposed(asked(parts=2, graph={"run": {"command": ["true"], "env": env}}))
    assert answer.job is None
    assert answer.remark is not None
    assert "shorten graph.run" in answer.remark
    assert len(answer.encode()) < 10_000


def test_the_nearest_level_says_so() -> None:
    answer = decomposed(asked("compute", parts=9))
    assert (len(answer.parts), answer.note) == (4, "there is no level of 9 parts: this is the nearest")


async def test_a_process_divides_and_one_at_a_time() -> None:
    query, answer = asked(parts=2), dividing()
    first, second = await asyncio.gather(answer(message(query)), answer(message(query)))
    assert DecompositionAnswer.model_validate_json(first) == decomposed(query)
    assert second in (first, BUSY.encode()), "it waits for a while, and no longer"
    hasty = dividing(SLEEPS, 5.0, wait_s=0.05)
    slow = asyncio.ensure_future(hasty(message(query)))
    await asyncio.sleep(0)
    assert await hasty(message(query)) == BUSY.encode()
    slow.cancel()


async def test_a_process_that_hangs_or_fails_is_ended_and_said(tmp_path: Path) -> None:
    known = tmp_path / "pid"
    writes = f"import os, time; open({str(known)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    assert await dividing((sys.executable, "-c", writes), 2.0)(message(asked())) == LATE.encode()
    assert int(known.read_text()) not in psutil.pids()
    assert await dividing((sys.executable, "-c", "raise SystemExit(3)"))(message(asked())) == FAILED.encode()


async def test_nothing_of_a_query_that_is_not_understood_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    query = asked(graph={"run": {"command": ["true"], "env": {"PASSWORD": "hunter2"}}})
    later = json.loads(query.encode())
    later["graph"]["run"]["unheard-of"] = "hunter2"
    answer = await dividing()(Message("ces.v1.rpc.scheduler.decompose", json.dumps(later).encode()))
    assert answer == FAILED.encode()
    said = "".join(capsys.readouterr())
    assert "graph.run.unheard-of: extra_forbidden" in said
    assert "hunter2" not in said


def test_its_process_ends_by_itself() -> None:
    spins = "from ces_scheduler import decomposition_process as p; p.CPU_S = 1; import ces_scheduler.decomposition as d"
    spins += "; d.decomposed = lambda query: [None for _ in iter(int, 1)]; p.main()"
    ended = subprocess.run([sys.executable, "-c", spins], input=asked().encode(), timeout=60, check=False)
    assert ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
