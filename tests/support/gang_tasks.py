"""What ranks of a gang do in tests: plain functions, so that processes of their own can import them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from toy_learning import Toy, ToySettings

from ces_rl.gang import Gang

SEED = 3


def everything(gang: Gang, tasks: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """One task after the other, each a function with its arguments."""
    return {name: function(gang, *arguments) for name, (function, *arguments) in tasks.items()}


def collectives(gang: Gang, numbers: list[float]) -> dict[str, Any]:
    """Everything that ranks ask each other."""
    mine = np.array(numbers[gang.rank :: gang.size])
    return {
        "rank": gang.rank,
        "gathered": gang.gathered(f"of {gang.rank}"),
        "of_first": gang.of_first(f"of {gang.rank}"),
        "each": gang.each(lambda number: number * 10, numbers),
        "share": gang.share(len(numbers)),
        "total": gang.total([gang.rank, 1.0]).tolist(),
        "any": (gang.any(gang.rank == gang.size - 1), gang.any(False)),
        "mean": gang.mean({"number": float(mine.mean()) if len(mine) else 0.0}, len(mine)),
        "moments": gang.moments(mine),
        "moments of nothing": gang.moments(mine[:0]),
    }


def gradient(gang: Gang, rows: list[list[float]]) -> list[float]:
    """The gradient of the mean loss over all rows; each rank has its share of them."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(len(rows[0]), 1)
    mine = torch.tensor(rows[gang.rank :: gang.size])
    if len(mine):
        torch.autograd.backward((network(mine) ** 2).mean())
    gang.average_gradients(network.parameters(), len(mine))
    return [float(each) for part in network.parameters() for each in part.grad.reshape(-1)]


def learned(gang: Gang, algorithm: str, settings: dict[str, Any], updates: int, state: Any = None) -> Any:
    """Train for so many more updates, on a toy environment (imitation: on a small real one). Returns the state, and
    what the last update measured."""
    from toy_team import ToyTeam, ToyTeamSettings

    from ces_rl.envs.placement.env import Placement
    from ces_rl.plugins import algorithm as algorithm_of

    kind = algorithm_of(algorithm)
    place: Any = {
        "imitation": lambda: Placement(Placement.Settings(width=16, tasks=(3, 4))),
        "mappo": lambda: ToyTeam(ToyTeamSettings()),
    }.get(algorithm, lambda: Toy(ToySettings()))()
    run = kind(place, kind.Settings(**settings), SEED)
    run.gang = gang
    if state is not None:
        run.restore(state)
    measured: dict[str, float] = {}
    for _ in range(updates):
        measured = run.update()
    return run.state(), measured


def run_in(gang: Gang, spec: dict[str, Any], folder: Path, stop_after: int) -> str:
    """A rank's part of a run whose checkpoint lies in ``folder``; told to stop after so many updates, never if 0."""
    import os

    from ces_rl import rank, run

    os.environ[rank.CHECKPOINT] = str(folder)
    told: list[int] = []
    if stop_after and gang.rank == gang.size - 1:  # one is told before the others

        class Counting(list[int]):
            asked = 0

            def __bool__(self) -> bool:
                self.asked += 1
                return self.asked >= stop_after

        told = Counting()
    try:
        rank.learn(spec, gang, told)
    except run.StoppedError as error:
        return str(error)
    return "done"
