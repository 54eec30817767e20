"""Whether a flow gets less than it was given, although it has more to send: then it is not the program's doing."""

from __future__ import annotations

from collections.abc import Sequence

from ces_common.messages.api import FlowSample

SAMPLES = 5  # reports in a row that must agree, two seconds apart as agents send them
SHORT = 0.9  # of what was given; less is clearly under it


def short_hop(hops: Sequence[Sequence[FlowSample]]) -> int | None:
    """Index of the link of a flow's path that does not carry what the flow was given; None where there is no such.

    ``hops``: for each link of the path in order, what the node that sends over it reported, the oldest first. A flow
    has more to send where something waited in its class at every look of the last reports. From there on, the first
    node that sends clearly less than was given tells the link: its own if the flow waits there, since then the link
    does not take it; else the one before, since what was sent over that one did not arrive. A sender that pauses, or
    sends little, leaves nothing waiting and is never short.
    """
    recent = [hop[-SAMPLES:] for hop in hops]
    waits = [len(hop) == SAMPLES and all(sample.waited >= 1 for sample in hop) for hop in recent]
    under = [len(hop) == SAMPLES and all(sample.rate < SHORT * sample.given for sample in hop) for hop in recent]
    if not any(waits):
        return None
    short = next((i for i in range(waits.index(True), len(hops)) if under[i]), None)
    return short if short is None or waits[short] else short - 1
