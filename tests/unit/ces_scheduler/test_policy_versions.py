"""What the scheduler tells of the versions of its policy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from evolving_policies import NOON, added, begun

from ces_common.bus.port import Message
from ces_common.messages.policies import PolicyAnswer
from ces_core.evolution.folder import STATE, EvolutionFolder
from ces_core.evolution.pairing import Pair
from ces_core.evolution.state import BASE
from ces_scheduler import policy_versions
from ces_scheduler.live_policy import LivePolicy
from ces_scheduler.policy_versions import UNREADABLE, telling

LATER = NOON + 60.0


async def told(folder: EvolutionFolder | None) -> PolicyAnswer:
    live = None if folder is None else cast(LivePolicy, SimpleNamespace(folder=folder))
    answer = telling(live, lambda: LATER)
    raw = [await answer(Message("ces.v1.rpc.scheduler.policy", b"{}")) for _ in range(2)]
    assert raw[0] == raw[1], "what is kept of comparisons says the same"
    return PolicyAnswer.model_validate_json(raw[0])


def pairs(gain: float, count: int = 150) -> list[Pair]:
    return [Pair(f"x{number}.1", gain + 0.001 * (number % 2), False, (1.0, 1.1)) for number in range(count)]


@pytest.fixture
def folder(tmp_path: Path) -> EvolutionFolder:
    return begun(tmp_path / "evolution")


async def test_without_a_folder_no_policy_evolves() -> None:
    assert await told(None) == PolicyAnswer(evolves=False)


async def test_a_candidate_is_told_with_its_interval_and_with_what_speaks_against_it(folder: EvolutionFolder) -> None:
    added(folder, made_s=NOON)
    added(folder, made_s=NOON + 1)
    folder.keep(folder.candidacy("v2", folder.state()), pairs(0.02, 60))
    answer = await told(folder)
    assert (answer.live, answer.former, answer.solver) == (BASE, None, "imitation-greedy")
    assert [(each.name, each.role) for each in answer.versions] == [("v2", "candidate"), ("v1", "passed over")]
    newest, oldest = answer.versions
    assert newest.gain is not None
    assert newest.gain.mean == pytest.approx(0.0205)
    assert newest.gain.low < newest.gain.mean < newest.gain.high
    assert newest.gain.decisions == 60
    assert newest.gain.slower == pytest.approx(1.1)
    assert newest.against[0] == "60 decisions are compared, and 100 are least"
    assert (oldest.gain, oldest.against) == (None, [])


async def test_the_live_one_is_told_beside_the_one_that_would_come_back(folder: EvolutionFolder) -> None:
    added(folder)
    folder.change(lambda state: state.promoted("v1", NOON, "gain"))
    folder.keep(folder.watch(folder.state()), pairs(-0.01, 30))
    answer = await told(folder)
    (version,) = answer.versions
    assert (answer.live, answer.former, version.role, version.against) == ("v1", BASE, "live", [])
    assert version.gain is not None
    assert version.gain.mean == pytest.approx(-0.0095)
    assert [(each.version, each.what, each.why) for each in answer.changes] == [("v1", "promoted", "gain")]
    folder.change(lambda state: state.rolled_back(NOON, "too hot"))
    answer = await told(folder)
    assert [(each.what, each.why) for each in answer.changes] == [("rolled back", "too hot"), ("promoted", "gain")]
    assert (answer.live, answer.versions[0].role) == (BASE, "taken back")


async def test_a_folder_that_cannot_be_read_is_told_without_its_path(folder: EvolutionFolder) -> None:
    (folder.path / STATE).write_text("a diary")
    answer = await told(folder)
    assert (answer.evolves, answer.remark) == (True, UNREADABLE)
    assert str(folder.path) not in UNREADABLE


async def test_what_no_answer_can_say_is_no_answer(folder: EvolutionFolder) -> None:
    folder.change(lambda state: state.promoted("v" * 200, NOON, "gain"))
    assert (await told(folder)).remark == UNREADABLE


async def test_the_newest_are_told_and_the_others_not_read(folder: EvolutionFolder, monkeypatch: Any) -> None:
    monkeypatch.setattr(policy_versions, "MOST_VERSIONS", 2)
    for number in range(4):
        added(folder, made_s=NOON + number)
    read = []
    pairs = EvolutionFolder.pairs
    monkeypatch.setattr(EvolutionFolder, "pairs", lambda self, file: read.append(file.name) or pairs(self, file))
    answer = await told(folder)
    assert [each.name for each in answer.versions] == ["v4", "v3"]
    assert len(read) == 2
