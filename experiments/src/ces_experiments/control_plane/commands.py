"""``ces bench control-plane``, ``queue`` and ``fleet``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ces_experiments.common import options
from ces_experiments.common.command import Option, command

DATABASE = Option("database", str | None, None, "a postgresql:// URL; SQLite when left out")
MANAGERS = Option("managers", int, 1, "managers side by side", more=options.between(1, 5))
SCHEDULERS = Option("schedulers", int, 1, "schedulers side by side", more=options.between(1, 5))
ENCRYPTED = Option("encrypted", bool, True, "TLS between all of them", flags=("--encrypted/--plain",))
SEED = Option("seed", int, 1, "same seed, same jobs")


def _checked(flag: str, parameters: Path | None) -> Any:
    from ces_testbed.cli.options import checked_queue

    return checked_queue(parameters)


control_plane = command(
    "control-plane",
    "control_plane.report:CONTROL_PLANE",
    [
        Option("nodes", int, 100, "simulated agents", more=options.between(6, 1000)),
        Option("jobs", int, 500, "jobs in all", more=options.between(1, 100_000)),
        Option("tasks", int, 5, "tasks of each job, in a ring", more=options.between(1, 100)),
        Option("rate", float, 0.0, "jobs offered per second; 0: all at once", more=options.at_least(0)),
        Option("run_s", float, 10.0, "how long each worker runs, seconds", more=options.at_least(0)),
        MANAGERS,
        SCHEDULERS,
        DATABASE,
        ENCRYPTED,
        Option("trace_ratio", float, 0.0, "share of the jobs that are traced", more=options.between(0, 1)),
        SEED,
    ],
    help="Real services, NATS and database under load from simulated agents: submit-to-running, jobs/s, messages, CPU.",
)

queue = command(
    "queue",
    "control_plane.queue.report:QUEUE",
    [
        Option("nodes", int, 50, "simulated agents", more=options.between(8, 1000)),
        Option("jobs", int, 1000, "jobs in all", more=options.between(1, 100_000)),
        Option("rate", float, 0.0, "jobs submitted per second; 0: all at once", more=options.at_least(0)),
        Option("run_s", float, 8.0, "how long jobs run on average, seconds", more=options.at_least(0.1)),
        MANAGERS,
        SCHEDULERS,
        Option(
            "kills", float, 0.0, "seconds between two kills of a manager, a scheduler or a controller; 0: none",
            more=options.at_least(0),
        ),
        DATABASE,
        Option(
            "parameters", Path | None, None, "a file of the queue's parameters; all defaults when left out",
            flags=("--queue",), read=_checked,
        ),
        SEED,
    ],
    help="Many more jobs than there is room for, on simulated agents; the event log of it all is audited.",
)  # fmt: skip

fleet = command(
    "fleet",
    "control_plane.fleet.report:FLEET",
    [
        Option("nodes", int, 1000, "simulated agents", more=options.between(6, 20_000)),
        Option("interval_s", float, 2.0, "between a node's heartbeats, seconds", more=options.at_least(0.1)),
        Option("lease_s", float, 30.0, "how long leases last, seconds", more=options.at_least(1)),
        Option("lasts_s", float, 120.0, "how long it is looked at, seconds", more=options.at_least(1)),
        Option("jobs", int, 200, "jobs, all submitted at once after a sixth of the time", more=options.at_least(0)),
        Option("tasks", int, 3, "tasks of each job, in a ring", more=options.between(1, 100)),
        Option("run_s", float, 10.0, "how long each worker runs, seconds", more=options.at_least(0)),
        Option("flap_s", float, 30.0, "how often a link goes down; 0: never", more=options.at_least(0)),
        Option("stalled_s", float, 20.0, "seconds that the manager stops for at half-time", more=options.at_least(0)),
        DATABASE,
        ENCRYPTED,
        SEED,
    ],
    help="Thousands of nodes on one manager: whose leases are lost under a burst of jobs, flapping links and a stall.",
)
