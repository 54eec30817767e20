"""VR games on two backbones: what a solver finds within each time limit, beside what ``exact`` finds and proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.progress import Progress

from ces_core.model.instance import read_instance
from ces_core.network.cache import paths_of
from ces_core.registry import get_solver
from ces_experiments.common.console import ContradictionError, counted
from ces_experiments.common.options import GROUND_TRUTH
from ces_experiments.common.report import Found
from ces_experiments.common.spread import share, spread
from ces_experiments.latency.game import game_instance
from ces_experiments.placement.optima import EQUAL
from ces_sim.decision import decide

NEAR = 0.002
"""So much below the best known counts as near."""


@dataclass(frozen=True)
class Question:
    """``limits``: seconds for a decision; ``proof_s``: for ``exact``, whatever it then has."""

    networks: tuple[str, ...]
    players: tuple[int, ...]
    seeds: int
    seed: int
    solver: str
    limits: tuple[float, ...]
    proof_s: float


@dataclass(frozen=True)
class Game:
    """One instance, not drawn yet."""

    network: str
    players: int
    seed: int

    def of(self, network: str, players: int) -> bool:
        return (self.network, self.players) == (network, players)

    def instance(self) -> dict[str, Any]:
        return game_instance(self.network, self.players, self.seed)


@dataclass(frozen=True)
class Answer:
    """Of the solver within a limit. ``objective`` None: it found no place, for the reason ``refused_for``."""

    game: Game
    limit_s: float
    objective: float | None
    refused_for: str | None
    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Truth:
    """What ``exact`` knows: its plan's objective, an upper limit on every plan's, or that there is none."""

    objective: float | None
    bound: float | None
    impossible: bool
    cpu_s: float

    @property
    def optimal(self) -> bool:
        return self.objective is not None and self.bound is not None and self.bound <= self.objective + EQUAL


def measure(question: Question, progress: Progress) -> Found:
    """By network and number of players, for each limit; proofs after all that is timed. Raises BadDecisionError, or
    ContradictionError where the solver is above what is proven."""
    games = list(_games(question))
    step = counted(progress, "decisions", len(games) * len(question.limits))
    answers = []
    for game in games:
        for answer in _decided(question, game):
            answers.append(answer)
            step()
    step, truths = counted(progress, "proofs", len(games)), {}
    for game in games:
        truths[game] = _proven(question, game)
        step()
    for answer in answers:
        consistent(answer, truths[answer.game])
    told = {
        f"{network}, {words(players)}": _told(
            question, [game for game in games if game.of(network, players)], answers, truths
        )
        for network in question.networks
        for players in question.players
    }
    machine = {"wall_over_cpu": sum(each.wall_ms for each in answers) / max(sum(each.cpu_ms for each in answers), 1e-9)}
    rows = [asdict(answer.game) | _row(answer, truths[answer.game]) for answer in answers]
    return Found({"question": asdict(question), "cases": told}, machine=machine, raw={"decisions.csv": rows})


def words(players: int) -> str:
    return "1 player" if players == 1 else f"{players} players"


def _games(question: Question) -> Iterator[Game]:
    for network in question.networks:
        for players in question.players:
            for more in range(question.seeds):
                yield Game(network, players, question.seed + more)


def _decided(question: Question, game: Game) -> Iterator[Answer]:
    """Once before the clock starts, so that paths are known and code is compiled; then on the instance read again."""
    solver, instance = get_solver(question.solver), game.instance()
    warm = read_instance(instance)
    paths_of(warm.cluster.topology).warm()
    decide(solver, warm, instance, seed=game.seed, time_limit_s=question.limits[0])
    for limit in question.limits:
        made = decide(solver, read_instance(instance), instance, seed=game.seed, time_limit_s=limit)
        metrics, reason = made.result.metrics, made.result.reason
        objective = None if metrics is None else metrics.objective
        yield Answer(
            game, limit, objective, None if reason is None else reason.code, made.wall_s * 1e3, made.cpu_s * 1e3
        )


def _proven(question: Question, game: Game) -> Truth:
    instance = game.instance()
    made = decide(get_solver(GROUND_TRUTH), read_instance(instance), instance, time_limit_s=question.proof_s)
    metrics, reason = made.result.metrics, made.result.reason
    impossible = reason is not None and reason.proven
    return Truth(None if metrics is None else metrics.objective, made.result.bound, impossible, made.cpu_s)


def consistent(answer: Answer, truth: Truth) -> None:
    """Raises ContradictionError where a plan is better than one can be."""
    if answer.objective is None:
        return
    if truth.impossible or (truth.bound is not None and answer.objective > truth.bound + EQUAL):
        proven = "that there is none" if truth.impossible else f"that none is above {truth.bound}"
        raise ContradictionError(f"{answer.game}: a plan of {answer.objective}, and exact proved {proven}")


def _row(answer: Answer, truth: Truth) -> dict[str, Any]:
    told = {key: value for key, value in asdict(answer).items() if key != "game"}
    return told | {f"exact_{key}": value for key, value in asdict(truth).items()} | {"proven": truth.optimal}


def _told(
    question: Question, games: Sequence[Game], answers: Sequence[Answer], truths: Mapping[Game, Truth]
) -> dict[str, Any]:
    known = [truths[game] for game in games]
    mine = [answer for answer in answers if answer.game in set(games)]
    return {
        "games": len(games),
        "proven": share(sum(truth.optimal or truth.impossible for truth in known), len(known)),
        "impossible": sum(truth.impossible for truth in known),
        "exact_objective": spread(truth.objective for truth in known if truth.objective is not None),
        "exact_cpu_s": spread(truth.cpu_s for truth in known),
        "limits": {
            f"{limit * 1e3:g} ms": _within([each for each in mine if each.limit_s == limit], truths)
            for limit in question.limits
        },
    }


def _within(answers: Sequence[Answer], truths: Mapping[Game, Truth]) -> dict[str, Any]:
    """``below``: below the best plan of ``exact``, negative where the solver's is better, which can be only where
    nothing is proven; ``below_bound``: below the bound where that is not the optimum."""
    pairs = [(answer, truths[answer.game]) for answer in answers]
    placeable = [(answer.objective, truth.objective) for answer, truth in pairs if truth.objective is not None]
    gaps = [best - mine for mine, best in placeable if mine is not None]
    open_gaps = [
        truth.bound - answer.objective
        for answer, truth in pairs
        if answer.objective is not None and truth.bound is not None and not truth.optimal
    ]
    return {
        "placed": share(sum(mine is not None for mine, _ in placeable), len(placeable)),
        "objective": spread(answer.objective for answer in answers if answer.objective is not None),
        "below": spread(gaps),
        "near": share(sum(gap <= NEAR for gap in gaps), len(placeable)),
        "below_bound": spread(open_gaps),
        "wall_ms": spread(answer.wall_ms for answer in answers),
        "cpu_ms": spread(answer.cpu_ms for answer in answers),
    }
