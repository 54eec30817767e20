"""``ces bench applications``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import Option, command

applications = command(
    "applications",
    "applications.report:APPLICATIONS",
    [
        Option("applications", int, 20, "how many are drawn", more=options.between(1, 200)),
        options.SEED(1, "same seed, same applications"),
        Option("seconds", float, 20.0, "for which each runs alone, and in each flood", read=options.number,
               more=options.between(5, 20)),
        Option("largest", int, 8000, "bytes of the largest message", more=options.between(2000, 100_000)),
        Option("together", int, 2, "applications at a time", more=options.between(1, 10)),
        Option("floods", bool, True, "flood the wires, too, with reservations and without",
               flags=("--floods/--no-floods",)),
    ],
    help="What requests take on emulated hosts with delays, beside the model; and how many miss deadlines in floods. "
    "As root.",
)  # fmt: skip
