"""Which traces are run on which clusters, and what the unmodified public simulator comes to on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import typer

from ces_sim.malleable.traces import ClusterSpec, TracedJob, TraceError, read_trace


@dataclass(frozen=True)
class Input:
    """``slot_s``: seconds of a slot. ``gpu``: on which type speeds were measured, A100 or T4."""

    trace: str
    cluster: str
    slot_s: int
    gpu: str

    @staticmethod
    def of(text: str) -> Input:
        """A known trace by its name, or TRACE:CLUSTER:SLOT:GPU. Raises TraceError."""
        if text in KNOWN:
            return KNOWN[text]
        parts = text.split(":")
        if len(parts) != 4 or not parts[2].isdecimal() or not int(parts[2]) or parts[3] not in ("A100", "T4"):
            known = ", ".join(KNOWN)
            raise TraceError(f"{text!r} is neither one of {known} nor of the form 195job:n16g8:240:A100")
        ClusterSpec.of(parts[1])
        return Input(parts[0], parts[1], int(parts[2]), parts[3])

    @property
    def spec(self) -> ClusterSpec:
        return ClusterSpec.of(self.cluster)

    @property
    def title(self) -> str:
        return f"{self.trace} ({self.cluster}, {self.slot_s} s, {self.gpu})"

    def jobs(self) -> list[TracedJob]:
        """Raises TraceError."""
        return read_trace(self.trace, self.gpu)


def known(*inputs: Input) -> dict[str, Input]:
    return {each.trace: each for each in inputs}


KNOWN = known(
    Input("195job", "n16g8", 240, "A100"),
    Input("cluster10", "n32g8", 60, "A100"),
    Input("elasticVpollux_e", "n16g4", 60, "T4"),
    Input("cluster01", "n64g8", 60, "A100"),
    Input("cluster05", "n64g8", 60, "A100"),
    Input("philly_103959", "n32g8", 60, "A100"),
)
"""As the scripts of the public artifact run them (github.com/pkusys/ElasticFlow at 04a0109, run_fig8*.sh)."""
USUAL = ("195job", "cluster10", "elasticVpollux_e")

GOLDEN: Mapping[str, Mapping[str, float]] = {
    "195job": {
        "elasticflow": 0.749, "elasticflow-all": 0.205, "edf": 0.087, "edf-admission": 0.323, "tiresias": 0.462,
        "gandiva": 0.241, "themis": 0.410,
    },
    "cluster10": {
        "elasticflow": 0.962, "elasticflow-all": 0.981, "edf": 0.777, "edf-admission": 0.827, "tiresias": 0.477,
        "gandiva": 0.331,
    },
    "elasticVpollux_e": {
        "elasticflow": 0.728, "elasticflow-all": 0.667, "edf": 0.118, "edf-admission": 0.410, "tiresias": 0.287,
        "gandiva": 0.092,
    },
}  # fmt: skip
"""Trace -> policy -> on time by submitted, from runs of the unmodified public simulator."""
TOLERANCES = {"tiresias": 0.03, "gandiva": 0.03, "themis": 0.06}
USUAL_TOLERANCE = 0.02


def inputs(flag: str, text: str) -> tuple[Input, ...]:
    """Those of an option. Raises typer.BadParameter."""
    try:
        found = tuple(Input.of(part.strip()) for part in text.split(","))
        for each in found:
            each.jobs()
    except TraceError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error
    return found
