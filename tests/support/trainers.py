"""Trainers of any network: their weights, and runs that are taken up again. Needs torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def weights(trainer: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value.numpy().copy() for name, value in trainer.policy.state_dict().items()}


def assert_same(one: Any, other: Any) -> None:
    """Both trainers have come as far, to the same weights."""
    assert (one.updates, one.steps) == (other.updates, other.steps)
    mine, others = weights(one), weights(other)
    assert mine.keys() == others.keys()
    for name, value in mine.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


def taken_up(make: Callable[[], Any], folder: Path, *, after: int, updates: int) -> Any:
    """A trainer after ``updates`` updates, the first ``after`` of which another one did that left a checkpoint."""
    import torch

    from ces_train.ppo import save

    first = make()
    for _ in range(after):
        first.update()
    save(first, folder / "checkpoint.pt")
    rest = make()
    rest.restore(torch.load(folder / "checkpoint.pt", weights_only=True))
    for _ in range(updates - after):
        rest.update()
    return rest
