"""Spans on their way to an OpenTelemetry collector, by OTLP over HTTP. OpenTelemetry's own classes make the requests,
in a thread of their own; they are imported only where this is asked for.

Of all services, the manager alone talks to the collector: it has checked what others tell, and devices at the edge need
no way to the collector.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from threading import Lock, Thread
from typing import Any, Final, cast

import structlog

from ces_common.service import BadSetup
from ces_common.tracing import DROPPED, context_of
from ces_manager.jobs.spans import Told

log = structlog.get_logger()
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
MOST_WAITING: Final = 4096  # spans; what comes while as many wait is dropped
MOST_AT_ONCE: Final = 512  # in one request
EVERY_MS: Final = 1000
ANSWER_S: Final = 5.0
STOP_S: Final = 2.0


class SpanExport:
    """``exporter``: OpenTelemetry's, or one for tests."""

    def __init__(self, exporter: Any) -> None:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._processor = BatchSpanProcessor(
            cast("Any", _Counted(exporter, self._sent)),
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=EVERY_MS,
            max_export_batch_size=MOST_AT_ONCE,
        )
        self._resources: dict[tuple[str, str | None], Any] = {}
        self._waiting, self._counting = 0, Lock()

    def __call__(self, told: Sequence[Told]) -> None:
        """Never waits."""
        with self._counting:
            taken = told[: max(0, MOST_WAITING - self._waiting)]
            self._waiting += len(taken)
        if len(taken) < len(told):
            DROPPED.labels("the collector is slow").inc(len(told) - len(taken))
        for each in taken:
            self._processor.on_end(self._readable(each))

    def close(self) -> None:
        """Send what is left, for a moment at most."""
        closing = Thread(target=self._processor.shutdown, daemon=True)
        closing.start()
        closing.join(STOP_S)

    def _sent(self, count: int) -> None:
        with self._counting:
            self._waiting -= count

    def _readable(self, told: Told) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, SpanKind

        span = told.span
        about: dict[str, Any] = {} if span.job is None else {"ces.job": span.job, "ces.attempt": span.attempt}
        links = [Link(_context(*context)) for each in span.links if (context := context_of(each)) is not None]
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace, span.span),
            parent=None if span.parent is None else _context(span.trace, span.parent),
            resource=self._resource(told.service, told.node),
            attributes={**{f"ces.{name}": value for name, value in span.attributes.items()}, **about},
            links=links,
            kind=SpanKind[span.kind.upper()],
            start_time=span.start_us * 1000,
            end_time=(span.start_us + span.duration_us) * 1000,
        )

    def _resource(self, service: str, node: str | None) -> Any:
        from opentelemetry.sdk.resources import Resource

        key = service, node
        if key not in self._resources:
            if len(self._resources) > MOST_WAITING:
                self._resources.clear()
            named = {"service.name": f"ces-{service}"} | ({} if node is None else {"service.instance.id": node})
            self._resources[key] = Resource(named)
        return self._resources[key]


def export_from(environment: Mapping[str, str] = os.environ) -> SpanExport | None:
    """As the standard variables of OpenTelemetry say; None where they name no collector. Raises BadSetup."""
    named = next((name for name in ENDPOINTS if environment.get(name)), None)
    if named is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise BadSetup(
            f"{named} is set, but OpenTelemetry is not installed: pip install 'ces-manager[otel]'"
        ) from error
    log.info("spans are exported", collector=environment[named])
    return SpanExport(OTLPSpanExporter(timeout=ANSWER_S))


def _context(trace: str, span: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class _Counted:
    """An exporter, with what it could not send counted. ``done``: told how many spans are on their way no longer."""

    def __init__(self, exporter: Any, done: Callable[[int], None]) -> None:
        self._exporter, self._done = exporter, done

    def export(self, spans: Sequence[Any]) -> Any:
        sent = False
        try:
            result = self._exporter.export(spans)
            sent = result.name == "SUCCESS"
            return result
        finally:
            self._done(len(spans))
            if not sent:
                DROPPED.labels("the collector does not take them").inc(len(spans))

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))
