"""What the federation service is asked where somebody looks at a job that runs in another region."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ces_common import subjects
from ces_common.bus.port import LARGEST_REQUEST, BusError, NoResponder
from ces_common.jobfile import ANY_REGION
from ces_common.messages.api import JobFlowsView
from ces_common.messages.regions import Decision, RegionList
from ces_common.messages.split import PartState
from ces_manager.api.context import Context
from ces_manager.errors import Invalid, Unavailable
from ces_manager.network.flow_rates import job_flows_view
from ces_manager.regions.splits import run_of

LOOK_S = 2.0
FLOWS_S = 6.0  # the other region's manager is asked, too


async def known_regions(context: Context) -> RegionList:
    """Raises Unavailable."""
    try:
        return RegionList.model_validate_json(await _ask(context, "regions", b"", LOOK_S))
    except ValueError as error:
        raise Unavailable("the federation service answers with what cannot be read") from error


async def check_regions(context: Context, named: Sequence[str]) -> None:
    """Whether a job may name these. Raises Invalid; not for an unknown one while the federation service is away, which
    no submission waits for."""
    if not named:
        return
    if context.region is None:
        raise Invalid("regions", "this cluster is no region, and knows no other: leave it out (CES_REGION)")
    try:
        known = [each.name for each in (await known_regions(context)).items]
    except Unavailable:
        return
    for i, name in enumerate(named):
        if name not in (ANY_REGION, *known):
            others = ", ".join(each for each in known if each != context.region)
            raise Invalid(f"regions[{i}]", f"no region is called {name}: name one of {others}, or {ANY_REGION}")


async def federation_away(context: Context) -> str | None:
    """What to say of a job elsewhere while nobody follows it; None where somebody does."""
    try:
        await known_regions(context)
    except Unavailable as error:
        return f"{error.detail}; what is shown of the job was heard before"
    return None


async def remote_flows(context: Context, run: Decision) -> JobFlowsView:
    """A job's flows as the region tells them where it runs. Raises Unavailable."""
    try:
        view = JobFlowsView.model_validate_json(await _ask(context, "flows", run.encode(), FLOWS_S))
    except ValueError as error:
        raise Unavailable(f"region {run.region}, where the job runs, answers with what cannot be read") from error
    return view.model_copy(update={"id": run.job})


async def split_flows(
    context: Context, job: str, parts: Sequence[PartState], since: datetime | None = None
) -> JobFlowsView:
    """A split job's flows, each as the region tells it where it begins. Raises Unavailable."""
    views = [await _part_flows(context, part, since) for part in parts]
    found = [flow for part, view in zip(parts, views, strict=True) for flow in view.flows if flow.src in part.tasks]
    return views[0].model_copy(update={"id": job, "flows": found})


async def _part_flows(context: Context, part: PartState, since: datetime | None) -> JobFlowsView:
    if part.region != context.region:
        return await remote_flows(context, run_of(part))
    now = context.database.clock.now()
    return await context.database.read(lambda tx: job_flows_view(tx, part.remote, context.measurements, now, since))


async def _ask(context: Context, operation: str, data: bytes, timeout_s: float) -> bytes:
    try:
        return await context.bus.request(
            subjects.rpc("federation", operation), data, timeout_s=timeout_s, largest=LARGEST_REQUEST
        )
    except NoResponder as error:
        raise Unavailable("the federation service is not there") from error
    except BusError as error:
        raise Unavailable(f"the federation service does not answer: {error}") from error
