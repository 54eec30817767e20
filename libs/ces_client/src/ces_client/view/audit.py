"""The verdict of an audit, for people."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from ces_client.audit import NOT_CHECKED, PROMISES, Peak, Verdict
from ces_client.view.formats import DASH
from ces_client.view.tables import fact_list, plain_table
from ces_common.quantities import show_bandwidth, show_cpu, show_memory

_SHOWN = {"cpu": show_cpu, "memory": show_memory, "link": show_bandwidth, "medium": show_bandwidth}


def verdict_view(verdict: Verdict) -> RenderableType:
    """What was read, the highest use of each kind, which promises were checked how often, what was not judged, and all
    findings."""
    span = f"{verdict.events}, number {verdict.first} to {verdict.last}" if verdict.events else "none"
    states = ", ".join(f"{count} {state}" for state, count in sorted(verdict.jobs.items()))
    facts = [
        ("events", span),
        ("from", verdict.since or DASH),
        ("to", verdict.until or DASH),
        ("jobs", f"{sum(verdict.jobs.values())} ({states})" if states else "none"),
        ("plans", f"{verdict.plans}, revised {verdict.revisions} times"),
        ("held at the end", f"{verdict.held} allocations"),
    ]
    if verdict.deadlines_kept or verdict.deadlines_missed:
        facts.append(("deadlines", f"{verdict.deadlines_kept} kept, {verdict.deadlines_missed} missed"))
    facts += [("not judged", what) for what in verdict.unjudged]
    parts: list[RenderableType] = [fact_list(facts), Text()]
    if verdict.peaks:
        table = plain_table(
            "HIGHEST USE", "WHERE", "HELD", "OF", "SHARE", "EVENT", "TIME",
            right=("HELD", "OF", "SHARE"), wrapped=(), optional=("TIME", "EVENT"),
        )  # fmt: skip
        for peak in verdict.peaks:
            amounts = _amount(peak, peak.used), _amount(peak, peak.capacity)
            table.add_row(peak.what, peak.where, *amounts, f"{peak.share:.1%}", str(peak.event), peak.time)
        parts += [table, Text()]
    parts += [_promises(verdict), Text(), Text("not checked:")]
    parts += [Text(f"  {what}", style="dim") for what in NOT_CHECKED]
    if verdict.clean:
        sum_of = f"{sum(verdict.checked.values())} checks of {sum(map(bool, verdict.checked.values()))} promises"
        return Group(*parts, Text(), Text(f"nothing was wrong in {sum_of}", style="green"))
    found = plain_table("EVENT", "PROMISE", "FINDING", right=("EVENT",))
    for finding in verdict.findings:
        found.add_row(str(finding.event), finding.kind, finding.text)
    count = len(verdict.findings)
    return Group(*parts, Text(), found, Text(), Text(f"{count} finding{'s' if count > 1 else ''}", style="bold red"))


def _promises(verdict: Verdict) -> RenderableType:
    table = plain_table(
        "PROMISE", "CHECKED", "FINDINGS", "IN WORDS", right=("CHECKED", "FINDINGS"), wrapped=("IN WORDS",)
    )
    kinds = Counter(finding.kind for finding in verdict.findings)
    for kind, promise in PROMISES.items():
        table.add_row(kind, str(verdict.checked[kind]), str(kinds[kind]), promise.text)
    return table


def _amount(peak: Peak, value: int) -> str:
    shown = _SHOWN.get(peak.what)
    return shown(value) if shown else str(value)
