"""Published audits: what an auditor outside of the services found, kept for those who look at the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import delete, func, select
from sqlalchemy.orm import undefer
from ulid import ULID

from ces_common.db.audit_tables import AuditRow
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.api import Page
from ces_common.messages.audits import AuditFinding, AuditOutcome, AuditReport, AuditSummary, AuditView, FindingView
from ces_manager.cursors import job_cursor
from ces_manager.errors import Invalid, NotFound

KEPT = 1024  # audits: a week of one each ten minutes


def publish_audit(tx: WriteTx, report: AuditReport, by: str) -> AuditView:
    """Keep the outcome, and drop the oldest ones beyond ``KEPT``. Raises Invalid."""
    known = tx.cluster().sequence
    if report.last is not None and report.last > known:
        raise Invalid("last", f"the last event here is number {known}: this audit is of another cluster")
    findings = _with_jobs(tx, report.findings)
    row = AuditRow(
        id=str(ULID.from_datetime(tx.now)),
        published_at=tx.now,
        published_by=by,
        outcome=AuditOutcome.model_validate({name: getattr(report, name) for name in AuditOutcome.model_fields}),
        shares=_shares(findings),
        findings=findings,
    )
    tx.session.add(row)
    tx.session.flush()
    old = select(AuditRow.id).order_by(AuditRow.published_at.desc(), AuditRow.id.desc()).offset(KEPT)
    tx.session.execute(delete(AuditRow).where(AuditRow.id.in_(tx.session.scalars(old).all())))
    return _view(row, None)


def list_audits(
    tx: ReadTx, *, cursor: str | None, limit: int, tenants: Collection[str] | None = None
) -> Page[AuditSummary]:
    """The newest first, without their findings; the cursor is the last id seen. ``tenants``: whose findings are told;
    None for all."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit + 1)
    if (last := job_cursor(cursor)) is not None:
        query = query.where(AuditRow.id < last)
    rows = tx.session.scalars(query).all()
    page = rows[:limit]
    items = [_summary(row, tenants) for row in page]
    return Page[AuditSummary](items=items, next=page[-1].id if len(rows) > limit else None)


def ends(tx: ReadTx) -> tuple[str | None, str | None]:
    """Ids of the first and the last audit that are kept: a list of them follows from these."""
    first, last = tx.session.execute(select(func.min(AuditRow.id), func.max(AuditRow.id))).one()
    return first, last


def latest_id(tx: ReadTx) -> str | None:
    """Of the audit that was published last."""
    return tx.session.scalar(select(func.max(AuditRow.id)))


def audit_view(tx: ReadTx, audit: str | None, tenants: Collection[str] | None = None) -> AuditView:
    """With its findings. ``audit``: an id; None for the one that was published last. Raises NotFound."""
    wanted = latest_id(tx) if audit is None else audit
    row = None if wanted is None else tx.session.get(AuditRow, wanted, options=[undefer(AuditRow.findings)])
    if row is None:
        none = "no audit was published in the last days: `ces audit --publish` does"
        raise NotFound(none if audit is None else f"no audit {audit}: it is kept for some days")
    return _view(row, tenants)


def _with_jobs(tx: ReadTx, findings: Iterable[AuditFinding]) -> list[FindingView]:
    findings = list(findings)
    ids = {finding.job for finding in findings if finding.job is not None}
    query = select(JobRow.id, JobRow.name, JobRow.tenant).where(JobRow.id.in_(ids))
    jobs = {row.id: row for row in tx.session.execute(query)}
    views = []
    for finding in findings:
        job = jobs.get(finding.job or "")
        told = {} if job is None else {"name": job.name, "tenant": job.tenant}
        views.append(FindingView(**dict(finding), **told))
    return views


def _shares(findings: Iterable[FindingView]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for finding in findings:
        if finding.tenant is not None:
            found.setdefault(finding.tenant, Counter())[finding.kind] += 1
    return {tenant: dict(kinds) for tenant, kinds in found.items()}


def _summary(row: AuditRow, tenants: Collection[str] | None) -> AuditSummary:
    return AuditSummary.model_validate(_told(row, tenants))


def _view(row: AuditRow, tenants: Collection[str] | None) -> AuditView:
    seen = [each for each in row.findings if tenants is None or each.tenant in tenants]
    return AuditView.model_validate(_told(row, tenants) | {"findings": [dict(each) for each in seen]})


def _told(row: AuditRow, tenants: Collection[str] | None) -> dict[str, object]:
    outcome = dict(row.outcome) | {"peaks": [dict(peak) for peak in row.outcome.peaks]}
    if tenants is not None:
        checked = {promise: None if number else 0 for promise, number in row.outcome.checked.items()}
        outcome |= {"kinds": _of(row.shares, tenants), "checked": checked, "jobs": {}, "plans": None, "held": None}
    return outcome | {
        "id": row.id,
        "published_at": row.published_at,
        "published_by": row.published_by,
        "limited": tenants is not None,
        "findings_total": sum(outcome["kinds"].values()),
    }


def _of(shares: Mapping[str, Mapping[str, int]], tenants: Collection[str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for tenant in tenants:
        found.update(shares.get(tenant, {}))
    return dict(found)
