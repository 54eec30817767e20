"""``ces bench network`` and ``reroute``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from functools import partial
from typing import get_args

from ces_common.shares import LinkKind
from ces_experiments.common import options
from ces_experiments.common.command import Option, command

LINKS = get_args(LinkKind)

network = command(
    "network",
    "network.report:NETWORK",
    [
        Option("seconds", int, 10, "length of each measurement, seconds", more=options.between(2, 600)),
        Option("changes", int, 20, "changes of a live flow's allocation", more=options.between(1, 1000)),
        Option("seed", int, 1, "same seed, same changes"),
        Option("links", str, "veth", f"their kind: {', '.join(LINKS)}", read=partial(options.one, known=lambda: LINKS)),
    ],
    help="Is what was allocated what flows? Rates under floods, victims, new connections, changes, many flows. "
    "As root.",
)

reroute = command(
    "reroute",
    "network.reroute:REROUTE",
    [Option("rounds", int, 10, "how often the wire is taken away", more=options.between(1, 1000))],
    help="How long a running job's stream stands still when the wire under it is gone. As root.",
)
