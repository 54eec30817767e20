"""How many decisions the environments take in a second: jobs of all regimes, nodes and levels drawn from the masks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np

from ces_core.bench.results import Grid
from ces_core.generate import REGIMES
from ces_core.simulator.rounds import derived_seed
from ces_train.drawing import draw, kinds, new_random
from ces_train.games import Batch, Games, Most
from ces_train.thesis_games import ThesisGames

TASKS, NODES = (3, 8), 10
ENVIRONMENTS: dict[str, Callable[[int, Most], Batch[Any]]] = {
    "general": Games,
    "thesis": lambda count, most: ThesisGames(count, most, bandwidth=True),
    "thesis, without levels": lambda count, most: ThesisGames(count, most, bandwidth=False),
}


def measure(games: int, rounds: int, threads: int, seed: int, step: Callable[[], object]) -> dict[str, Any]:
    """Decisions per second of the clock of every environment, ``rounds`` times with one thread and with ``threads``,
    each of which plays ``games`` jobs at once. Drawing actions is part of it, drawing jobs and starting is not."""
    found: dict[str, Any] = {}
    for name, make in ENVIRONMENTS.items():
        batches = [make(games, Most.complete(TASKS[1], NODES)) for _ in range(threads)]
        _rate(batches, seed)  # whatever is not compiled yet
        found[name] = {}
        for used in sorted({1, threads}):
            rates = []
            for round_ in range(rounds):
                rates.append(_rate(batches[:used], seed + round_))
                step()
            found[name][str(used)] = {"median": median(rates), "least": min(rates), "most": max(rates)}
    return found


def grid(question: dict[str, Any], found: dict[str, Any]) -> Grid:
    rows = [
        [name, threads, *(f"{rates[which]:,.0f}" for which in ("median", "least", "most"))]
        for name, of in found.items()
        for threads, rates in of.items()
    ]
    title = (
        f"Decisions per second: {question['games']} jobs at once per thread, actions by chance, {question['rounds']} "
        f"rounds, seeds from {question['seed']}."
    )
    return Grid(title, ("environment", "threads", "median", "least", "most"), rows)


def begin(games: Batch[Any], seed: int) -> None:
    """Starts every game on a job of its own."""
    count = len(games.seats.problem)
    drawn = draw(new_random(seed), kinds(dict.fromkeys(REGIMES, 1.0), (NODES, NODES), TASKS), count)
    games.start(drawn, np.arange(count, dtype=np.int64))


def play(games: Batch[Any], seed: int) -> int:
    """Plays all games to their end; how many decisions that took."""
    chance, decisions = np.random.default_rng(seed), 0
    while (playing := games.playing).any():
        decisions += int(playing.sum())
        odds = chance.random(games.seats.mask.shape, dtype=np.float32)
        games.step(np.where(games.seats.mask, odds, np.float32(-1.0)).argmax(axis=1))
    return decisions


def _rate(batches: list[Batch[Any]], seed: int) -> float:
    seeds = [derived_seed(seed, number) for number in range(len(batches))]
    for games, own in zip(batches, seeds, strict=True):
        begin(games, own)
    began = time.perf_counter()
    with ThreadPoolExecutor(len(batches)) as pool:
        decisions = sum(pool.map(play, batches, seeds))
    return decisions / (time.perf_counter() - began)
