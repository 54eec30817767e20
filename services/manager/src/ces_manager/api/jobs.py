"""Routes about jobs. Whoever is limited to some tenants sees no others' jobs, as if these were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime
from sse_starlette import EventSourceResponse

from ces_common import subjects
from ces_common.db import ReadTx, WriteTx
from ces_common.db.outbox import EventFilter
from ces_common.fault_points import fault_point
from ces_common.jobfile import JobFile
from ces_common.messages.api import JobFlowsView, JobSummary, JobView, Page, PlanForecast, PlanView, QueuePage
from ces_common.messages.bounds import MAX_ID
from ces_common.messages.moves import MoveRequest
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_common.messages.traces import JobTrace
from ces_common.roles import Role
from ces_common.states import JOB_PLACED, JOB_WAITS, JobState
from ces_manager import cursors
from ces_manager.access.allowance import allowed
from ces_manager.api.auth import AUDITED, OPERATOR, SUBMITTER, VIEWER, identity_of, still_admitted
from ces_manager.api.context import Context, context_of
from ces_manager.api.etags import UNCHANGED, IfNoneMatch, check_known
from ces_manager.api.logs import follow_logs
from ces_manager.api.other_regions import check_regions, federation_away, remote_flows, split_flows
from ces_manager.api.parameters import Attempt, Cursor, EventNumber, Limit, Lines, PathName, QueryName
from ces_manager.api.streams import event_stream, last_event_id
from ces_manager.api.strict_route import StrictRoute
from ces_manager.api.traced_requests import request_span
from ces_manager.errors import Invalid
from ces_manager.jobs import commands, job_views, submission
from ces_manager.jobs.admission import (
    check_inputs,
    check_room,
    check_secrets,
    check_tasks,
    check_tenant,
    check_users,
    due_at,
)
from ces_manager.jobs.speed_forecast import predicted_speeds
from ces_manager.jobs.trace_view import job_trace
from ces_manager.jobs.transitions import check_visible
from ces_manager.network import flow_rates
from ces_manager.plans.move import check_movable, commit_move
from ces_manager.plans.move_paths import paths_for
from ces_manager.queue.page import queue_page
from ces_manager.queue.status import job_names, with_holder_names
from ces_manager.regions.away import remote_run
from ces_manager.regions.splits import parts_of

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
PLAN_TIMEOUT_S = 30.0
# The framework describes no content of answers that go on.
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


async def _visible(request: Request, job: PathName) -> str:
    """The job in the address. Raises NotFound, also for one of a tenant that does not concern whoever asks."""
    tenants = identity_of(request).tenants
    if tenants is not None:
        await context_of(request).database.read(lambda tx: check_visible(tx, job, tenants))
    return job


VisibleJob = Annotated[str, Depends(_visible)]


@router.post("/jobs", status_code=201, dependencies=[SUBMITTER])
async def submit(
    request: Request,
    response: Response,
    job: JobFile,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
) -> JobView:
    """Submit a job. With an `Idempotency-Key`, sending it again gives the same job."""
    context, identity = context_of(request), identity_of(request)
    job = allowed(identity, job)
    await check_regions(context, job.regions)
    span = request_span(request, context.trace_ratio)

    def submitted(tx: WriteTx) -> JobView:
        traceparent = None if span is None else span.traceparent
        row = submission.submit_job(tx, job, idempotency_key, context.queue, traceparent)
        if span is not None and row.traceparent == traceparent:  # else it is the job of an earlier request
            span.of_job(row.id, row.attempt)
            tx.spans.append(span)
        return job_views.job_view(tx, row.id, context.measurements, identity.tenants)

    view = await context.database.requested_write(submitted, identity.name)
    response.headers["Location"] = f"/v1/jobs/{view.id}"
    return _as_known_now(context, view)


@router.get("/jobs", responses=UNCHANGED, dependencies=[AUDITED])
async def list_jobs(
    request: Request,
    response: Response,
    state: JobState | None = None,
    name: QueryName = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    if_none_match: IfNoneMatch = None,
) -> Page[JobSummary]:
    """Jobs, newest first."""
    database, tenants = context_of(request).database, identity_of(request).tenants
    check_known(request, response, if_none_match, *await database.read(job_views.list_stamp))
    return await database.read(
        lambda tx: job_views.list_jobs(tx, cursor=cursor, limit=limit, state=state, name=name, tenants=tenants)
    )


@router.get("/jobs/{job}", dependencies=[AUDITED])
async def get_job(request: Request, job: VisibleJob) -> JobView:
    """A job with its placement, its flows and what was last measured of them."""
    context = context_of(request)
    view = await _view(request, job)
    if identity_of(request).role is Role.AUDITOR:  # where users are is none of an audit's business
        view = view.model_copy(update={"users": [], "move": None, "moves": [], "last_look": None})
    if view.state is JobState.ELSEWHERE and (remark := await federation_away(context)) is not None:
        return view.model_copy(update={"remark": remark})
    if view.elastic is not None and view.state is JobState.RUNNING:
        return view.model_copy(update={"predicted": await predicted_speeds(context.bus, view.id)})
    if view.state not in JOB_WAITS:
        return view
    queue_status = (await context.live_queue.look()).by_job.get(view.id)
    if queue_status is None:
        return view
    tenants = identity_of(request).tenants
    (live,) = await context.database.read(lambda tx: with_holder_names(tx, [queue_status], tenants))
    return view.model_copy(update={"queue_status": live, "waiting": live.reason or view.waiting})


@router.get("/jobs/{job}/plan", dependencies=[VIEWER])
async def get_plan(request: Request, job: VisibleJob) -> PlanView:
    """The committed plan of the job's current attempt, with what was considered."""
    return await context_of(request).database.read(lambda tx: job_views.plan_view(tx, job))


@router.get("/jobs/{job}/flows", dependencies=[VIEWER])
async def get_flows(request: Request, job: VisibleJob, since: AwareDatetime | None = None) -> JobFlowsView:
    """A job's flows: asked, given and carried, link by link, from `since` on: the last minute if left out, the last
    five at most."""
    context = context_of(request)
    run = await context.database.read(lambda tx: remote_run(tx, job))
    if run is not None:
        return await remote_flows(context, run)
    parts = await context.database.read(lambda tx: parts_of(tx, job))
    if parts:
        return await split_flows(context, job, parts, since)
    now = context.database.clock.now()
    return await context.database.read(lambda tx: flow_rates.job_flows_view(tx, job, context.measurements, now, since))


@router.get("/jobs/{job}/trace", dependencies=[VIEWER])
async def get_trace(request: Request, job: VisibleJob, attempt: Attempt = None) -> JobTrace:
    """Where the time of a job's attempt went, from its beginning until its workers ran: as the services told it where
    the job is traced, and as its events tell it otherwise. `attempt`: the present one if left out."""
    return await context_of(request).database.read(lambda tx: job_trace(tx, job, attempt))


@router.delete("/jobs/{job}", status_code=202, dependencies=[SUBMITTER])
async def cancel(request: Request, job: VisibleJob) -> JobView:
    """Cancel a job: its workers are stopped, everything is released."""
    return await commanded(request, commands.cancel_job, job)


@router.post("/jobs/{job}/pause", dependencies=[SUBMITTER])
async def pause(request: Request, job: VisibleJob) -> JobView:
    """Freeze a running job's workers; it keeps what it holds."""
    return await commanded(request, commands.pause_job, job)


@router.post("/jobs/{job}/resume", dependencies=[SUBMITTER])
async def resume(request: Request, job: VisibleJob) -> JobView:
    """Let a paused job run on. One that is suspended runs on by itself, as soon as there is room."""
    return await commanded(request, commands.resume_job, job)


@router.post("/jobs/{job}/moves", status_code=202, dependencies=[OPERATOR])
async def move(request: Request, job: VisibleJob, asked: MoveRequest) -> JobView:
    """Move one task of a running job to another node: it is stopped, and started there once it is surely gone.
    The job's other tasks run on. What the task needs is held at both nodes until it runs."""
    context = context_of(request)
    flows = await context.database.read(lambda tx: check_movable(tx, job, asked))
    given = await paths_for(context.bus, job, asked) if flows else []
    remark = await context.database.requested_write(
        lambda tx: commit_move(tx, job, asked, given), identity_of(request).name
    )
    fault_point("move-committed")
    return await _view(request, job, remark)


@router.get("/jobs/{job}/logs", response_class=StreamingResponse, responses=TEXT, dependencies=[VIEWER])
async def logs(
    request: Request,
    job: VisibleJob,
    task: QueryName = None,
    follow: bool = False,
    tail: Lines = None,
) -> StreamingResponse:
    """What a job's workers printed, as plain text; lines are prefixed by their task unless one is named. `tail`: only
    the last N lines of each task, and with `follow` what comes after them."""
    context = context_of(request)
    view = await _view(request, job)
    if task is not None and all(each.name != task for each in view.placement):
        names = ", ".join(each.name for each in view.placement[:5])
        raise Invalid("task", f"job {view.name} has no task {task}; its tasks are {names}")
    text = follow_logs(context, view.id, task, follow, tail, still_admitted(request))
    return StreamingResponse(text, media_type="text/plain; charset=utf-8")


@router.get("/jobs/{job}/events", response_class=EventSourceResponse, responses=EVENTS, dependencies=[VIEWER])
async def job_events(
    request: Request,
    job: VisibleJob,
    after: EventNumber = None,
    last_event_id_header: Annotated[str | None, Header(alias="Last-Event-ID", max_length=MAX_ID)] = None,
) -> EventSourceResponse:
    """A job's events and progress as server-sent events; resumes after `Last-Event-ID`."""
    view = await _view(request, job)
    return _stream(request, after, last_event_id_header, EventFilter(job=view.id))


@router.get("/events", response_class=EventSourceResponse, responses=EVENTS, dependencies=[AUDITED])
async def events(
    request: Request,
    after: EventNumber = None,
    last_event_id_header: Annotated[str | None, Header(alias="Last-Event-ID", max_length=MAX_ID)] = None,
) -> EventSourceResponse:
    """All events as server-sent events; resumes after `Last-Event-ID`."""
    which = EventFilter(tenants=identity_of(request).tenants)
    return _stream(request, after, last_event_id_header, which)


@router.post("/plans", dependencies=[SUBMITTER])
async def dry_run(request: Request, job: JobFile) -> PlanForecast:
    """What would happen to a job if it were submitted now, and why; where it has no place, when it would start. Nothing
    is stored."""
    context, identity = context_of(request), identity_of(request)
    job = allowed(identity, job)
    check_tenant(context.queue, job.tenant)
    check_tasks(job)

    def admissible(tx: ReadTx) -> None:
        check_room(tx, context.queue, job)
        check_inputs(tx, job)
        check_secrets(tx, job)
        check_users(tx, job)
        due_at(context.database.clock.now(), job)

    await context.database.read(admissible)
    raw = await context.bus.request(
        subjects.rpc("scheduler", "plan"), PlanQuery(job=job).encode(), timeout_s=PLAN_TIMEOUT_S
    )
    answer = PlanAnswer.model_validate_json(raw)
    holders = await context.database.read(lambda tx: job_names(tx, answer.held_by, identity.tenants))
    held_by = answer.held_by if identity.tenants is None else [holder.id for holder in holders]
    return PlanForecast(**dict(answer) | {"held_by": held_by}, holders=holders)


@router.get("/queue", dependencies=[VIEWER])
async def queue(request: Request, limit: Limit = 100, cursor: Cursor = None) -> QueuePage:
    """Waiting jobs, first in line first, each with its score, what it waits for, and when it is expected to start.
    Where the scheduler does not answer within a second, `remark` says so, and what it last told is shown."""
    context, after = context_of(request), cursors.cursor_number(cursor)
    tenants = identity_of(request).tenants
    report = await context.live_queue.look()
    return await context.database.read(lambda tx: queue_page(tx, report, after=after, limit=limit, tenants=tenants))


async def commanded(request: Request, command: Callable[[WriteTx, str], str | None], job: str) -> JobView:
    """What a command makes of the job; its remark goes along."""
    context = context_of(request)
    remark = await context.database.requested_write(lambda tx: command(tx, job), identity_of(request).name)
    return await _view(request, job, remark)


async def _view(request: Request, job: str, remark: str | None = None) -> JobView:
    context, tenants = context_of(request), identity_of(request).tenants
    view = await context.database.read(lambda tx: job_views.job_view(tx, job, context.measurements, tenants))
    return _as_known_now(context, view, remark)


def _as_known_now(context: Context, view: JobView, remark: str | None = None) -> JobView:
    """With what is known without the database: whom a job waits for."""
    waits_for = context.failure_detector.hindrances.get(view.id) if view.state in JOB_PLACED else None
    return view.model_copy(update={"remark": remark, "reason": waits_for or view.reason})


def _stream(request: Request, after: int | None, header: str | None, which: EventFilter) -> EventSourceResponse:
    context = context_of(request)
    try:
        start = last_event_id(header, after)
    except ValueError as error:
        raise Invalid("Last-Event-ID", "give the number of the last event that was received") from error
    admitted = still_admitted(request)
    return event_stream(context.broadcast, context.events, start, which, context.stopping, admitted)
