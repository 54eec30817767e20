"""``ces train steps``: the rate of decisions, for every environment and number of threads."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from ces_train import stepping
from ces_train.commands import train
from ces_train.games import Games, Most


def test_every_environment_is_measured_with_one_thread_and_with_all(tmp_path: Path) -> None:
    words = ["steps", "--games", "16", "--rounds", "2", "--threads", "2", "--out", str(tmp_path)]
    answer = CliRunner().invoke(train, words)
    assert answer.exit_code == 0, answer.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["steps"].keys() == stepping.ENVIRONMENTS.keys()
    for found in results["steps"].values():
        assert list(found) == ["1", "2"]
        assert all(0 < rates["least"] <= rates["median"] <= rates["most"] for rates in found.values())
    tables = (tmp_path / "tables.md").read_text()
    assert all(name in tables for name in stepping.ENVIRONMENTS)


def test_only_games_that_go_on_count_as_decisions() -> None:
    games = Games(3, Most.complete(8, 10))
    assert not games.playing.any()
    assert stepping.play(games, 1) == 0
    stepping.begin(games, 1)
    playing = int(games.playing.sum())
    assert playing
    decisions = stepping.play(games, 1)
    assert not games.playing.any()
    assert decisions == sum(int(games.game(i)[2].level[0]) for i in range(3)), (
        "each placed a task, and those only count"
    )
    assert playing <= decisions <= stepping.TASKS[1] * playing
