"""The policies that ship, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ces_core.amounts.policy import SHIPPED, load_amounts_policy
from ces_core.amounts.settings import SETTINGS
from ces_core.amounts.speeds import speeds
from ces_core.learned.policy import SHIPPED as OF_PLACEMENT
from ces_core.model.errors import PolicyError
from ces_sim.amounts import play, play_policy


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_has_its_card_and_beats_the_best_published_rule(name: str) -> None:
    policy, setting = load_amounts_policy(SHIPPED[name]), SETTINGS[name]
    card = json.loads(SHIPPED[name].with_name(f"{name}-model-card.json").read_text())
    assert policy.card == card
    assert policy.card["settings"]["env"]["setting"] == name
    seeds = np.arange(600_000, 600_003)
    learned = play_policy(setting, speeds(setting), policy, seeds, np.random.default_rng(1))
    assert (learned.mean < play(setting, speeds(setting), "optimus", seeds).mean - 2.0).all()


def test_a_policy_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="other features"):
        load_amounts_policy(OF_PLACEMENT)
    (tmp_path / "policy.onnx").write_bytes(b"no network")
    with pytest.raises(PolicyError, match="is no ONNX file"):
        load_amounts_policy(tmp_path / "policy.onnx")
