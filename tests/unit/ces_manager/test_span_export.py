from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ces_common.messages.traces import AGENT, Span
from ces_common.service import BadSetup
from ces_common.tracing import DROPPED
from ces_manager import span_export
from ces_manager.jobs.spans import Told
from ces_manager.span_export import SpanExport, export_from

TRACE, OWN = "ab" * 16, "cd" * 8


class Collector:
    """Takes what comes, or fails; holds its sender up while it is closed."""

    def __init__(self, result: str = "SUCCESS", *, open: bool = True) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self.spans: list[Any] = []
        self._result = SpanExportResult[result]
        self.gate = threading.Event()
        if open:
            self.gate.set()

    def export(self, spans: Sequence[Any]) -> Any:
        self.gate.wait(60)
        self.spans.extend(spans)
        return self._result

    def shutdown(self) -> None:
        pass


def told(node: str | None = "n1", **more: object) -> Told:
    given = {"trace": TRACE, "span": OWN, "name": "start worker", "job": "j", "attempt": 2, "start_us": 5}
    span = Span.model_validate({**given, "duration_us": 7, **more})
    return Told(AGENT if node else "scheduler", node, span)


def dropped(why: str) -> float:
    return DROPPED.labels(why)._value.get()


def test_spans_come_as_they_were_told() -> None:
    collector = Collector()
    export = SpanExport(collector)
    link = f"00-{'12' * 16}-{'34' * 8}-01"
    export([told(parent="ef" * 8, links=[link], kind="consumer", attributes={"task": "w-0"})])
    export.close()
    (span,) = collector.spans
    assert (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}") == (TRACE, OWN)
    assert f"{span.parent.span_id:016x}" == "ef" * 8
    assert (span.name, span.kind.name, span.start_time, span.end_time) == ("start worker", "CONSUMER", 5000, 12000)
    assert dict(span.attributes) == {"ces.task": "w-0", "ces.job": "j", "ces.attempt": 2}
    assert f"{span.links[0].context.trace_id:032x}" == "12" * 16
    assert dict(span.resource.attributes) == {"service.name": "ces-edge-agent", "service.instance.id": "n1"}


def test_a_dead_collector_costs_a_count() -> None:
    before = dropped("the collector does not take them")
    export = SpanExport(Collector("FAILURE"))
    export([told()] * 3)
    export.close()
    assert dropped("the collector does not take them") == before + 3


def test_a_collector_that_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_export, "STOP_S", 0.01)
    before, collector = dropped("the collector is slow"), Collector(open=False)
    export = SpanExport(collector)
    export([told()] * (span_export.MOST_WAITING + 5))
    assert dropped("the collector is slow") == before + 5
    export.close()
    collector.gate.set()


def test_nothing_is_exported_unasked() -> None:
    assert export_from({}) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(BadSetup, match=r"OTEL_EXPORTER_OTLP_ENDPOINT.*ces-manager\[otel\]"):
        export_from({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
