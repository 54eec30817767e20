"""``ces bench latency`` and ``energy``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command
from ces_experiments.latency.networks import BACKBONES

NETWORKS = Option(
    "networks", str, ",".join(BACKBONES), "backbones of SNDlib, separated by commas",
    read=lambda flag, text: options.names(flag, text, BACKBONES),
)  # fmt: skip
SEEDS = Option("seeds", int, 10, "games on each backbone with each number of players", more=options.between(1, 1000))
FIRST_SEED = options.SEED(0, "the first seed; same seed, same games")

latency = command(
    "latency",
    "latency.report:LATENCY",
    [
        NETWORKS,
        Option(
            "players", str, "1,2,4", "players of a game: 1-4, or 1,2,4",
            read=lambda flag, text: options.whole_numbers(flag, text, 1, 50),
        ),
        SEEDS,
        FIRST_SEED,
        options.SOLVER.named("solver", "the solver that is compared with exact"),
        options.LIMITS("0.02"),
        Option("exact_limit", float, 30.0, "seconds for exact", of="proof_s", more=options.at_least(0.1)),
    ],
    help="VR games with deadlines, energy and reliability on two backbones: how near a solver comes to exact in time.",
)  # fmt: skip

energy = command(
    "energy",
    "latency.energy_report:ENERGY",
    [
        NETWORKS,
        Option(
            "weights", str, "0.01,0.05,0.1,0.15,0.2,0.25,0.3,0.5,0.7,0.9",
            "weights of energy between 0 and 1, separated by commas", read=options.weights,
        ),
        Option("players", int, 2, "players of each game", more=options.between(1, 50)),
        SEEDS,
        FIRST_SEED,
        options.SOLVER.named("solver", "the solver that is asked"),
        options.LIMIT(0.1),
        PLOTS,
    ],
    help="VR games under growing weights of energy: the watts that they add, and what that takes from everything else.",
)  # fmt: skip
