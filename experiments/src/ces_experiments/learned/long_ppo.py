"""Whether a policy that is learned on streams of jobs decides better for the long run: rules, solvers of the service,
looks into the future, and policies that were taught in several ways, on the same fresh clusters with the same jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.learned.long_ppo_report import REPORT
from ces_rl.algorithms.base import Algorithm
from ces_rl.envs.base import VALIDATION_SEED, play_greedy
from ces_rl.envs.streams.env import Streams, StreamsSettings
from ces_rl.envs.streams.lookahead import Lookahead, play_by_rule, take
from ces_rl.envs.streams.proposals import attitudes, propose
from ces_rl.envs.streams.stream import MEAN_S, Scenario, Stream, offered
from ces_rl.envs.streams.vector import StreamVector
from ces_rl.plugins import algorithm as algorithm_of
from ces_sim.arrivals import TimedJob
from ces_sim.cluster import simulate
from ces_sim.outcome import Outcome
from ces_sim.queue_policies import Cycles
from ces_sim.queue_policy import FirstComeFirstServed, Policy

MEASURES = ("accepted", "served", "satisfied", "work", "wait_s")
"""Share of the jobs that ran; satisfaction of all that came, 0 for those that did not run; satisfaction of those that
ran; share of the CPU time asked for that ran; mean seconds that those which ran had waited."""
Measured = dict[str, float]
MOVED = ("entropy", "approx_kl")
"""What tells, update by update, whether a policy moves at all."""
BASES = ("search", "search-longrun", "ces-multi", "rule")
"""What differences are told to."""


@dataclass(frozen=True)
class Lesson:
    """How a policy is taught: by which algorithm, with which settings of environment and algorithm beside the usual
    ones, and after which other lesson, if any."""

    algorithm: str
    env: Mapping[str, Any] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""

    def begun(self, seed: int, updates: int, first: Algorithm | None) -> Algorithm:
        kind, defaults = algorithm_of(self.algorithm), Streams.defaults(self.algorithm)
        usual = dict(defaults.algorithm) | dict(self.how)
        if self.algorithm == "ppo":
            usual["updates"] = updates
        made: Any = kind(Streams(StreamsSettings(**self.env)), kind.Settings(**usual), seed)
        if first is not None:
            made.policy.load_state_dict(first.solution.state_dict())
        return made  # type: ignore[no-any-return]


LESSONS: Mapping[str, Lesson] = {
    "ppo": Lesson("ppo"),
    "imitation": Lesson("imitation"),
    "imitation, then ppo": Lesson("ppo", after="imitation"),
    "ppo: durations seen": Lesson("ppo", {"durations": True}),
    "ppo: no waiting": Lesson("ppo", {"waits": False}),
    "ppo: waiting alone": Lesson("ppo", {"plans": 1}),
    "ppo: paid by the job": Lesson("ppo", {"earns": {"accepted": 1.0}}),
    "ppo: paid by work": Lesson("ppo", {"earns": {"work": 1.0}}),
    "ppo: paid for room": Lesson("ppo", {"earns": {"satisfied": 1.0, "room": 2.0}}),
    "ppo: against its group": Lesson("ppo", how={"problems": 2, "group": 8, "gamma": 1.0, "gae_lambda": 1.0}),
    "ppo: softer start": Lesson("ppo", how={"temperature": (3.0, 1.0)}),
    "es": Lesson("es"),
}


@dataclass(frozen=True)
class Question:
    """``repeats`` clusters, each with ``jobs`` at this load, seeds from ``seed`` on. Looks into the future see
    ``ahead`` arrivals, and make up ``futures`` of them where they do not know it. ``updates``: of every PPO."""

    regime: str
    load: float
    jobs: int
    repeats: int
    seed: int
    updates: int
    ahead: int
    futures: int
    ways: tuple[str, ...]
    lessons: tuple[str, ...]

    @staticmethod
    def of(**values: Any) -> Question:
        """Raises typer.BadParameter."""
        question = Question(**values)
        if question.seed + question.repeats > VALIDATION_SEED:
            raise typer.BadParameter(f"from {VALIDATION_SEED} on is learned on", param_hint="--seed")
        for name in question.lessons:
            if (first := LESSONS[name].after) and first not in question.lessons:
                raise typer.BadParameter(f"{name!r} begins with {first!r}", param_hint="--lessons")
        return question


@dataclass(frozen=True)
class Fresh:
    """A cluster and jobs that nobody learned on."""

    jobs: Sequence[TimedJob]
    scenario: Scenario

    @staticmethod
    def drawn(question: Question) -> list[Fresh]:
        found = []
        for repeat in range(question.repeats):
            cluster, jobs, spare = offered(question.regime, question.load, question.jobs, question.seed + repeat)
            found.append(Fresh(jobs, Scenario.of(cluster, jobs, spare)))
        return found

    def by_service(self, solver: str, policy: Policy) -> Measured:
        """As the service would decide; jobs say truly how long they run. Raises BadDecisionError."""
        jobs = [replace(job, expected_s=job.duration_s) for job in self.jobs]
        return of_outcome(simulate(self.scenario.cluster, jobs, get_solver(solver), policy, patience_s=MEAN_S))


def of_outcome(outcome: Outcome) -> Measured:
    """The measures of a simulation."""
    ran = [fate.started_s is not None for fate in outcome.fates]
    asked = [sum(task.cpu for task in fate.job.tasks) * fate.job.duration_s for fate in outcome.fates]
    return _measured(
        ran,
        [fate.bandwidth_satisfaction or 0.0 for fate in outcome.fates],
        asked,
        [fate.waited_s for fate in outcome.fates if fate.waited_s is not None],
    )


def of_stream(stream: Stream) -> Measured:
    """The measures of a stream that is over."""
    jobs = range(len(stream.kinds))
    asked = [float(kind.problem.demand[:, 0].sum()) for kind in stream.kinds] * stream.durations
    return _measured(
        [job in stream.satisfaction for job in jobs],
        [stream.satisfaction.get(job, 0.0) for job in jobs],
        asked,
        [stream.waited_s / max(len(stream.satisfaction), 1)],
    )


def _measured(ran: Sequence[bool], satisfied: Sequence[float], asked: Any, waits: Sequence[float]) -> Measured:
    there, share, work = np.array(ran), np.array(satisfied), np.asarray(asked)
    return {
        "accepted": float(there.mean()),
        "served": float(share.mean()),
        "satisfied": float(share[there].mean()) if there.any() else 0.0,
        "work": float(work[there].sum() / work.sum()),
        "wait_s": float(np.mean(waits)) if len(waits) else 0.0,
    }


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """One way after the other; yields all that is known so far after each. Raises BadDecisionError."""
    fresh = Fresh.drawn(question)
    runs: dict[str, list[Measured]] = {}
    lessons: dict[str, Any] = {}
    taught: dict[str, Algorithm] = {}
    ways = ways_of(question)
    step = told(progress, (len(ways) + len(question.lessons)) * question.repeats)

    def found() -> Found:
        return Found({"question": asdict(question)} | summarise(runs) | {"lessons": lessons, "runs": runs})

    for name, way in ways.items():
        runs[name] = []
        for each in fresh:
            runs[name].append(way(each))
            step(name)
        yield found()
    for name in question.lessons:
        lesson, began = LESSONS[name], time.process_time()
        run = lesson.begun(1, question.updates, taught.get(lesson.after))
        measured = [run.update() for _ in range(run.settings.updates)]
        taught[name] = run
        lessons[name] = {
            "cpu_s": time.process_time() - began, "steps": run.steps, "updates": run.updates,
            "scores": [learned_score(each) for each in measured],
        } | {what: [each[what] for each in measured] for what in MOVED if what in measured[0]}  # fmt: skip
        runs[name] = by_policy(run, fresh)
        for _ in fresh:
            step(name)
        yield found()


def learned_score(measured: Mapping[str, float]) -> float:
    """What an update's episodes came to: a policy's score, or the fitness of numbers."""
    return float(measured.get("score", measured.get("fitness", 0.0)))


def by_policy(run: Algorithm, fresh: Sequence[Fresh]) -> list[Measured]:
    """Always the best action."""
    assert isinstance(run.env, Streams)
    vector = run.env.vector(len(fresh), 0)
    vector.begin([each.scenario for each in fresh])
    play_greedy(run.solution, vector)
    return [of_stream(stream) for stream in vector.streams]


def ways_of(question: Question) -> dict[str, Callable[[Fresh], Measured]]:
    """What needs no learning, by name, of those asked for."""
    ahead, futures = question.ahead, question.futures
    known: dict[str, Callable[[Fresh], Measured]] = {
        "rule": _rule,
        "rule: search": _quick_search,
        "best of six": _best_of_six,
        "true future": lambda fresh: _ahead(fresh, Lookahead(ahead, 0)),
        "true future, by work": lambda fresh: _ahead(fresh, Lookahead(ahead, 0, lambda stream: stream.work_served)),
        "search": lambda fresh: fresh.by_service("search", FirstComeFirstServed()),
        "search-longrun": lambda fresh: fresh.by_service("search-longrun", FirstComeFirstServed()),
        "ces-multi": lambda fresh: fresh.by_service("search", Cycles("ces-multi", Parameters())),
        "made-up futures": lambda fresh: _ahead(fresh, Lookahead(ahead, futures)),
    }
    for solver in {"search", "search-longrun"} & set(question.ways):
        warm_up(get_solver(solver))
    return {name: known[name] for name in question.ways}


def _rule(fresh: Fresh) -> Measured:
    stream = Stream(fresh.scenario)
    play_by_rule(stream)
    return of_stream(stream)


def _quick_search(fresh: Fresh) -> Measured:
    stream = Stream(fresh.scenario)
    while stream.job is not None:
        found = propose(stream.problem, attitudes()[1:2])
        take(stream, found, 0 if found.there[0] else 1)
    return of_stream(stream)


def _best_of_six(fresh: Fresh) -> Measured:
    """By the criterion of the rule, and its waiting: what policies begin with."""
    from ces_rl.envs.streams.network import PRIOR

    def choose(vector: StreamVector) -> int:
        plans, _, _ = vector.observe(np.zeros(1, np.int64))
        return int(np.argmax(np.where(vector.mask[0], plans[0] @ prior_weights(PRIOR), -np.inf)))

    return _played(fresh, choose)


def prior_weights(prior: Mapping[str, float]) -> np.ndarray[Any, Any]:
    """(columns of a plan,)"""
    from ces_rl.envs.streams.features import PLAN

    return np.array([prior.get(name, 0.0) for name in PLAN])


def _ahead(fresh: Fresh, lookahead: Lookahead) -> Measured:
    """The choice that comes to most; of equals the rule's, which comes first. Where only one is allowed, that."""
    rng = np.random.default_rng(0)

    def choose(vector: StreamVector) -> int:
        found, mask = vector.found[0], vector.mask[0]
        assert found is not None
        if mask.sum() == 1:
            return int(mask.argmax())
        return int(np.argmax(lookahead.judge(vector.streams[0], found, mask, rng)))

    return _played(fresh, choose)


def _played(fresh: Fresh, choose: Callable[[StreamVector], int]) -> Measured:
    vector = Streams(StreamsSettings()).vector(1, 0)
    vector.begin([fresh.scenario])
    while vector.running[0]:
        vector.step(np.array([choose(vector)]))
    return of_stream(vector.streams[0])


def summarise(runs: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    """``ways``: way -> measure -> spread over the clusters; ``differences``: base -> way -> measure -> spread of how
    far the way lies above the base, cluster by cluster. Pure."""
    return {
        "ways": {name: {what: spread(run[what] for run in found) for what in MEASURES} for name, found in runs.items()},
        "differences": {
            base: {
                name: {
                    what: spread(run[what] - of[what] for run, of in zip(found, runs[base], strict=True))
                    for what in MEASURES
                }
                for name, found in runs.items()
                if name != base
            }
            for base in BASES
            if base in runs
        },
    }


LONG_PPO = Experiment(Question.of, measure, REPORT)
