"""``ces bench elastic`` and ``elastic-edge``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command
from ces_experiments.malleable.inputs import USUAL, inputs

COMPAT = "elasticflow"


def _compat(flag: str, text: str | None) -> str | None:
    from ces_experiments.malleable.elastic import compat

    return compat(flag, text)


elastic = command(
    "elastic",
    "malleable.elastic_report:ELASTIC",
    [
        Option(
            "traces", str, ",".join(USUAL), "traces in CES_DATA_DIR, each by name or as TRACE:CLUSTER:SLOT:GPU",
            of="inputs", read=inputs,
        ),
        Option(
            "policies", str | None, None, "those compared, separated by commas",
            of="only", more={"show_default": "all"},
        ),
        Option(
            "compat", str | None, None, f"{COMPAT}: count as the public simulator of ElasticFlow does", read=_compat,
            more={"show_default": "every event when it happens"},
        ),
        options.SEED(42, "same seed, same random sizes"),
        PLOTS,
    ],
    help="Policies for malleable jobs compared on published traces: how many jobs end by their deadlines.",
)  # fmt: skip
