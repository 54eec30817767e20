"""Outcomes of audits, as the auditor publishes them and as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, model_validator

from ces_common.fields import Document, Plain
from ces_common.messages.base import Message
from ces_common.messages.bounds import MAX_ID, MAX_REASON, Amount, Count, Node, Small

MAX_FINDINGS = 200  # of one report; the others are counted
MAX_KINDS = 32
MAX_FACTS = 32  # of any other kind in one report
Kind = Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,31}$")]
Text = Annotated[str, Field(min_length=1, max_length=MAX_REASON), Plain]
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_ID), Plain]
Link = Annotated[str, Field(max_length=2 * MAX_ID, pattern=r"^[^>\x00]+>[^>\x00]+$")]


class AuditFinding(Document):
    """One broken promise. ``event``: the number of the event that shows it; ``kind``: which promise; ``job``: an id;
    ``link``: ``SRC>DST``."""

    event: Count
    kind: Kind
    text: Text
    job: Identifier | None = None
    node: Node | None = None
    link: Link | None = None


class AuditPeak(Document):
    """The highest use of one kind. ``what``: cpu (millicores), memory (bytes), gpu, link or medium (bit/s)."""

    what: Kind
    where: Identifier
    used: Count
    capacity: Count
    event: Count


class AuditOutcome(Document):
    """What an audit of the events ``first`` to ``last`` came to; None where there was none. ``version``: the auditor's;
    ``checked``: promise -> how often it was checked, empty where the auditor does not tell; ``kinds``: promise -> how
    many findings there are; ``jobs``: state -> how many at the end; ``held``: allocations that hold something at the
    end; ``unjudged``: what could not be judged, and why."""

    version: Text
    began_at: AwareDatetime
    took_s: Amount
    events: Count
    first: Count | None = None
    last: Count | None = None
    checked: Annotated[dict[Kind, Count], Field(max_length=MAX_KINDS)] = {}
    kinds: Annotated[dict[Kind, Small], Field(max_length=MAX_KINDS)] = {}
    jobs: Annotated[dict[Kind, Small], Field(max_length=MAX_FACTS)] = {}
    plans: Count = 0
    held: Count = 0
    peaks: Annotated[list[AuditPeak], Field(max_length=MAX_FACTS)] = []
    unjudged: Annotated[list[Text], Field(max_length=MAX_FACTS)] = []


class AuditReport(AuditOutcome):
    """``POST /v1/audits``. ``findings``: the first ones; ``kinds`` counts all."""

    findings: Annotated[list[AuditFinding], Field(max_length=MAX_FINDINGS)] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.first is None) != (self.last is None) or (self.first or 0) > (self.last or 0):
            raise ValueError("last: give the numbers of the first and the last event that were read, in this order")
        listed: dict[str, int] = {}
        for i, finding in enumerate(self.findings):
            listed[finding.kind] = listed.get(finding.kind, 0) + 1
            if not (self.first or 0) <= finding.event <= (self.last or 0):
                raise ValueError(f"findings[{i}].event: name one of the events that were read")
        for kind in self.kinds:
            if self.checked and not self.checked.get(kind):
                raise ValueError(f"checked: say how often {kind} was checked, since there are findings of it")
        for kind, number in listed.items():
            if number > self.kinds.get(kind, 0):
                raise ValueError(f"kinds: count all findings of each kind; {number} of {kind} are listed")
        return self


class FindingView(AuditFinding):
    """``name`` and ``tenant``: of the job, where it was known when the audit was published."""

    name: str | None = None
    tenant: str | None = None


class AuditSummary(Message):
    """A published audit without its findings. ``findings_total``: how many there are. ``limited``: only what concerns
    the jobs of one's own tenants is told, among the findings that were listed; ``jobs``, ``plans`` and ``held``, which
    are about everybody's, are left out then, and of ``checked`` how often it was (None), unless never."""

    id: str
    published_at: datetime
    published_by: str
    limited: bool = False
    findings_total: int
    version: str
    began_at: datetime
    took_s: float
    events: int
    first: int | None = None
    last: int | None = None
    checked: dict[str, int | None] = {}
    kinds: dict[str, int] = {}
    jobs: dict[str, int] = {}
    plans: int | None = None
    held: int | None = None
    peaks: list[AuditPeak] = []
    unjudged: list[str] = []


class AuditView(AuditSummary):
    """``findings``: the first of them, in the order of their events."""

    findings: list[FindingView] = []
