"""Which requests begin a trace."""

from __future__ import annotations

import random

from fastapi import Request

from ces_common.tracing import TRACEPARENT, OpenSpan, root


def request_span(request: Request, ratio: float) -> OpenSpan | None:
    """A span of this request, for ``ratio`` of all; None for the others. A caller who is in a trace has it go on, but
    does not decide whether there is one: what is sampled is up to whoever runs the cluster."""
    if ratio <= 0 or random.random() >= ratio:
        return None
    route = request.scope["route"].path
    caller = request.headers.get(TRACEPARENT)
    return root(f"{request.method} {route}", caller=caller, kind="server")
