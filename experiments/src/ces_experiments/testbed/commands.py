"""``ces bench testbed``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_core.registry import available
from ces_experiments.common import options
from ces_experiments.common.command import Option, command
from ces_experiments.testbed.question import ARCHITECTURES, FIRST_SEED, KNOWN_ARCHITECTURES, SCHEDULERS

testbed = command(
    "testbed",
    "testbed.report:TESTBED",
    [
        Option(
            "schedulers", str, ",".join(SCHEDULERS),
            "those compared, separated by commas: any that `ces solvers` lists",
            read=lambda flag, text: options.names(flag, text, sorted(available())),
        ),
        Option(
            "architectures", str, ",".join(ARCHITECTURES),
            "gossip, etree, parameter-server or ring, separated by commas",
            read=lambda flag, text: options.names(flag, text, KNOWN_ARCHITECTURES),
        ),
        Option("seeds", int, 5, "number of seeds", more=options.between(1, 1000)),
        Option("first_seed", int, FIRST_SEED, "the first of them", more=options.at_least(0)),
        Option("accuracy", float, 0.9, "at which a training is done", read=options.number,
               more=options.between(0.2, 0.95)),
        Option("limit_s", float, 90.0, "longest training, seconds", read=options.number,
               more=options.between(5, 3600)),
    ],
    help="Schedulers compared by what jobs get on ten emulated hosts: plans, bandwidth, time to an accuracy. As root.",
)  # fmt: skip
