"""Audits that are published: once, or again and again until the command is ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from ces_client import __version__
from ces_client.audit import Verdict
from ces_client.audit_report import report_of
from ces_client.cli import session
from ces_client.cli.output import Output, local_now, say, show_json_line
from ces_client.client import Client
from ces_client.errors import ApiError, CesError, bad_field
from ces_common.messages.audits import AuditView
from ces_common.quantities import format_duration, parse_duration

SHORTEST_S, LONGEST_S = 10, 7 * 86400
Judge = Callable[[Client], Verdict]


def pause_of(every: str) -> int:
    """Seconds from the beginning of one audit to that of the next. Raises BadInput."""
    title = "Audits are not repeated like this"
    try:
        seconds = parse_duration(every)
    except ValueError as error:
        raise bad_field(title, "--every", str(error), "give a duration such as 10m or 1h") from error
    if not SHORTEST_S <= seconds <= LONGEST_S:
        remedy = f"give {SHORTEST_S}s at least, and {LONGEST_S // 86400}d at most"
        raise bad_field(title, "--every", f"{every} is out of bounds", remedy)
    return seconds


def publish(judge: Judge) -> tuple[Verdict, AuditView]:
    """Audit the cluster and publish what came out. Raises CesError."""
    began_at, began = datetime.now(UTC), time.monotonic()
    with session.connect() as client:
        verdict = judge(client)
        took_s = time.monotonic() - began
        report = report_of(verdict, version=__version__, began_at=began_at, took_s=took_s)
        return verdict, client.audits.publish(report)


def again_and_again(judge: Judge, every_s: int, output: Output) -> None:
    """Publish an audit, and another one each ``every_s`` seconds, until SIGINT or SIGTERM. What cannot be had now is
    tried again with the next one. Raises ApiError for what is refused: it would be again."""
    say(f"an audit each {format_duration(every_s)}; Ctrl-C ends it", stderr=True)
    with _ended_by_signals():
        while True:
            began = time.monotonic()
            try:
                _, published = publish(judge)
            except CesError as error:
                if isinstance(error, ApiError) and 400 <= error.problem.status < 500 and error.problem.status != 429:
                    raise
                say(f"{local_now():%H:%M:%S} no audit: {error}", stderr=True)
            else:
                _tell(published, output)
            left_s = max(0.0, every_s - (time.monotonic() - began))
            say(f"the next one at {local_now() + timedelta(seconds=left_s):%H:%M:%S}", stderr=True)
            time.sleep(left_s)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Either signal ends the block, and no more: an audit is published whole, or not at all."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        say("no more audits from here", stderr=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(published: AuditView, output: Output) -> None:
    if output == Output.JSON:
        show_json_line(published)
        return
    span = "no events" if published.last is None else f"events {published.first} to {published.last}"
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(published.kinds.items()))
    total = published.findings_total
    checks = sum(number or 0 for number in published.checked.values())
    found = f"{total} finding{'s' if total > 1 else ''} ({kinds})" if total else f"nothing was wrong in {checks} checks"
    say(f"{local_now():%H:%M:%S} {span}: {found}; {published.took_s:.1f} s")
