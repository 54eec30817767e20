"""``ces bench thesis``, ``quality``, ``generalise``, ``pareto``, ``warm-start``, ``curves``, ``train-steps``,
``long-ppo``, ``encoders`` and ``evolution``: experiments with learned schedulers.

Nothing here needs torch until it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import typer

from ces_core.registry import DEFAULT, get_solver
from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command

THESIS = ("random", "smart", "flexitask", "ppo-balance", "ces-ppo-thesis")
"""The five schedulers of the thesis's section 4.3; the last is its own, as it describes it."""
OURS = ("imitation", get_solver(DEFAULT).name)
GENERAL = ("imitation", "imitation-64", "search-learned", "greedy", "search")
TRADING = ("exact", "search", "greedy", "imitation")


def _all_with_proofs(flag: str, text: str | None) -> tuple[str, ...]:
    return options.solvers_or(flag, text, (options.GROUND_TRUTH, *options.solvers(flag, None)))


thesis = command(
    "thesis",
    "learned.thesis_report:THESIS",
    [
        options.REGIMES,
        options.TASKS,
        options.ROUNDS,
        options.SEED,
        options.compared(THESIS + OURS),
        options.LIMIT,
        options.EXACT,
        options.EXACT_LIMIT,
        PLOTS,
    ],
    help="The thesis's simulation (figure 4-3): its five schedulers and two of ours, by number of tasks.",
)

quality = command(
    "quality",
    "learned.quality_report:QUALITY",
    [
        options.REGIMES,
        options.TASKS,
        options.ROUNDS(10),
        options.SEED,
        Option("nodes", int, 10, "nodes of the random network", more=options.between(2, 10_000)),
        options.DEGREE,
        replace(options.compared(()), read=_all_with_proofs),
        options.LIMITS("0.001,0.005,0.02,0.1"),
        options.EXACT,
        options.EXACT_LIMIT,
        PLOTS,
    ],
    help="Quality against the time of a decision, every solver under several time limits.",
)

generalise = command(
    "generalise",
    "learned.generalise_report:GENERALISE",
    [
        Option(
            "nodes", str, "10,20,50,100", "nodes of random networks, separated by commas; empty: none",
            read=lambda flag, text: options.whole_numbers(flag, text, 2, 10_000) if text else (),
        ),
        Option(
            "topologies", str | None, None, "GraphML files, separated by commas, also in CES_DATA_DIR; empty: none",
            more={"show_default": "all in CES_DATA_DIR"},
        ),
        options.REGIMES("tight"),
        options.TASKS("8,16"),
        options.ROUNDS(10, "rounds for each network, regime and number of tasks"),
        options.SEED,
        options.compared(GENERAL),
        options.LIMIT,
        options.EXACT,
        options.EXACT_LIMIT(1.0),
        PLOTS,
    ],
    help="What a policy is worth on networks and jobs that it was not trained on: larger ones, and real topologies.",
)  # fmt: skip

pareto = command(
    "pareto",
    "learned.pareto_report:PARETO",
    [
        Option(
            "balance", str, "0.1,0.5,0.7,0.8,0.85,0.9,0.95",
            "weights of balance between 0 and 1, that of bandwidth is the rest; separated by commas",
            read=options.weights,
        ),
        options.REGIMES,
        options.TASKS("6"),
        options.ROUNDS(20),
        options.SEED,
        options.compared(TRADING),
        options.LIMIT(0.1),
        PLOTS,
    ],
    help="Load imbalance against bandwidth satisfaction, as the weights of the objective vary.",
)  # fmt: skip

warm_start = command(
    "warm-start",
    "learned.warm_start_report:WARM_START",
    [
        Option(
            "cases", str, "10:3-8,100:16,1000:16",
            "nodes of random networks and tasks of jobs, as 10:3-8, separated by commas", read=options.sizes,
        ),
        options.REGIMES,
        options.ROUNDS(30, "jobs for each case, regime and number of tasks"),
        options.SEED,
        options.SOLVER.named("base", "the solver that is compared with")("search"),
        options.SOLVER.named("other", "the solver that may be better")("search-learned"),
        options.LIMITS("0.001,0.005"),
        Option(
            "long", float, 0.5, "seconds in which to find what could be found",
            of="long_s", more=options.at_least(0.001),
        ),
    ],
    help="What a search gains by learned plans to begin with, in the first milliseconds and on large clusters.",
)  # fmt: skip


def _torch() -> None:
    from ces_rl.needs import require_torch

    require_torch()


curves = command(
    "curves",
    "learned.curves:CURVES",
    [
        Option("updates", int, 200, "length of each run", more=options.at_least(1)),
        Option("runs", int, 3, "runs with, and as many without the heuristic reward", more=options.at_least(1)),
        options.SEED(1, "of the first run; the next has the next"),
        Option("every", int, 20, "updates from one evaluation to the next", more=options.at_least(1)),
        Option("validation", int, 100, "instances of each regime to evaluate on", more=options.at_least(1)),
        PLOTS,
    ],
    needs=_torch,
    help="Learning curves of the thesis's scheduler with and without its heuristic reward (figure 4-5).",
)

LESSONS = (
    "ppo",
    "imitation",
    "imitation, then ppo",
    "ppo: durations seen",
    "ppo: no waiting",
    "ppo: waiting alone",
    "ppo: paid by the job",
    "ppo: paid by work",
    "ppo: paid for room",
    "ppo: against its group",
    "ppo: softer start",
    "es",
)
WAYS = (
    "rule",
    "rule: search",
    "best of six",
    "true future",
    "true future, by work",
    "search",
    "search-longrun",
    "ces-multi",
    "made-up futures",
)
"""Those of the experiment, named here so that help does not import torch."""


def _some_of(known: tuple[str, ...]) -> Callable[[str, str], tuple[str, ...]]:
    """Reads names separated by semicolons, since some have a comma."""

    def read(flag: str, text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))
        for name in found:
            if name not in known:
                raise typer.BadParameter(f"{name!r} is none of {'; '.join(known)}", param_hint=flag)
        return found

    return read


long_ppo = command(
    "long-ppo",
    "learned.long_ppo:LONG_PPO",
    [
        options.REGIME,
        Option("load", float, 0.9, "CPU or memory asked for over time, by what is free", more=options.between(0.1, 3)),
        options.JOBS(60),
        Option("repeats", int, 6, "clusters and sequences of jobs", more=options.at_least(2)),
        options.SEED(51000, "of the first cluster; the next has the next"),
        Option("updates", int, 10, "of every run of PPO", more=options.at_least(1)),
        Option("ahead", int, 12, "arrivals that a look into the future plays out", more=options.at_least(1)),
        Option("futures", int, 2, "futures made up for each decision", more=options.at_least(1)),
        Option("ways", str, "; ".join(WAYS), "that need no learning, separated by semicolons", read=_some_of(WAYS)),
        Option(
            "lessons",
            str,
            "; ".join(LESSONS),
            "how policies are taught, separated by semicolons",
            read=_some_of(LESSONS),
        ),
        PLOTS,
    ],
    needs=_torch,
    help="PPO on streams of jobs: what is left to gain in the long run, and what of it several lessons bring.",
)

encoders = command(
    "encoders",
    "learned.encoders:ENCODERS_COMPARED",
    [
        Option("nodes", int, 20, "nodes of the random networks", more=options.between(2, 10_000)),
        Option("degree", float, 4.0, "wires per node, on average", more=options.between(0.1, 100)),
        options.REGIMES("tight,scarce"),
        options.TASKS,
        Option("updates", int, 12, "length of each run", more=options.at_least(1)),
        Option("episodes", int, 48, "jobs that are placed in each update", more=options.at_least(1)),
        Option("neighbours", int, 8, "links of a node that the graph encoder looks at", more=options.at_least(1)),
        Option("gradient_steps", int, 60, "of an update, over all that was judged", more=options.at_least(1)),
        Option("limit", int, 500, "partial plans that the teacher looks at for a node", more=options.at_least(1)),
        Option("problems", int, 1000, "jobs to learn on", more=options.between(1, 100_000)),
        Option("validation", int, 30, "other instances of each regime to evaluate on", more=options.at_least(1)),
        Option("draws", int, 8, "plans drawn for each of them", more=options.at_least(1)),
        Option("every", int, 2, "updates from one evaluation to the next", more=options.at_least(1)),
        Option("runs", int, 5, "with each encoder", more=options.at_least(1)),
        options.SEED(1, "of the first run; the next has the next"),
        Option(
            "shares", str, "0.25,0.5,0.75", "of the regret before learning, that are to be reached",
            read=options.weights,
        ),
        PLOTS,
    ],
    needs=_torch,
    help="The policy with messages over links against the one that pools all nodes: regret by decisions judged.",
)  # fmt: skip

steps = command(
    "steps",
    "learned.training_speed:STEPS",
    [
        Option("slots", int, 1024, "jobs at once, in each thread", more=options.between(1, 100_000)),
        Option("rounds", int, 5, "how often each is measured", more=options.at_least(1)),
        Option("threads", int, 2, "at most; one is measured, too", more=options.between(1, 256)),
        options.SEED(1, "of the first round; the next has the next"),
    ],
    help="How many decisions per second the environments of training take.",
)

evolution = command(
    "evolution",
    "learned.evolution:EVOLUTION",
    [
        options.SOLVER("imitation-greedy", "the solver whose policy evolves"),
        Option("regime", str, "tight", "of the drifted workload: thesis, tight or scarce"),
        Option("topology", str, "ring", "its network: a shape, or a GraphML file"),
        Option("nodes", int, 12, "nodes of that network", more=options.at_least(2)),
        Option("tasks", int, 6, "tasks of each job", more=options.at_least(1)),
        Option("flows", float, 0.8, "probability of a flow between two tasks", more=options.between(0, 1)),
        Option("decisions", int, 400, "decisions of a day", more=options.at_least(20)),
        Option("most", int, 600, "logged decisions to learn from", more=options.at_least(20)),
        Option("updates", int, 12, "length of the training", more=options.at_least(1)),
        Option("episodes", int, 128, "jobs that are placed in each update", more=options.at_least(1)),
        Option("limit", int, 2000, "partial plans that the teacher looks at for a node", more=options.at_least(1)),
        options.SEED(1),
    ],
    needs=_torch,
    help="A policy that learns from a workload that has drifted: its gain on days that it has not seen.",
)
