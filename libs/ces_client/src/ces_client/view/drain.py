"""What a drain would hit, for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ces_client.view.tables import plain_table
from ces_common.messages.drains import DrainedJob, DrainForecast


def drain_view(forecast: DrainForecast) -> RenderableType:
    """The jobs that would move, whether there are other places for each, and what that leaves open."""
    if not forecast.jobs:
        already = "is cordoned already" if forecast.cordoned else "would be cordoned"
        return Text(f"no job has anything on {forecast.node}, which {already}")
    table = plain_table("JOB", "STATE", "PRIORITY", "WORKERS", "BEGINS", "ELSEWHERE", right=("PRIORITY",))
    for job in forecast.jobs:
        begins = "from a checkpoint" if job.malleable else "again"
        table.add_row(job.name, job.state, str(job.priority), ", ".join(job.workers), begins, _elsewhere(job))
    said = [Text("Each by itself, as things are now: jobs that move together may be in each other's way.", style="dim")]
    remark = [Text(forecast.remark, style="yellow")] if forecast.remark else []
    return Group(table, Text(), *said, *remark, Text("nothing was changed"))


def _elsewhere(job: DrainedJob) -> str:
    if job.elsewhere is None:
        return "not known"
    return "there is a place" if job.elsewhere else f"no place: {job.reason}"
