"""A collector that keeps the spans that it is sent by OTLP over HTTP."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Received:
    """``linked_traces``: ids of the traces that it is linked to."""

    id: str
    trace: str
    parent: str
    name: str
    service: str
    linked_traces: frozenset[str]


class OtlpReceiver:
    def __init__(self) -> None:
        self.spans: dict[str, Received] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                packed = self.headers.get("Content-Encoding") == "gzip"
                receiver.take(gzip.decompress(body) if packed else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    linked = frozenset(link.trace_id.hex() for link in span.links)
                    ids = span.span_id.hex(), span.trace_id.hex(), span.parent_span_id.hex()
                    self.spans[ids[0]] = Received(*ids, span.name, named["service.name"], linked)

    def of_trace(self, trace: str) -> dict[str, Received]:
        return {id_: span for id_, span in dict(self.spans).items() if span.trace == trace}

    def named(self, name: str) -> list[Received]:
        return [span for span in dict(self.spans).values() if span.name == name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
