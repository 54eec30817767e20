"""Algorithms on any environment: made, compared by their weights, and taken up again from a checkpoint. Needs torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def made(algorithm: str, env: str, seed: int, settings: Mapping[str, Any], env_settings: Mapping[str, Any]) -> Any:
    """An algorithm with these settings and the environment's defaults for the rest."""
    from ces_rl.run import Run

    return Run.make(algorithm, env, seed, settings, env_settings, Path("nowhere")).algorithm


def weights(trainer: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value.numpy().copy() for name, value in trainer.policy.state_dict().items()}


def assert_same(one: Any, other: Any) -> None:
    """Both have come as far, to the same weights."""
    assert (one.updates, one.steps) == (other.updates, other.steps)
    mine, others = weights(one), weights(other)
    assert mine.keys() == others.keys()
    for name, value in mine.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


def taken_up(make: Callable[[], Any], folder: Path, *, after: int, updates: int) -> Any:
    """An algorithm after ``updates`` updates, the first ``after`` of which another one did that left a checkpoint."""
    from ces_rl.run import Run

    first = make()
    for _ in range(after):
        first.update()
    Run(("", ""), first, first.env, folder).save()
    rest = make()
    Run(("", ""), rest, rest.env, folder).restore()
    for _ in range(updates - after):
        rest.update()
    return rest
