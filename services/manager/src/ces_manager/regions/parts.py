"""Where they run: parts of jobs that are split over regions. A held part is an ordinary job with a committed plan. Its
network is not laid before its home has committed it, since only then it is known where its peers are; its workers are
not started before its home has said that every part is ready."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from ipaddress import IPv4Network

from sqlalchemy import select

from ces_common.db.region_tables import PartRow
from ces_common.db.tables import JobRow, NodeRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.events import PartCommitted
from ces_common.messages.pieces import Piece, Place, TaskPlace
from ces_common.messages.regions import HOLD_S, MAX_FOUND, GuestFile, PartTry, RemoteStatus
from ces_common.messages.split import PartAnswer, PartCommitQuery, PartHoldQuery, PartId, PartQuery
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_manager.errors import Invalid
from ces_manager.jobs.network_readiness import network_ready
from ces_manager.jobs.pieces import written_out
from ces_manager.jobs.submission import submit_job
from ces_manager.jobs.transitions import allocations_of, job_row
from ces_manager.regions.guests import as_guest
from ces_manager.regions.held import PLACED, end


def hold(tx: WriteTx, asked: PartHoldQuery, queue: QueueFile) -> PartAnswer:
    """Submit a part, to be held once it has a place; asked again, how it stands. One that is asked for in another
    piece takes the place of the one before. Raises what the submission of a job does, and Invalid for what is not
    split."""
    part = _of(tx, asked.home, asked)
    if part is not None:
        row = job_row(tx, part.job)
        if part.committed or (row.state not in JOB_OVER and _is(row, asked.piece)):
            return _stand(tx, part, row)
        end(tx, row, f"region {part.home} asks for another part of its job")
        tx.session.delete(part)  # nothing of it ran
        tx.session.flush()
    file = as_guest(GuestFile(home=asked.home, file=asked.file))
    if file.elastic is not None:
        raise Invalid("elastic", "a malleable job is not split over regions")
    row = submit_job(tx, file, queue=queue, written=written_out(file, asked.piece, border_nodes(tx)))
    tx.session.flush()
    tx.session.add(
        PartRow(
            job=row.id,
            home=asked.home,
            home_job=asked.job,
            home_attempt=asked.attempt,
            part=asked.part,
            committed=False,
            started=False,
            hold_until=tx.now + timedelta(seconds=HOLD_S),
        )
    )
    return PartAnswer(fate="waiting", remote=row.id)


def _is(row: JobRow, piece: Piece) -> bool:
    assert row.part is not None
    return row.part.tasks == piece.tasks and row.part.crossings == piece.crossings


def border_nodes(tx: ReadTx) -> dict[str, str]:
    """Region -> the node that stands here for its gateway."""
    query = select(NodeRow.region, NodeRow.name).where(NodeRow.region.is_not(None))
    return {str(region): name for region, name in tx.session.execute(query)}


def _stand(tx: WriteTx, part: PartRow, row: JobRow) -> PartAnswer:
    """One that found no room, or has lost it, is given up at once."""
    if not part.committed and row.state not in PLACED:
        if row.state is JobState.QUEUED and row.waiting is None and row.attempt == 1:
            return PartAnswer(fate="waiting", remote=row.id)
        reason = row.waiting.text if row.waiting is not None else row.reason
        end(tx, row, f"no room for its part of the job of region {part.home}")
        return PartAnswer(fate="released", remote=row.id, reason=reason, over=not row.live)
    return _answer(tx, part, row)


def commit(tx: WriteTx, asked: PartCommitQuery, block: IPv4Network) -> PartAnswer:
    """Lay a held part's network; once committed it stays so. ``released``: it was given up before, or has lost its
    place, and is ended. ``block``: of this region's own addresses, of which a home may name none as another's. Raises
    Invalid."""
    part = _of(tx, asked.home, asked)
    if part is None:
        return PartAnswer(fate="unknown", over=True)
    row = job_row(tx, part.job)
    if part.job != asked.remote:
        return PartAnswer(fate="released", over=True)
    if not part.committed:
        if row.state not in PLACED:
            end(tx, row, f"lost its place before region {part.home} committed it")
            return _answer(tx, part, row)
        assert row.part is not None
        _check_places(asked.places, row, block)
        part.committed = True
        row.part = row.part.model_copy(update={"places": asked.places})
        row.version = tx.version
        committed = PartCommitted(job=row.id, attempt=row.attempt, home=part.home)
        tx.emit("part", "committed", row.id, committed, job=row.id)
    return _answer(tx, part, row)


def _check_places(places: Sequence[Place], row: JobRow, block: IPv4Network) -> None:
    """All other tasks, each once, and none at an address that is this region's."""
    assert row.part is not None
    named = {place.task for place in places}
    if len(named) < len(places) or named != row.part.ranks.keys() - set(row.part.tasks):
        raise Invalid("places", "must say where each task of the other parts is, and nothing else")
    for place in places:
        if place.address in block:
            raise Invalid("places", f"{place.task} of region {place.region} is said to be at an address of this region")


def start(tx: WriteTx, asked: PartQuery) -> PartAnswer:
    """Let a committed part's workers start as soon as its network is in place."""
    part = _of(tx, asked.home, asked)
    if part is None or part.job != asked.remote:
        return PartAnswer(fate="unknown" if part is None else "released", over=True)
    row = job_row(tx, part.job)
    if part.committed and not part.started:
        part.started = True
        row.version = tx.version
        if part.ready == row.attempt:
            tx.session.flush()
            network_ready(tx, row.id, row.attempt)
    return _answer(tx, part, row)


def release(tx: WriteTx, asked: PartQuery) -> PartAnswer:
    """End a part at its home's word, started or not."""
    part = _of(tx, asked.home, asked)
    if part is None:
        return PartAnswer(fate="unknown", over=True)
    if part.job != asked.remote:
        return PartAnswer(fate="released", over=True)
    row = job_row(tx, part.job)
    end(tx, row, f"ended by its home, region {part.home}")
    return PartAnswer(fate="released", remote=row.id, started=part.started, over=not row.live)


def status(tx: ReadTx, asked: PartQuery) -> PartAnswer:
    part = _of(tx, asked.home, asked)
    if part is None:
        return PartAnswer(fate="unknown", over=True)
    if part.job != asked.remote:
        return PartAnswer(fate="released", over=True)
    return _answer(tx, part, job_row(tx, part.job))


def tries(tx: WriteTx, home: str, jobs: Sequence[str]) -> list[PartTry]:
    """Those of a home's jobs' parts that were committed. The others are released, as whole jobs are."""
    found = []
    query = select(PartRow).where(PartRow.home == home, PartRow.home_job.in_(jobs)).order_by(PartRow.job)
    for part in tx.session.scalars(query).all():
        if part.committed:
            about = {"job": part.home_job, "attempt": part.home_attempt, "part": part.part}
            found.append(PartTry.model_validate(about | {"remote": part.job}))
        else:
            end(tx, job_row(tx, part.job), f"region {home} has lost what it knew of it")
    return found[-MAX_FOUND:]


def _answer(tx: ReadTx, part: PartRow, row: JobRow) -> PartAnswer:
    held = row.state in PLACED
    if not (part.committed or held):
        return PartAnswer(fate="released", remote=row.id, reason=row.reason, over=not row.live)
    return PartAnswer(
        fate="committed" if part.committed else "held",
        remote=row.id,
        ready=part.ready == row.attempt or row.state not in (*PLACED, *JOB_OVER),
        started=part.started,
        over=not row.live,
        status=RemoteStatus(state=row.state, reason=row.reason, started_at=row.started_at, finished_at=row.finished_at),
        places=_places(tx, row) if held and not part.committed else [],
    )


def _places(tx: ReadTx, row: JobRow) -> list[TaskPlace]:
    rows = allocations_of(tx, [row])[row.id]
    return [TaskPlace.model_validate({"task": row.task, "address": row.address, "port": row.port}) for row in rows]


def _of(tx: ReadTx, home: str, asked: PartId) -> PartRow | None:
    query = select(PartRow).where(
        PartRow.home == home,
        PartRow.home_job == asked.job,
        PartRow.home_attempt == asked.attempt,
        PartRow.part == asked.part,
    )
    return tx.session.scalars(query).one_or_none()
