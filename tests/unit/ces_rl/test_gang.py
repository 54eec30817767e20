"""Ranks that learn together: they agree, and come to what one rank comes to."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gang_tasks import collectives, everything, gradient, learned
from torch_gang import together

from ces_rl import gang as gangs
from ces_rl.algorithms.base import RefusedError
from ces_rl.gang import ALONE, Gang, SoleRank, TorchGang
from ces_testbed.spec import LOCALHOST, free_port

pytestmark = pytest.mark.needs("torch")
NUMBERS = [1.0, 2.0, 4.0, 8.0, 16.0]
ROWS = [[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5], [2.0, 2.0]]
FEW = ROWS[:2]  # one rank of three has none
PPO = {"updates": 24, "problems": 96, "minibatch_size": 64, "learning_rate": (3e-2, 3e-3), "ent_coef": (0.0, 0.0)}
ES = {"updates": 4, "pairs": 5}
CEM = {"updates": 4, "draws": 10}
MAPPO = {"updates": 4, "problems": 30, "minibatch_size": 16}
IMITATION = {"updates": 4, "episodes": 9, "limit": 60, "gradient_steps": 5, "batch_size": 32, "threads": 1}


def same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool((left == right).all()) if hasattr(left, "all") else bool(left == right)


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    """What three ranks come to, by rank: one gang for all tests, since each of its processes imports torch."""
    tasks = {
        "collectives": (collectives, NUMBERS),
        "gradient": (gradient, ROWS),
        "gradient of few": (gradient, FEW),
        "es": (learned, "es", ES, 4),
        "cem": (learned, "cem", CEM, 4),
        "ppo": (learned, "ppo", PPO, 12),
        "ppo, fewer decisions than steps": (learned, "ppo", PPO | {"problems": 3, "minibatch_size": 1}, 2),
        "mappo": (learned, "mappo", MAPPO, 2),
        "imitation": (learned, "imitation", IMITATION, 2),
    }
    return together(3, everything, tasks)


def test_what_ranks_ask_each_other(found: list[dict[str, Any]]) -> None:
    answers = [each["collectives"] for each in found]
    for rank, said in enumerate(answers):
        assert said["rank"] == rank
        assert said["gathered"] == ["of 0", "of 1", "of 2"]
        assert said["of_first"] == "of 0"
        assert said["each"] == [10 * number for number in NUMBERS]
        assert said["total"] == [3.0, 3.0]
        assert said["any"] == (True, False)
        assert said["mean"]["number"] == pytest.approx(np.mean(NUMBERS))
        assert said["moments"] == pytest.approx((np.mean(NUMBERS), np.std(NUMBERS)))
        assert said["moments of nothing"] == (0.0, 1.0)
    assert [said["share"] for said in answers] == [2, 2, 1]


def test_one_rank_alone_answers_itself() -> None:
    said = collectives(ALONE, NUMBERS)
    assert said["gathered"] == ["of 0"]
    assert said["each"] == [10 * number for number in NUMBERS]
    assert said["moments"] == (np.mean(NUMBERS), np.std(NUMBERS))
    assert said["moments of nothing"] == (0.0, 1.0)
    assert said["share"] == len(NUMBERS)


@pytest.mark.parametrize(("task", "rows"), [("gradient", ROWS), ("gradient of few", FEW)])
def test_gradients_are_those_of_all_rows_together(found: list[dict[str, Any]], task: str, rows: Any) -> None:
    """However unevenly the ranks share them."""
    expected = gradient(ALONE, rows)
    for each in found:
        assert each[task] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("algorithm", "settings"), [("es", ES), ("cem", CEM)])
def test_searches_for_numbers_come_to_the_same_bit_for_bit(
    found: list[dict[str, Any]], algorithm: str, settings: dict[str, Any]
) -> None:
    alone, measured = learned(ALONE, algorithm, settings, 4)
    for each in found:
        state, said = each[algorithm]
        assert same(state, alone)
        assert said == measured


def test_ppo_learns_as_well_with_more_ranks_and_goes_on_with_another_number(found: list[dict[str, Any]]) -> None:
    whole, alone = learned(ALONE, "ppo", PPO, 24)
    assert alone["success"] > 0.95
    first = [each["ppo"] for each in found]
    state, measured = first[0]
    assert all(same(other["policy"], state["policy"]) for other, _ in first)
    assert all(said == measured for _, said in first)
    assert state["steps"] == whole["steps"] / 2
    for ended, said in (learned(ALONE, "ppo", PPO, 12, state), *together(2, learned, "ppo", PPO, 12, state)):
        assert said["success"] > 0.95
        assert (ended["updates"], ended["steps"]) == (24, whole["steps"])


@pytest.mark.parametrize("task", ["ppo, fewer decisions than steps", "mappo", "imitation"])
def test_ranks_keep_the_same_weights(found: list[dict[str, Any]], task: str) -> None:
    state, measured = found[0][task]
    assert all(same(each[task][0]["policy"], state["policy"]) for each in found)
    assert all(np.isfinite(part).all() for part in state["policy"].values())
    assert all(each[task][1] == measured for each in found)
    assert all(each[task][0]["steps"] == state["steps"] for each in found)


def test_what_was_judged_is_everybodys(found: list[dict[str, Any]]) -> None:
    state, measured = found[0]["imitation"]
    assert measured["dataset"] == state["steps"] == len(state["dataset"][-1])
    assert all(same(each["imitation"][0]["dataset"], state["dataset"]) for each in found)


def test_one_rank_of_a_job_draws_other_problems_in_each_update() -> None:
    """Though its state counts from the last start."""
    state, _ = learned(SoleRank(), "mappo", MAPPO, 1)
    again, _ = learned(SoleRank(), "mappo", MAPPO, 1, state)
    assert not same(state["rng"], again["rng"])


def test_more_ranks_than_problems_are_refused() -> None:
    class Crowd(Gang):
        size = 7

    with pytest.raises(RefusedError, match="6 problems of an update are too few for 7 ranks"):
        learned(Crowd(), "ppo", PPO | {"problems": 6}, 1)


def test_ranks_meet_those_of_their_own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the first rank of the start before still listens when the others come."""
    port, was_there = free_port(LOCALHOST, set()), threading.Event()
    monkeypatch.setenv("PET_RDZV_ID", "first.1")
    before = gangs.meeting_place(0, LOCALHOST, port)
    monkeypatch.setenv("PET_RDZV_ID", "first.2")
    monkeypatch.setattr("ces_rl.gang.time.sleep", lambda _: was_there.set())
    with ThreadPoolExecutor() as pool:
        other = pool.submit(gangs.meeting_place, 1, LOCALHOST, port)
        assert was_there.wait(60)
        del before
        first = gangs.meeting_place(0, LOCALHOST, port)
        first.set("said", "by the first")
        assert other.result(60).get("said") == b"by the first"


def test_no_rank_leaves_before_all_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    port, ranks = free_port(LOCALHOST, set()), []
    for rank in range(2):
        ranks.append(TorchGang.__new__(TorchGang))
        ranks[rank].rank, ranks[rank].size = rank, 2
        ranks[rank].store = gangs.meeting_place(rank, LOCALHOST, port)
    first, other = ranks
    with ThreadPoolExecutor() as pool:
        left = pool.submit(other.leave)
        first.store.wait(["ces/done/1"])
        assert not left.done()
        first.leave()
        left.result(60)


def test_a_launcher_that_listens_itself_is_met_there(tmp_path: Path) -> None:
    """torchrun does: it says so, and the first rank can then not listen at the same place."""
    program = tmp_path / "rank.py"
    program.write_text(
        "import sys\nfrom ces_rl.gang import joined\n"
        "gang = joined()\nprint(gang.gathered(gang.rank), file=sys.stderr)\ngang.leave()\n"
    )
    port = free_port(LOCALHOST, set())
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    run = subprocess.run([*torchrun, str(program)], capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("[0, 1]") == 2
