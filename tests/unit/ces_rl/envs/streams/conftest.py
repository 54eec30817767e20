from __future__ import annotations

import pytest

from ces_rl.envs.streams.lookahead import play_by_rule
from ces_rl.envs.streams.stream import Scenario, Stream


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """The searches that propose plans."""
    play_by_rule(Stream(Scenario.draw("tight", 1.0, 2, 1)))
