"""How many decisions the environments take in a second: jobs of all regimes, actions drawn from the masks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.model.generate import REGIMES
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_rl.envs.placement.simulation import PlacementSimulation
from ces_rl.envs.simulation import Simulation, SlotSize
from ces_rl.envs.thesis.simulation import ThesisSimulation
from ces_rl.problems.draw import draw, kinds, new_random
from ces_sim.rounds import derived_seed

TASKS, NODES = (3, 8), 10
ENVIRONMENTS: dict[str, Callable[[int, SlotSize], Simulation[Any]]] = {
    "placement": PlacementSimulation,
    "thesis": lambda count, size: ThesisSimulation(count, size, bandwidth=True),
    "balance": lambda count, size: ThesisSimulation(count, size, bandwidth=False),
}


def measure(question: Mapping[str, int], progress: Progress) -> Found:
    """Decisions per second (wall clock) in every environment, ``rounds`` times with one thread and with ``threads``,
    each of which plays ``slots`` jobs at once. Drawing actions is part of it, drawing jobs and starting is not."""
    slots, rounds, threads, seed = (question[each] for each in ("slots", "rounds", "threads", "seed"))
    step = counted(progress, "rounds", len(ENVIRONMENTS) * rounds * len({1, threads}))
    found: dict[str, Any] = {}
    for name, make in ENVIRONMENTS.items():
        simulations = [make(slots, SlotSize.complete(TASKS[1], NODES)) for _ in range(threads)]
        _rate(simulations, seed)  # whatever is not compiled yet
        found[name] = {}
        for used in sorted({1, threads}):
            rates = []
            for round_ in range(rounds):
                rates.append(_rate(simulations[:used], seed + round_))
                step()
            found[name][str(used)] = {"median": median(rates), "least": min(rates), "most": max(rates)}
    return Found({"question": question, "steps": found})


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One, by environment and threads."""
    question = results["question"]
    rows = [
        [name, threads, *(f"{rates[which]:,.0f}" for which in ("median", "least", "most"))]
        for name, of in results["steps"].items()
        for threads, rates in of.items()
    ]
    title = (
        f"Decisions per second: {question['slots']} jobs at once per thread, actions by chance, {question['rounds']} "
        f"rounds, seeds from {question['seed']}."
    )
    return [Grid(title, ("environment", "threads", "median", "least", "most"), rows)]


def begin(simulation: Simulation[Any], seed: int) -> None:
    """Starts every slot on a job of its own."""
    count = len(simulation.slots.problem)
    drawn = draw(new_random(seed), kinds(dict.fromkeys(REGIMES, 1.0), (NODES, NODES), TASKS), count)
    simulation.start(drawn, np.arange(count, dtype=np.int64))


def play(simulation: Simulation[Any], seed: int) -> int:
    """Plays all slots to their end. Returns the number of decisions."""
    chance, decisions = np.random.default_rng(seed), 0
    while (running := simulation.running).any():
        decisions += int(running.sum())
        odds = chance.random(simulation.slots.mask.shape, dtype=np.float32)
        simulation.step(np.where(simulation.slots.mask, odds, np.float32(-1.0)).argmax(axis=1))
    return decisions


def _rate(simulations: list[Simulation[Any]], seed: int) -> float:
    seeds = [derived_seed(seed, number) for number in range(len(simulations))]
    for simulation, own in zip(simulations, seeds, strict=True):
        begin(simulation, own)
    began = time.perf_counter()
    with ThreadPoolExecutor(len(simulations)) as pool:
        decisions = sum(pool.map(play, simulations, seeds))
    return decisions / (time.perf_counter() - began)


STEPS = Experiment(dict, measure, Report(tables))
