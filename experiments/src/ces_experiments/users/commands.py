"""``ces bench users``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command

users = command(
    "users",
    "users.report:USERS",
    [
        Option("users", int, 300, "users who come to each city", more=options.between(25, 700)),
        Option("seeds", int, 10, "draws of the city", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same cities and users"),
        options.SOLVER.named("solver", "the solver that is compared with the rules"),
        options.LIMIT(0.02),
        PLOTS,
    ],
    help="Users of a city near 125 sites (EUA): how many get answers in time, by the solver and by simple rules.",
)  # fmt: skip
