"""``ces bench latency``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import Option, command
from ces_experiments.latency.networks import BACKBONES

latency = command(
    "latency",
    "latency.report:LATENCY",
    [
        Option(
            "networks", str, ",".join(BACKBONES), "backbones of SNDlib, separated by commas",
            read=lambda flag, text: options.names(flag, text, BACKBONES),
        ),
        Option(
            "players", str, "1,2,4", "players of a game: 1-4, or 1,2,4",
            read=lambda flag, text: options.whole_numbers(flag, text, 1, 50),
        ),
        Option("seeds", int, 10, "games on each backbone with each number of players", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same games"),
        options.SOLVER.named("solver", "the solver that is compared with exact"),
        options.LIMITS("0.02"),
        Option("exact_limit", float, 30.0, "seconds for exact", of="proof_s", more=options.at_least(0.1)),
    ],
    help="VR games with deadlines, energy and reliability on two backbones: how near a solver comes to exact in time.",
)  # fmt: skip
