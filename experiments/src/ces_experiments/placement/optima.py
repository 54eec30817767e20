"""What is truly possible: optima proven by the exact solver, in processes of their own, while nothing is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from ces_core.model.instance import read_instance
from ces_core.network.cache import paths_of
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common.machine import usable_cores
from ces_experiments.common.options import GROUND_TRUTH
from ces_sim.decision import BadDecisionError, decide
from ces_sim.rounds import Round

EQUAL = 1e-6
"""Composites as near as this count as equal."""


@dataclass(frozen=True)
class Truth:
    """What the exact solver found: its best, an upper limit on every plan's, and whether none exists for certain.
    ``cpu_s`` is what it took, with code compiled and loaded."""

    composite: float | None = None
    bound: float | None = None
    impossible: bool = False
    cpu_s: float = 0.0

    @property
    def optimal(self) -> bool:
        """Whether ``composite`` is the optimum."""
        return self.composite is not None and self.bound is not None and self.bound <= self.composite + EQUAL


def find_truths(asked: Sequence[Round], limit_s: float, advance: Callable[[], None]) -> dict[Round, Truth]:
    """The truth of each round, ``limit_s`` seconds at most for each. Raises BadDecisionError."""
    workers = min(usable_cores(), len(asked))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_warm_up) as pool:
        futures = {pool.submit(find_truth, each, limit_s): each for each in asked}
        found = {}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                advance()
        except BadDecisionError:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def find_truth(asked: Round, limit_s: float) -> Truth:
    instance = asked.instance()
    problem = read_instance(instance)
    paths_of(problem.cluster.topology).warm()
    decision = decide(get_solver(GROUND_TRUTH), problem, instance, time_limit_s=limit_s)
    result = decision.result
    if result.metrics is not None:
        return Truth(result.metrics.composite, result.bound, cpu_s=decision.cpu_s)
    return Truth(impossible=result.reason is not None and result.reason.proven, cpu_s=decision.cpu_s)


def _warm_up() -> None:
    warm_up(get_solver(GROUND_TRUTH))
