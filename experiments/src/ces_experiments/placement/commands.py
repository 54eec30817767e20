"""``ces bench placement`` and ``scale``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from pathlib import Path

from ces_core.model.topologies import SHAPES
from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command

placement = command(
    "placement",
    "placement.report:PLACEMENT",
    [
        options.REGIMES,
        options.TASKS,
        options.ROUNDS,
        options.SEED,
        options.NODES,
        options.TOPOLOGY,
        options.SOLVERS,
        Option(
            "policy", Path | None, None,
            "file of a policy of one's own: solvers that can ask it are compared with it, too",
        ),
        options.LIMIT(0.005),
        Option(
            "anytime", str, "0.001,0.02,0.1", "further time limits, seconds, for quality over time; empty: none",
            read=options.amounts,
        ),
        options.EXACT,
        options.EXACT_LIMIT,
        PLOTS,
    ],
    help="Solvers compared on single jobs: how many they place, how well, how far from the optimum, and how fast.",
)  # fmt: skip

scale = command(
    "scale",
    "placement.scale_report:SCALE",
    [
        Option(
            "nodes", str, "100,1000,10000", "nodes of the clusters, separated by commas",
            read=lambda flag, text: options.whole_numbers(flag, text, 2, 100_000),
        ),
        Option(
            "topology", str, "random", f"one of {', '.join(SHAPES)}",
            read=lambda flag, text: options.one(flag, text, lambda: SHAPES),
        ),
        options.REGIME,
        Option("tasks", int, 16, "tasks in a job", more=options.between(1, 100)),
        Option("jobs", int, 20, "jobs on each cluster", more=options.at_least(2)),
        options.LIMITS,
        options.SOLVER.named("reference", "the solver that gets long for every job, for comparison"),
        Option("long", float, 5.0, "seconds that it gets", of="reference_s", more=options.at_least(0.001)),
        options.SEED,
        options.SOLVERS,
        PLOTS,
    ],
    help="Solvers compared on clusters of growing size: time of a decision, the first and later ones, quality, memory.",
)  # fmt: skip
