"""``ces bench security``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import Option, command
from ces_experiments.security.question import KINDS_OF_TRAINING

security = command(
    "security",
    "security.report:SECURITY",
    [
        Option("seconds", float, 600.0, "how long a rogue agent attacks; 0: not at all", more=options.at_least(0)),
        Option("each", int, 10_000, "hostile messages of each kind; 0: none", more=options.between(0, 1_000_000)),
        Option("honest", int, 20, "simulated agents whose heartbeats are timed", more=options.between(2, 200)),
        Option(
            "trained", str, ",".join(KINDS_OF_TRAINING), "kinds of training, separated by commas",
            read=lambda flag, text: options.names(flag, text, KINDS_OF_TRAINING),
        ),
        Option("workers", int, 4, "workers of each training", more=options.between(4, 8)),
        Option("hidden", int, 256, "width of the two hidden layers that are trained", more=options.between(8, 1024)),
        Option("rounds", int, 60, "rounds of the same jobs without an attack", more=options.between(2, 10_000)),
        Option("seed", int, 1, "same seed, same hostile messages"),
    ],
    help="A stolen credential against real services: fuzzed messages, then every attack there is while jobs train.",
)  # fmt: skip
