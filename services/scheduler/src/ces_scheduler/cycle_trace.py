"""What a cycle decided for traced jobs: a span in the trace of each, and one of the cycle, linked to all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ces_common.messages.records import JobRecord
from ces_common.tracing import OpenSpan, root, span
from ces_scheduler.decision import Decision


class CycleTrace:
    """``started``: the jobs that the cycle starts. ``context_of``: tells what a traced one has come by. ``took_s``: how
    long the cycle has taken by now."""

    def __init__(
        self, started: Iterable[JobRecord], context_of: Callable[[JobRecord], str | None], took_s: float
    ) -> None:
        contexts = {job.id: (job, context) for job in started if (context := context_of(job)) is not None}
        self._cycle: OpenSpan | None = None
        self._spans: dict[str, OpenSpan] = {}
        if contexts:
            self._cycle = root("cycle", links=[context for _, context in contexts.values()]).began(took_s)
            for name, (job, context) in contexts.items():
                links = [self._cycle.traceparent]
                decide = span("decide", context, job=name, attempt=job.attempt, kind="consumer", links=links)
                self._spans[name] = decide.began(took_s)

    def context_of(self, job: JobRecord) -> str | None:
        """In which its plan is proposed; None where it is not traced."""
        kept = self._spans.get(job.id)
        return None if kept is None else kept.traceparent

    def proposed(self, job: JobRecord, decision: Decision) -> None:
        """Its plan is stored by the broker. Those of which that is not said have no span."""
        kept = self._spans.get(job.id)
        if kept is not None:
            kept.tell(solver=decision.solver, decision_ms=round(decision.decision_ms, 3))
            kept.end()

    def end(self) -> None:
        if self._cycle is not None:
            self._cycle.end()
