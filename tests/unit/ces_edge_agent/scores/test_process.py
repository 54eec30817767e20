"""The process that measures: what it says, and that it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psutil
import pytest

from ces_edge_agent.scores.__main__ import lowest_priority
from ces_edge_agent.scores.process import Interrupted, MeasuringProcess, command

LINE = json.dumps({"kind": "integer", "rates": [1.0, 1.0], "source": "s"})


def says(*lines: str, stays: bool = False) -> list[str]:
    program = f"import time; print({chr(10).join(lines)!r}, flush=True); {'time.sleep(600)' if stays else ''}"
    return [sys.executable, "-c", program]


async def test_what_it_prints_is_what_was_measured() -> None:
    process = MeasuringProcess(says(LINE, LINE))
    assert [each.kind for each in await process.measure(lambda: None)] == ["integer", "integer"]
    assert process.pid is None


async def test_what_was_found_within_the_limit_counts_and_it_is_ended() -> None:
    process = MeasuringProcess(says(LINE, stays=True), limit_s=1.5)
    seen = []

    def busy() -> None:
        seen.append(process.pid)

    assert len(await process.measure(busy)) == 1
    assert not psutil.pid_exists(seen[0])


async def test_it_ends_at_once_where_the_node_is_needed() -> None:
    process = MeasuringProcess(says(LINE, stays=True))
    pids = []

    def busy() -> str | None:
        pids.append(process.pid)
        return "workers run there" if len(pids) > 1 else None

    with pytest.raises(Interrupted, match="workers run there"):
        await process.measure(busy)
    assert not psutil.pid_exists(pids[0])


async def test_nothing_is_no_result() -> None:
    with pytest.raises(Interrupted, match="nothing could be measured"):
        await MeasuringProcess(says("")).measure(lambda: None)


@pytest.mark.parametrize("wrong", ["nonsense", '{"kind": "luck"}', "x" * 10_000])
async def test_what_is_no_measurement_ends_it(wrong: str) -> None:
    assert len(await MeasuringProcess(says(LINE, wrong, LINE)).measure(lambda: None)) == 1


async def test_it_is_not_told_the_agents_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_JOIN_TOKEN", "secret")
    told = "import os, json; print(json.dumps({'kind': 'integer', 'rates': [1, 1], 'source': str(sorted(os.environ))}))"
    (found,) = await MeasuringProcess([sys.executable, "-c", told]).measure(lambda: None)
    assert "CES_JOIN_TOKEN" not in found.source


async def test_the_real_one_lets_all_else_go_first(tmp_path: Path) -> None:
    process = MeasuringProcess(command(tmp_path))

    def busy() -> str | None:
        assert process.pid is not None
        return "enough was seen" if psutil.Process(process.pid).nice() == 19 else None

    with pytest.raises(Interrupted, match="enough was seen"):
        await process.measure(busy)


def test_its_session_too_has_the_lowest_priority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nice: list[int] = []
    monkeypatch.setattr(os, "nice", nice.append)
    monkeypatch.setattr(psutil.Process, "ionice", lambda *_: None)
    lowest_priority(tmp_path)
    assert nice == [19]
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"autogroup": "19", "oom_score_adj": "1000"}
