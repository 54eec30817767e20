"""``ces bench adjust``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command

adjust = command(
    "adjust",
    "adjustment.report:ADJUSTMENT",
    [
        Option("seeds", int, 5, "days, each with tracks and changes of its own", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same day"),
        Option("speed", float, 10.0, "of the user, in times walking", more=options.between(0.1, 100.0)),
        Option("restart", float, 3.0, "seconds to stop and start a task", of="restart_s", more=options.between(0, 600)),
        Option("processes", int, 1, "days at once", more=options.at_least(1)),
        PLOTS,
    ],
    help="24 simulated hours of a job whose user moves, adjusted with least disturbance, solved anew, or left alone.",
)  # fmt: skip
