"""The promises of a cluster that an audit checks, one by one, in words for whoever has never seen it; and what it does
not check. The dashboard says the same (``audit_text.js``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Promise:
    """``text``: what is promised; ``checked``: what one check of it is about."""

    text: str
    checked: str


LOG, STEP, TWICE, HELD = "log", "step", "twice", "held"
NODE, LINK, READY, REQUEST = "node-capacity", "link-capacity", "node-ready", "request"
RATE, PATH, ADDRESS, CARD = "flow-rate", "flow-path", "address", "gpu-card"
DEADLINE, RESERVATION = "deadline", "reservation"

# By the kind of the findings that tell where it is broken.
PROMISES: Final[Mapping[str, Promise]] = {
    NODE: Promise(
        "No node gives out more CPU, memory or GPUs than it has.",
        "each time that more of a node is given out",
    ),
    CARD: Promise(
        "Each task gets GPU cards as it asked for; no card is given out twice, nor more of a shared one than it has.",
        "each card that a task is given",
    ),
    LINK: Promise(
        "No link or shared medium has more bandwidth given out than it can surely carry: 95 %, of tunnels less.",
        "each time that more of a link or medium is given out",
    ),
    RATE: Promise(
        "Each flow is given the bandwidth that its job was promised, or the log says that it falls short.",
        "each flow, each time that it is given a rate",
    ),
    PATH: Promise(
        "Each flow goes from where its data is to where it is wanted, over links that exist.",
        "each flow, each time that it is given a path; that links exist, where its job starts or is resized",
    ),
    REQUEST: Promise(
        "Each job gets what its file asks for: its tasks, number of workers and CPU, and no pause that it forbids.",
        "each start, resize, change of CPU and suspension",
    ),
    TWICE: Promise(
        "Each task runs in one place at a time.",
        "each task that begins to run or moves, each start and each return to the queue",
    ),
    READY: Promise(
        "Work goes only to nodes that are there and take work.",
        "each node of each start, resize and move",
    ),
    ADDRESS: Promise(
        "No two workers have the same address, and no two flows the same number.",
        "each worker and each flow that is given one",
    ),
    STEP: Promise(
        "Jobs and tasks change their state only in the ways that there are.",
        "each change of a job, a task or a plan",
    ),
    RESERVATION: Promise(
        "A waiting job starts by the time that it was told, unless others ran longer than said or the cluster changed.",
        "each start time that a job was told before it started",
    ),
    DEADLINE: Promise(
        "A job that was refused for its deadline is never started.",
        "each refusal, and each start of a job with a deadline",
    ),
    HELD: Promise(
        "Whatever is over gives everything back.",
        "each suspension; and where the auditor is told that the cluster is idle, each job and task",
    ),
    LOG: Promise(
        "The event log is whole and does not contradict itself.",
        "each event",
    ),
}

NOT_CHECKED: Final = (
    "Whether links carried what flows were given: the log tells what was given, not what was measured.",
    "What really ran on the nodes: the log tells what their agents reported.",
    "Quotas and shares of tenants, and the order in which jobs start.",
    "Whether places were good ones, and whether jobs computed what they should.",
)
