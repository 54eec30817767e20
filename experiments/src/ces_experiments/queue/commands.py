"""``ces bench online``, ``longrun`` and ``multi``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from dataclasses import replace

from ces_experiments.common import options
from ces_experiments.common.command import ON_CLUSTER, PLOTS, Option, command

RIVALS = ("search", "search-longrun")

online = command(
    "online",
    "queue.online_report:ONLINE",
    [
        options.LOADS("0.5,0.75,1,1.25"),
        options.REGIME,
        options.NODES,
        options.TOPOLOGY,
        options.JOBS,
        options.TASKS("3-8", options.OF_A_TRACE.format("3-8")),
        options.DURATION,
        Option(
            "patience", float, 600.0, "seconds that a job waits for a place",
            of="patience_s", more=options.at_least(0),
        ),
        Option(
            "policy", str, "fcfs-backfill", "fcfs, or fcfs-backfill: who waits holds up nobody",
            read=lambda flag, text: options.one(flag, text, lambda: ("fcfs-backfill", "fcfs")),
        ),
        options.TRACE,
        options.AS_TIMED,
        options.REPEATS,
        options.SEED,
        options.SOLVERS,
        options.LIMIT(0.02, "seconds for a decision; 0: no limit"),
        PLOTS,
        *ON_CLUSTER,
    ],
    help="Solvers compared on jobs that arrive, wait, run and leave: acceptance, waiting, use of nodes and links.",
)  # fmt: skip

longrun = command(
    "longrun",
    "queue.longrun_report:LONGRUN",
    [
        options.REGIMES,
        options.LOADS("0.7,0.9,1.1"),
        Option("nodes", int, 20, "nodes of a random network", more=options.between(1, 10_000)),
        options.JOBS,
        Option("repeats", int, 12, "clusters and sequences of jobs", more=options.at_least(2)),
        options.SEED,
        options.compared(RIVALS, " and ".join(RIVALS), "those compared, separated by commas; all with the first"),
        options.LIMIT,
        PLOTS,
        *ON_CLUSTER,
    ],
    help="What a learned value of the room left behind is worth over time: differences on the same jobs and clusters.",
)

multi = command(
    "multi",
    "queue.multi_report:QUEUES",
    [
        options.REGIMES("tight"),
        options.LOADS("0.9", "arrivals, by what the cluster gets through in order of arrival; separated by commas"),
        replace(options.NODES, more=options.between(2, 10_000, show_default=False)),
        options.TOPOLOGY,
        options.JOBS(100),
        options.TASKS("1-8", options.OF_A_TRACE.format("1-8")),
        options.DURATION,
        Option(
            "bound", float, 14_400.0, "seconds of waiting after which a job has starved",
            of="bound_s", more=options.at_least(1),
        ),
        options.TRACE,
        options.AS_TIMED,
        options.REPEATS(2),
        options.SEED,
        options.SOLVER.named("solver", "the single-job solver of all policies"),
        Option(
            "policies", str | None, None, "those compared, separated by commas",
            of="only", more={"show_default": "all, with either placement"},
        ),
        Option(
            "misjudged", float, 0.0, "jobs misjudge their durations by a lognormal factor of this sigma",
            more=options.between(0, 5),
        ),
        options.LIMIT(0.0, "seconds for a decision; 0: no limit"),
        Option("cycles", int, 0, "cycles timed on 100 nodes with 1000 waiting jobs; 0: none", more=options.at_least(0)),
        Option("processes", int, 1, "clusters that are simulated at once", more=options.at_least(1)),
        PLOTS,
        *ON_CLUSTER,
    ],
    help="Queue policies compared on jobs that arrive, wait, run and leave: waiting, fairness, starvation, use.",
)  # fmt: skip
