"""An audit's verdict as it is published: counted in full, with as many findings as a report may list."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from ces_client.audit import Verdict
from ces_common.messages.audits import MAX_FINDINGS, AuditFinding, AuditPeak, AuditReport
from ces_common.messages.bounds import MAX_REASON


def report_of(verdict: Verdict, *, version: str, began_at: datetime, took_s: float) -> AuditReport:
    """``version``: the auditor's; ``took_s``: reading the log included."""
    return AuditReport(
        version=version,
        began_at=began_at,
        took_s=round(took_s, 3),
        events=verdict.events,
        first=verdict.first,
        last=verdict.last,
        checked=dict(verdict.checked),
        kinds=Counter(finding.kind for finding in verdict.findings),
        jobs={state.lower(): number for state, number in verdict.jobs.items()},
        plans=verdict.plans,
        held=verdict.held,
        peaks=[
            AuditPeak(what=peak.what, where=peak.where, used=peak.used, capacity=peak.capacity, event=peak.event)
            for peak in verdict.peaks
        ],
        unjudged=[text[:MAX_REASON] for text in verdict.unjudged],
        findings=[
            AuditFinding(
                event=finding.event,
                kind=finding.kind,
                text=finding.text[:MAX_REASON],
                job=finding.job,
                node=finding.node,
                link=finding.link,
            )
            for finding in verdict.findings[:MAX_FINDINGS]
        ],
    )
