"""Learning a value: the same by seed, and what it writes is what the solver reads."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from ces_core.value.value import load_value
from ces_train import commands
from ces_train.longrun import Settings, begin, learn, train, value_of
from ces_train.longrun_play import Scene

TINY = Settings(generations=2, pairs=2, jobs=12, odds={"tight": 1.0}, validated=1)


def test_the_same_seed_learns_the_same_value() -> None:
    first, again, other = learn(TINY, 1), learn(TINY, 1), learn(TINY, 2)
    assert first == again
    assert len({first, other, value_of(begin())}) == 3


def test_a_scene_plays_the_same_every_time() -> None:
    scene = Scene("tight", 0.9, 20, 7)
    assert scene.play(value_of(begin())) == scene.play(value_of(begin()))


def test_what_is_written_is_a_value_with_its_card(tmp_path: Path) -> None:
    card = train(TINY, 3, tmp_path / "deep" / "value.json")
    value = load_value(tmp_path / "deep" / "value.json")
    assert value.card == json.loads(json.dumps(card))
    assert card["runs"] == 8
    assert card["scores"]["myopic"]["tight"]["accepted"] > 0
    assert learn(TINY, 3) == type(value)(value.node, value.link, value.balance)


def test_a_value_in_place_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text("mine")
    answer = CliRunner().invoke(commands.train, ["value", "--generations", "1", "--out", str(file)])
    assert answer.exit_code == 2
    assert file.read_text() == "mine"
