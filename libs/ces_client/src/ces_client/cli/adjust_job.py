"""``ces adjust JOB``: what would change of a running job of the cluster; its one move, if it is to be carried out."""

from __future__ import annotations

import typer
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, console, show, show_json
from ces_client.errors import CesError
from ces_client.view.adjustment import carried_out, in_place, lines
from ces_client.view.moves import move_text
from ces_common.messages.adjustments import ProposedMove
from ces_common.messages.api import JobView, Problem


def adjust_job(job: str, *, moves: int, apply: bool, output: Output) -> None:
    """Raises typer.Exit with 1 where a limit is broken that no adjustment mends, or, with ``apply``, that nothing was
    carried out against."""
    with session.connect() as client:
        found = session.job_id(client, job)
        view = client.jobs.get(found)
        proposal = client.jobs.adjustment(found, moves=moves)
        told = {"job": found} | proposal.model_dump(mode="json")
        if output is not Output.JSON:
            screen = console()
            for line in lines(view.name, proposal, {}):
                screen.print(line, soft_wrap=isinstance(line, Text))
        move: ProposedMove | None = None
        if apply:
            move, said = carried_out(proposal)
            if move is not None:
                _check_same(view, client.jobs.get(found), move)
                view = client.jobs.move(found, move.task, to=move.dst)
            told |= {"carried_out": None if move is None else move.model_dump(mode="json"), "remark": said}
            if output is not Output.JSON:
                if move is not None:
                    moved = "" if view.move is None else move_text(view.move)
                    show(Text(view.remark or f"{moved}; `ces describe job {found}` shows how it goes"))
                show(Text(said))
        elif output is not Output.JSON and (stays := in_place(proposal)) is not None:
            show(Text(f"  {stays}"))
    if output is Output.JSON:
        show_json(told)
    if proposal.broken and (move is None if apply else proposal.adjustment is None):
        raise typer.Exit(1)


def _check_same(before: JobView, now: JobView, move: ProposedMove) -> None:
    """Raises CesError where the job is no longer what the move was judged for. ``before``: as it was when that was
    asked."""
    node = next((task.node for task in now.placement if task.name == move.task), None)
    if now.attempt != before.attempt or node != move.src:
        detail = (
            f"nothing is carried out: the move of {move.task} to {move.dst} was judged for a state of job {now.name} "
            "that has changed meanwhile; ask again"
        )
        raise CesError(Problem(title="Changed meanwhile", status=409, detail=detail))
