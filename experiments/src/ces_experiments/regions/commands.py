"""``ces bench regions`` and ``regions-live``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import ON_CLUSTER, PLOTS, Option, command

MOST_REGIONS = 64
HOMES = ("even", "uneven")
USUAL = "central,one-decider,regions,at-once,alone"


def _ways(flag: str, text: str) -> tuple[str, ...]:
    from ces_experiments.regions.run import WAYS

    return options.names(flag, text, WAYS)


regions = command(
    "regions",
    "regions.report:REGIONS",
    [
        Option(
            "regions", str, "4", "how many: 4, or 4,8,16",
            read=lambda flag, text: options.whole_numbers(flag, text, 1, MOST_REGIONS),
        ),
        Option(
            "homes", str, "even,uneven", "uneven: a quarter of the regions submits half of the jobs",
            read=lambda flag, text: options.names(flag, text, HOMES),
        ),
        options.LOADS("0.8"),
        Option("ways", str, USUAL, "who decides on the same jobs, separated by commas; see the page", read=_ways),
        Option("one_up_to", int, MOST_REGIONS, "no one cluster of more regions than this", more=options.at_least(1)),
        Option("jobs", int, 125, "jobs of each region, on average", more=options.between(1, 10_000)),
        Option("nodes", int, 10, "nodes of each region", more=options.between(2, 1000)),
        options.TASKS("1-8"),
        options.DURATION,
        Option(
            "patience", float, 600.0, "seconds that a job waits for a place",
            of="patience_s", more=options.at_least(0),
        ),
        Option("wire_ms", float, 20.0, "from one region to another, one way", more=options.between(0, 1000)),
        options.REGIME,
        options.SOLVER.named("solver", "that decides in every region, and on the one cluster"),
        Option("seeds", int, 10, "draws of clusters and jobs", more=options.between(1, 1000)),
        options.SEED,
        Option("processes", int, 1, "runs at once", more=options.at_least(1)),
        PLOTS,
        *ON_CLUSTER,
    ],
    help="The same jobs in regions, by their real protocol, and on one cluster of the same size: simulated.",
)  # fmt: skip

regions_live = command(
    "regions-live",
    "regions.live_report:LIVE",
    [
        Option("regions", int, 4, "whole clusters on this machine", more=options.between(2, 8)),
        Option("nodes", int, 6, "simulated agents of each region, with four cores each", more=options.between(3, 100)),
        Option("jobs", int, 500, "of them, half from a quarter of the regions", more=options.between(1, 10_000)),
        Option("rate", float, 2.0, "jobs submitted per second", more=options.between(0.1, 100)),
        Option("tasks", int, 3, "tasks of each job, in a ring", more=options.between(1, 12)),
        Option("run_s", float, 10.0, "how long each job runs, seconds", more=options.between(0, 600)),
        options.SEED(1, "same seed, same jobs"),
    ],
    help="Real regions on one machine: submit-to-running at home and elsewhere, and what crosses the hub.",
)  # fmt: skip
