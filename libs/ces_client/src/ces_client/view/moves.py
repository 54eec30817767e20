"""The move of one of a job's tasks, in words."""

from __future__ import annotations

from ces_common.messages.moves import MoveView
from ces_common.task_move import MoveState


def move_text(move: MoveView) -> str:
    """``w-0 from a to b: starting``."""
    ends = {MoveState.DONE: "there", MoveState.KEPT: "kept where it was", MoveState.FAILED: "failed"}
    said = ends.get(move.state, move.state.value)
    return f"{move.task} from {move.source} to {move.destination}: {said}" + (f"; {move.reason}" if move.reason else "")
