"""The move of one of a job's tasks, when CES last looked at an application, and where users are: in words."""

from __future__ import annotations

from datetime import datetime

from ces_client.view.formats import since
from ces_common.application import Location
from ces_common.messages.adjustments import LastLook
from ces_common.messages.moves import MoveView
from ces_common.task_move import MoveState


def move_text(move: MoveView) -> str:
    """``w-0 from a to b: starting``."""
    ends = {MoveState.DONE: "there", MoveState.KEPT: "kept where it was", MoveState.FAILED: "failed"}
    said = ends.get(move.state, move.state.value)
    why = f" (by CES, at the cost of {move.requests or 0:g} requests: {move.why})" if move.why else ""
    reason = f"; {move.reason}" if move.reason else ""
    return f"{move.task} from {move.source} to {move.destination}: {said}{reason}{why}"


def look_text(look: LastLook, now: datetime) -> str:
    """``12 s ago, since ...: it stays as it is``."""
    left = "" if look.left is None else f"; {look.left:g} requests may fall into further moves this hour"
    return f"{since(look.looked_at, now)} ago, since {look.why}: {look.outcome}{left}"


def place_text(at: Location) -> str:
    return f"at node {at.node}" if at.node is not None else f"at {at.lat:g}, {at.lon:g}"
