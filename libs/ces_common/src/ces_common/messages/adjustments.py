"""What would be changed of a running job, as the scheduler decides it when somebody asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount, Count, Id, Number, Remark
from ces_common.self_adjustment import SMALLEST_GAIN

MOST_MOVES = 3
"""Of tasks, in one adjustment."""
MOST_PAST = 1000
"""Moves of one job in an hour: each takes seconds."""
HOUR_S = 3600.0
Moves = Annotated[int, Field(ge=0, le=MOST_MOVES)]


class PastMove(Message):
    """A move that CES made of the job by itself ``ago_s`` seconds ago. ``requests``: that fell into it; ``paid``:
    whether its gain has made up for them, None where that is not known yet."""

    ago_s: Amount
    requests: Amount
    paid: bool | None = None


class AdjustmentTerms(Message):
    """On which terms a job may be changed. ``remaining_s``: how long the gain will last; the others: see
    SelfAdjustment, and of whatever file says nothing of that."""

    remaining_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = HOUR_S
    budget: Amount | None = None
    reserve: Amount = 0.0
    cooldown_s: Amount = 0.0
    least_gain: Annotated[float, Field(ge=SMALLEST_GAIN, le=1.0)] = 0.001


class AdjustmentQuery(Message):
    """Ask the scheduler what it would change of a job. ``moves``: of how many tasks at most; ``restarts``: task -> how
    many seconds its last move took, where it was moved; ``past``: moves of the last hour, in order of time."""

    job: Id
    moves: Moves = MOST_MOVES
    restarts: dict[Id, Amount] = {}
    terms: AdjustmentTerms = AdjustmentTerms()
    past: Annotated[list[PastMove], Field(max_length=MOST_PAST)] = []


class BrokenLimit(Message):
    """``code`` is for programs; ``message`` names the offender and the numbers."""

    code: Id
    message: str


class ProposedMove(Message):
    """``seconds``: for which the task does not answer; ``requests``: that come meanwhile."""

    task: str
    src: str
    dst: str
    seconds: Amount
    requests: Amount


class ProposedFlow(Message):
    """``bandwidth``: its rate, of a cluster's job in bit/s."""

    src: str
    dst: str
    bandwidth: Amount
    path: list[str]


class Certificate(Message):
    """No plan at most ``moves`` moves away is worth more than ``most``, the moves paid; -1: nothing is proven. ``most``
    is None where there is no such plan. ``proven``: for as many moves as were asked for; ``text`` says it all."""

    text: str
    proven: bool
    moves: Annotated[int, Field(ge=-1, le=MOST_MOVES)]
    most: Number | None = None


class ProposedChange(Message):
    """``step``: the last kind of change that it needs. ``cpu``: task -> its new amount. ``objective``: of the plan;
    ``cost``: of its moves, in the same units over the time that is left; ``disturbance``: requests that fall into the
    moves. ``assignments``, ``flows``: all of the job's afterwards."""

    step: Literal["rates", "paths", "cpu", "moves"]
    moves: list[ProposedMove] = []
    cpu: dict[str, Amount] = {}
    objective: Number
    cost: Amount = 0.0
    disturbance: Amount = 0.0
    assignments: dict[str, str] = {}
    flows: list[ProposedFlow] = []


class AdjustmentProposal(Message):
    """``version``: of the state that it is for; 0 where it is not a cluster's. ``broken``: the limits that the plan
    breaks which runs; ``objective``: its own, None where it breaks one. ``gain``: the moves paid; None where there is
    no ``adjustment``, or where it ends a broken limit. Without an ``adjustment`` the job had better stay as it is.
    ``remark``: why the service cannot make its moves; None where it can, or where there are none."""

    version: Count = 0
    broken: list[BrokenLimit] = []
    objective: Number | None = None
    gain: Number | None = None
    certificate: Certificate
    adjustment: ProposedChange | None = None
    remark: Remark | None = None


class AdjustmentAnswer(Message):
    """``refusal``: why nothing is proposed; ``busy``: it may be asked again."""

    proposal: AdjustmentProposal | None = None
    refusal: Remark | None = None
    busy: bool = False


class LastLook(Message):
    """When CES last looked at an application that it may change by itself, ``why``, and what came of it. ``left``: of
    its budget, requests that might fall into further moves in that hour; None where any number may."""

    looked_at: datetime
    why: str
    outcome: str
    left: float | None = None
