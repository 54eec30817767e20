"""Learning a value: the same by seed, and what it writes is what the solver reads."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from ces_core.placement.value import Value, load_value
from ces_rl import commands
from ces_rl.envs.longrun.env import Longrun, LongrunSettings, value_of
from ces_rl.envs.longrun.scene import Scene
from ces_rl.run import Run, train

SETTINGS = {"updates": 2, "pairs": 2}
TINY = {"jobs": 12, "odds": {"tight": 1.0}, "validation": 1}


def made(seed: int, folder: Path) -> Run:
    return Run.make("es", "longrun", seed, SETTINGS, TINY, folder)


def learned(seed: int) -> Value:
    algorithm = made(seed, Path("nowhere")).algorithm
    for _ in range(2):
        algorithm.update()
    return value_of(algorithm.solution[0])


def begun() -> Value:
    return value_of(Longrun(LongrunSettings()).start(0))


def test_the_same_seed_learns_the_same_value() -> None:
    first, again, other = learned(1), learned(1), learned(2)
    assert first == again
    assert len({first, other, begun()}) == 3


def test_a_scene_plays_the_same_every_time() -> None:
    scene = Scene("tight", 0.9, 20, 7)
    assert scene.play(begun()) == scene.play(begun())


def test_what_is_written_is_a_value_with_its_card(tmp_path: Path) -> None:
    card = train(made(3, tmp_path / "deep" / "run"))
    value = load_value(tmp_path / "deep" / "run" / "value.json")
    assert value.card == json.loads(json.dumps(card))
    assert card["steps"] == 8
    assert card["baselines"]["myopic"]["tight"]["accepted"] > 0
    assert card["before learning"]["with the value"].keys() == {"tight"}
    assert learned(3) == type(value)(value.node, value.link, value.balance)


def test_a_search_goes_on_where_it_was_left(tmp_path: Path) -> None:
    first, rest = made(1, tmp_path), made(1, tmp_path)
    first.algorithm.update()
    first.save()
    rest.restore()
    rest.algorithm.update()
    assert value_of(rest.algorithm.solution[0]) == learned(1)


def test_a_value_in_place_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text("mine")
    answer = CliRunner().invoke(commands.train, ["es", "--env", "longrun", "--updates", "1", "--out", str(tmp_path)])
    assert answer.exit_code == 2
    assert (tmp_path / "checkpoint.json").read_text() == "mine"
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.json"]
