"""What agents report of their links: whether they are up, and by which keys they are encrypted."""

from __future__ import annotations

from collections.abc import Sequence

from ces_common.db.uow import ReadTx, WriteTx
from ces_common.messages.reports import LinkReport
from ces_manager.measurements import Measurements
from ces_manager.network import link_states
from ces_manager.nodes import link_keys


def with_news(tx: ReadTx, reports: Sequence[LinkReport]) -> list[LinkReport]:
    """The reports that say anything new."""
    news = {report.node for found in (link_states, link_keys) for report in found.with_news(tx, reports)}
    return [report for report in reports if report.node in news]


def take_reports(tx: WriteTx, reports: Sequence[LinkReport], measurements: Measurements) -> None:
    """Store what they say. ``measurements``: where it is noted for operators what was refused."""
    link_states.take_reports(tx, reports)
    link_keys.take_reports(tx, reports, measurements)
