"""When the certificates of a cluster end, as its manager tells."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ces_client.context import Context
from ces_client.doctor import Finding
from ces_client.errors import ApiError, CesError
from ces_client.http import Http
from ces_common.tls.ends import BY_OPERATOR, METRIC, told_before

WHAT = "certificates"
PATIENCE_S = 3.0
FORBIDDEN = 403
REMEDY = "replace it before its end, as docs/tls.md says under An authority of your own"
ENDED = "replace it where the manager runs, as docs/tls.md says, and look at this machine's clock"


def examine_certificates(
    context: Context,
    now: Callable[[], datetime] = partial(datetime.now, UTC),
    transport: httpx.BaseTransport | None = None,
) -> Finding | None:
    """Whether a certificate of the API, of NATS or the authority's ends soon and somebody has to replace it; None for a
    manager that has none, or tells it operators alone, where this is none's token. ``now``: the time of day."""
    if urlsplit(context.url).scheme != "https":
        return None
    try:
        http = Http(context.url, context.token, context.ca or True, transport, PATIENCE_S, PATIENCE_S)
        try:
            text = http.request("GET", f"{http.url}/metrics").text
        finally:
            http.close()
        ends = _ends(text)
    except ApiError as error:
        if error.status == FORBIDDEN:
            return None
        return Finding(WHAT, False, f"not seen: {error}")
    except (CesError, ValueError) as error:
        problem = str(error)
        return Finding(WHAT, False, f"not seen: {problem}", ENDED if "certificate has expired" in problem else "")
    if not ends:
        return Finding(WHAT, False, f"the manager at {context.url} does not tell when they end", "upgrade the manager")
    soon = {name: end for name, end, by in ends if by == BY_OPERATOR and end - now() < told_before(name)}
    if soon:
        return Finding(WHAT, False, f"of {context.url}: {_listed(soon, now())}", REMEDY)
    return Finding(WHAT, True, f"of {context.url}: none ends soon that is not replaced by itself")


def _ends(text: str) -> list[tuple[str, datetime, str]]:
    """The certificate, its end, and who replaces it. Raises ValueError."""
    return [
        (sample.labels.get("certificate", ""), datetime.fromtimestamp(sample.value, UTC), sample.labels["replaced_by"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == METRIC and "replaced_by" in sample.labels
    ]


def _listed(ends: dict[str, datetime], now: datetime) -> str:
    return "; ".join(
        f"{name} {'has ended' if end <= now else 'ends'} {end:%Y-%m-%d}"
        + ("" if end <= now else f", in {(end - now).days} days")
        for name, end in sorted(ends.items(), key=lambda each: each[1])
    )
